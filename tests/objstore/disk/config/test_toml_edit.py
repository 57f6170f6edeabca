"""Test that editing a person's TOML file keeps their comments, order and formatting."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from objstore import toml_value, with_toml, without_toml

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

COMMENTED = """\
# mine
[retention]  # how long
older_than = "30d"   # a month

# the other
[gc]
background = true
"""

ENDS = pytest.mark.parametrize("end", ["\n", "\r\n"])


# ---- tables


def test_a_new_table_is_added_after_its_siblings_or_at_the_end() -> None:
    assert with_toml("", PATH, OURS) == TABLE
    assert with_toml("# mine\n", PATH, OURS) == f"# mine\n\n{TABLE}"
    assert with_toml(TEXT, PATH, OURS) == TEXT.replace("\n# about the", f"\n{TABLE}\n# about the")
    assert with_toml("[b]\nc = 1", PATH, OURS) == f"[b]\nc = 1\n\n{TABLE}"


@ENDS
def test_adding_a_table_and_removing_it_restores_the_text(end: str) -> None:
    text = TEXT.replace("\n", end)
    changed = with_toml(text, PATH, OURS)
    assert changed.count("\n") == changed.count(end)
    assert toml_value(changed, PATH) == OURS
    assert without_toml(changed, PATH) == text


@ENDS
@pytest.mark.parametrize("header", ["[mcp_servers.editledger]", '[ mcp_servers."editledger" ]\t', TABLE[:24] + " # me"])
def test_other_values_of_the_table_keep_their_comments(header: str, end: str) -> None:
    ours = f'{header}\n# slow\nstartup_timeout_sec = 30 # disk\ncommand = "old" # moved\n\n# about b\n[b]\n'
    text = (TEXT + ours).replace("\n", end)
    assert with_toml(text, PATH, OURS) == text.replace('"old" # moved', f'"editledger" # moved{end}args = ["."]')
    assert without_toml(text, PATH) == (TEXT + "\n# about b\n[b]\n").replace("\n", end)


def test_a_comment_above_a_removed_table_is_kept() -> None:
    above = "a = 1\n\n# [mcp_servers.later]\n# command = 'y'\n"
    assert without_toml(f"{above}\n{TABLE}\n[c]\nd = 1 # e\n# end\n", PATH) == f"{above}\n[c]\nd = 1 # e\n# end\n"


def test_subtables_are_kept_by_an_edit_and_removed_with_their_table() -> None:
    below = '\n# asked once\n[mcp_servers.editledger.tools.write_file]\napproval_mode = "approve"\n'
    assert with_toml(TABLE + below, PATH, OURS) == TABLE + below
    assert without_toml(f"{TEXT}\n{TABLE}{below}", PATH) == TEXT
    assert without_toml(f"{TABLE}{below}\n[c]\n", PATH) == "[c]\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.editledger.command = "x"\n',
        '[mcp_servers]\neditledger = { command = "x" }\n',
        '[mcp_servers]\neditledger.command = "x"\n',
        'mcp_servers = { other = { command = "x" } } # mine\n',
        '[mcp_servers.a]\nx = 1\n[b]\n# mine\n[mcp_servers.editledger]\ncommand = "x"\n',
    ],
)
def test_tables_of_every_form_are_edited(text: str) -> None:
    before = tomllib.loads(text)
    changed = with_toml(text, PATH, OURS)
    assert toml_value(changed, PATH) == OURS
    assert changed.count("# mine") == text.count("# mine")
    before["mcp_servers"].pop("editledger", None)
    left = tomllib.loads(without_toml(changed, PATH))
    assert left.get("mcp_servers", {}) == before.pop("mcp_servers")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[mcp_servers.editledger]]\ncommand = "x"\n', "mcp_servers.editledger is not a table"),
        ("mcp_servers = 1\n", "mcp_servers is not a table"),
        ("= broken", ""),
        ("[[g]]\n[b]\n[[g]]\n[mcp_servers.editledger]\n", "it is written in a way that can't be changed"),
    ],
)
def test_table_that_can_not_be_edited_separately_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}"):
        with_toml(text, PATH, OURS)


TEXTS = st.lists(
    st.sampled_from(
        [
            "\n",
            "# mine\n",
            "a = 1\n",
            "[b]\n",
            "c = [\n  1,\n]\n",
            "e.f = nan # so\n",
            "[[g]]\n",
            "[mcp_servers]\n",
            "[mcp_servers.x]\n",
            "[mcp_servers.editledger.tools]\n",
            TABLE,
            "\r\n",
        ]
    ),
    max_size=7,
).map("".join)


def compared(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=str)  # nan is not equal to itself


@given(TEXTS)
def test_an_edit_changes_its_table_and_nothing_else(text: str) -> None:
    try:
        before = compared(text)
    except tomllib.TOMLDecodeError:
        return  # a table twice
    try:
        changed = with_toml(text, PATH, OURS)
        removed = without_toml(changed, PATH)
    except ValueError:
        assert "[[g]]" in text  # tomlkit would move tables past an array of tables
        return
    assert changed.count("# ") == text.count("# ")
    servers = before.pop("mcp_servers", {})
    held = servers.pop("editledger", {})
    assert compared(changed) == before | {"mcp_servers": servers | {"editledger": held | OURS}}
    assert with_toml(changed, PATH, OURS) == changed
    left = compared(removed)
    assert left.pop("mcp_servers", {}) == servers
    assert left == before


@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_every_text_can_be_a_value(command: str, args: list[str]) -> None:
    changed = with_toml("", PATH, {"command": command, "args": args})
    assert tomllib.loads(changed)["mcp_servers"]["editledger"] == {"command": command, "args": args}


# ---- values


def test_a_new_value_replaces_the_old_one_in_its_line() -> None:
    changed = with_toml(COMMENTED, ["retention"], {"older_than": "2w"})
    assert changed == COMMENTED.replace('"30d"', '"2w"')


def test_a_new_key_follows_the_last_one_of_its_table() -> None:
    changed = with_toml(COMMENTED, ["retention"], {"max_size": "1GB"})
    assert changed == COMMENTED.replace("# a month\n", '# a month\nmax_size = "1GB"\n')


def test_a_removed_value_takes_only_its_own_line() -> None:
    assert without_toml(COMMENTED, ["gc", "background"]) == COMMENTED.replace("[gc]\nbackground = true\n", "")
    assert without_toml(COMMENTED, ["gc", "nothing"]) == COMMENTED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[a]\nb = "x"\n'),
        ("[c]\nd = 1", '[c]\nd = 1\n\n[a]\nb = "x"\n'),
        ("[c]\r\nd = 1\r\n", '[c]\r\nd = 1\r\n\r\n[a]\r\nb = "x"\r\n'),
        ("a.c = 1\n", 'a.c = 1\na.b = "x"\n'),
        ("a . 'b' = 1 # why\n", "a . 'b' = \"x\" # why\n"),
        ('["a"]\n"b" = 1\n', '["a"]\n"b" = "x"\n'),
        ('t = """\n[a]\nb = 1\n"""\n', 't = """\n[a]\nb = 1\n"""\n\n[a]\nb = "x"\n'),
        ("[c]\nb = 1\n[a]\nb = 2\n", '[c]\nb = 1\n[a]\nb = "x"\n'),
        ("[c]\nd = nan\n", '[c]\nd = nan\n\n[a]\nb = "x"\n'),
    ],
)
def test_a_value_is_added_where_a_person_would_put_it(before: str, after: str) -> None:
    assert with_toml(before, ["a"], {"b": "x"}) == after


KEYS = st.sampled_from(["b", "c", '"b"', "other"])
LINES = st.one_of(
    st.builds(
        lambda key, value: f"{key} = {value}", KEYS, st.sampled_from(["1", '"b = 2"', "'''\nb = 3\n'''", "true"])
    ),
    st.sampled_from(["[a]", "[z]", "[a.b]", "# b = 4", "", "  # note", "a.b = 5", "['a']"]),
)


@given(lines=st.lists(LINES, max_size=8), end=st.sampled_from(["\n", "\r\n", ""]))
def test_setting_and_removing_a_value_keeps_every_comment(lines: list[str], end: str) -> None:
    text = "\n".join(lines) + end
    try:
        before = tomllib.loads(text)
        changed = with_toml(text, ["a"], {"b": "new"})
    except ValueError:
        return  # not TOML, or `a` is not a table
    parsed = tomllib.loads(changed)
    assert parsed["a"].pop("b") == "new"
    before.get("a", {}).pop("b", None)
    assert parsed == {"a": {}, **before}
    removed = without_toml(changed, ["a", "b"])
    assert "b" not in tomllib.loads(removed).get("a", {})
    for comment in ("# b = 4", "# note"):
        assert text.count(comment) == changed.count(comment) == removed.count(comment)
