"""A table of ours in a TOML text changes by as little as can be, and nothing else does at all."""

import tomllib

import pytest
from hypothesis import given, strategies as st

from objstore import with_toml_table, without_toml_table

PATH = ("mcp_servers", "editledger")
OURS = {"command": "editledger", "args": ["."]}
TABLE = '[mcp_servers.editledger]\ncommand = "editledger"\nargs = ["."]\n'

TEXT = '''\
# mine
model = "m" # [mcp_servers.editledger]
list = [
  ["a"], # no header
]
said = """
[mcp_servers.editledger]
command = "not this"
"""

[mcp_servers.other]
command = 'x' # "
"quoted = name" = 1

# about the profile
[[profiles."a.b"]]
one = nan
'''

ENDS = pytest.mark.parametrize("end", ["\n", "\r\n"])

TEXTS = st.lists(
    st.sampled_from(
        [
            "\n",
            "# mine\n",
            "a = 1\n",
            "[b]\n",
            "c = [\n  1,\n]\n",
            "[mcp_servers]\n",
            "[mcp_servers.x]\n",
            "[mcp_servers.editledger.tools]\n",
            TABLE,
            "\r\n",
        ]
    ),
    max_size=6,
).map("".join)


def test_a_text_without_our_table_gets_it_at_its_end() -> None:
    assert with_toml_table("", PATH, OURS) == TABLE
    assert with_toml_table(TEXT, PATH, OURS) == f"{TEXT}\n{TABLE}"


@ENDS
def test_a_table_that_is_put_in_and_taken_out_leaves_the_text_as_it_was(end: str) -> None:
    text = TEXT.replace("\n", end)
    changed = with_toml_table(text, PATH, OURS)
    assert changed.count("\n") == changed.count(end)
    assert without_toml_table(changed, PATH) == text


@ENDS
@pytest.mark.parametrize("header", ["[mcp_servers.editledger]", '[ mcp_servers."editledger" ]\t', TABLE[:24] + " # me"])
def test_members_that_are_not_ours_stay_with_their_comments(header: str, end: str) -> None:
    ours = f'{header}\n# slow\nstartup_timeout_sec = 30 # disk\ncommand = "old" # moved\n\n# about b\n[b]\n'
    text = (TEXT + ours).replace("\n", end)
    assert with_toml_table(text, PATH, OURS) == text.replace('"old" # moved', f'"editledger" # moved{end}args = ["."]')
    assert without_toml_table(text, PATH) == (TEXT + "\n# about b\n[b]\n").replace("\n", end)


def test_tables_below_ours_stay_when_it_is_set_and_go_with_it() -> None:
    below = '\n# asked once\n[mcp_servers.editledger.tools.write_file]\napproval_mode = "approve"\n'
    assert with_toml_table(TABLE + below, PATH, OURS) == TABLE + below
    assert without_toml_table(f"{TEXT}\n{TABLE}{below}", PATH) == TEXT
    assert without_toml_table(f"{TABLE}{below}\n[c]\n", PATH) == "[c]\n"
    # What stands above a header may be about what is above it.
    assert without_toml_table(f"{TABLE}\n[c]\n{below}", PATH) == "[c]\n\n# asked once\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.editledger.command = "x"\n',
        '[mcp_servers]\neditledger = { command = "x" }\n',
        '[mcp_servers]\neditledger.command = "x"\n',
        '[[mcp_servers.editledger]]\ncommand = "x"\n',
        "mcp_servers = 1\n",
    ],
)
def test_a_table_in_another_shape_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"mcp_servers\.editledger is "):
        with_toml_table(text, PATH, OURS)


def test_a_table_above_it_in_another_shape_is_named_where_there_is_no_such_table_yet() -> None:
    said = r"mcp_servers is not written there as a table of its own, under \[mcp_servers\]"
    with pytest.raises(ValueError, match=f"^{said}$"):
        with_toml_table('mcp_servers = { other = { command = "x" } }\n', PATH, OURS)


@pytest.mark.parametrize(
    "text",
    ['mcp_servers.editledger.command = "x"\n', '[mcp_servers]\neditledger = { command = "x" }\n'],
)
def test_a_table_in_another_shape_is_never_said_to_be_gone(text: str) -> None:
    with pytest.raises(ValueError, match=r"mcp_servers\.editledger is "):
        without_toml_table(text, PATH)


@given(TEXTS)
def test_setting_is_idempotent_and_says_what_is_wanted_beside_what_was_said(text: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a table twice
    changed = with_toml_table(text, PATH, OURS)
    servers = before.pop("mcp_servers", {})
    held = servers.pop("editledger", {})
    assert tomllib.loads(changed) == before | {"mcp_servers": servers | {"editledger": held | OURS}}
    assert with_toml_table(changed, PATH, OURS) == changed
    left = tomllib.loads(without_toml_table(changed, PATH))
    assert left.pop("mcp_servers", {}) == servers
    assert left == before


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_every_text_can_be_a_value(command: str, args: list[str]) -> None:
    said = tomllib.loads(with_toml_table("", PATH, {"command": command, "args": args}))
    assert said["mcp_servers"]["editledger"] == {"command": command, "args": args}
