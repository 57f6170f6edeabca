"""Setting up keeps what stood there before; taking it back puts that back, to the byte where nobody changed it."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from cli.setup.plans import WIRED, Programs, Scope, plan
from cli.setup.settings_files import BACKUP, changes, write
from tests.support.client_files import files, put, run

ASKED = b"""\
{
  // first
  "model": "x", // why
  "hooks": { // h
    "Stop": [ // s
      {"hooks": [{"type": "command", "command": "a"}]} // mine
      // last
    ],
  },
}
// end
"""

SETTINGS = [
    b"",
    b"\n",
    b"{}",
    b"{}\n",
    b'{"model":"x"}',
    b'{"model":"x",}',
    b'{\n\t"model": "x"\n}',
    b'{"hooks": {}}\n',
    b'{\n  "model": "x",\n  "hooks": {"Stop": []}\n}\n',
    b'{"model":"x", "hooks": {"Stop": [{"hooks":[{"type":"command","command":"a"}]}]}}',
    b'{\r\n  "model": "x",\r\n  "a": [1,\r\n 2]\r\n}\r\n',
    b'\xef\xbb\xbf{\n  "model": "x"\n}\n',
    ASKED,
    ASKED.replace(b"\n", b"\r\n"),
]


def restored(client: str, path: Path, content: bytes, project: Path, home: Path) -> None:
    """Set a client up and take it back, and see that all is as it was."""
    put(path, content)
    before = files(project)
    assert run(project, home, "setup", client).status == 0
    changed = path.read_bytes()
    assert changed != content
    if content.endswith(b"\r\n"):
        assert changed.count(b"\n") == changed.count(b"\r\n")
    assert "Nothing to change" in run(project, home, "setup", client).text
    assert run(project, home, "setup", client, "--remove").status == 0
    assert files(project) == before


@pytest.mark.parametrize("content", SETTINGS)
def test_settings_in_json_are_put_back_to_the_byte(content: bytes, project: Path, home: Path) -> None:
    restored("claude-code", project / ".claude" / "settings.json", content, project, home)


@pytest.mark.parametrize("content", [b'{"version": 1}', b'{\n  "version": 1,\n  "hooks": {}\n}'])
def test_a_file_that_only_said_its_version_is_put_back_to_the_byte(content: bytes, project: Path, home: Path) -> None:
    restored("cursor", project / ".cursor" / "hooks.json", content, project, home)


@pytest.mark.parametrize(
    "content",
    [
        b"x = 1",
        b"\n",
        b'x = 1\n\n\n[a]\nb = """\n[mcp_servers.editledger]\n"""\n# end\n\n',
        b'model = "x"\r\n\r\n[a]\r\nb = 1\r\n',
    ],
)
def test_settings_in_toml_are_put_back_to_the_byte(content: bytes, project: Path, home: Path) -> None:
    restored("codex", project / ".codex" / "config.toml", content, project, home)


def test_what_a_person_changed_after_us_stays_and_so_does_the_copy(project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}')
    run(project, home, "setup", "claude-code")
    settings.write_text(settings.read_text().replace('"x"', '"y"'))
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "y"}
    assert settings.with_name(settings.name + BACKUP).read_text() == '{"model": "x"}'


def test_a_file_of_a_person_who_took_all_else_out_of_it_is_not_deleted(project: Path, home: Path) -> None:
    settings = put(project / ".mcp.json", '{"model": "x"}\n')
    run(project, home, "setup", "claude-code")
    held = json.loads(settings.read_text())
    del held["model"]
    settings.write_text(json.dumps(held))
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {}


def test_the_copy_is_of_the_file_before_anything_of_ours_came_into_it(project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    before = files(project)
    run(project, home, "setup", "claude-code")
    settings.write_text(settings.read_text().replace('"timeout": 30', '"timeout": 29'))
    assert "Changed" in run(project, home, "setup", "claude-code").text
    assert settings.with_name(settings.name + BACKUP).read_text() == '{"model": "x"}\n'
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert files(project) == before


def test_a_copy_that_has_ours_in_it_is_not_put_back(project: Path, home: Path) -> None:
    """As earlier versions left it, who made a copy before each change."""
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    run(project, home, "setup", "claude-code")
    copy = settings.with_name(settings.name + BACKUP)
    copy.write_bytes(settings.read_bytes())
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "x"}
    assert copy.exists()


@pytest.mark.parametrize("content", ["not ours", '{"hooks": {}, "hooks": {}}'])
def test_a_file_that_only_has_the_copys_name_is_left_alone(content: str, project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    copy = put(settings.with_name(settings.name + BACKUP), content)
    run(project, home, "setup", "claude-code")
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "x"}
    assert copy.read_text() == content


def test_what_somebody_registered_under_our_name_is_copied_before_it_is_changed(project: Path, home: Path) -> None:
    by_hand = '{"mcpServers": {"editledger": {"command": "editledger", "args": ["--read-only", "."]}}}'
    servers = put(project / ".mcp.json", by_hand)
    run(project, home, "setup", "claude-code")
    assert servers.with_name(servers.name + BACKUP).read_text() == by_hand


@pytest.mark.parametrize("client", WIRED)
def test_files_that_only_we_wrote_are_changed_without_a_copy(client: str, tmp_path: Path) -> None:
    """A program that has moved is the usual reason."""
    scope = Scope(project=tmp_path, home=tmp_path)
    old = plan(client, scope, Programs(cas="/gone/cas", server="/gone/editledger"))
    new = plan(client, scope, Programs(cas="cas", server="editledger"))
    for steps, remove in ((old, False), (new, False), (new, True)):
        wanted = changes(steps, remove=remove)
        assert len(wanted) == len(steps)
        for change in wanted:
            write(change, tmp_path)
        assert not list(tmp_path.rglob(f"*{BACKUP}"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("client", "name"), [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml")])
def test_what_a_person_adds_to_our_server_entry_stays(client: str, name: str, project: Path, home: Path) -> None:
    run(project, home, "setup", client)
    servers = project / name
    if servers.suffix == ".json":
        held = json.loads(servers.read_text())
        held["mcpServers"]["editledger"] |= {"env": {"X": "1"}, "timeout": 600000}
        servers.write_text(json.dumps(held))
    else:
        more = (
            'startup_timeout_sec = 30  # slow disk\n\n[mcp_servers.editledger.tools.write_file]\napproval_mode = "x"\n'
        )
        servers.write_text(servers.read_text() + more)
    before = files(project)
    assert "Nothing to change" in run(project, home, "setup", client).text
    assert files(project) == before
    found = {one["check"]: one["ok"] for one in run(project, home, "doctor", client, "--json").lines()}
    assert found[f"{client} is set up"]
    moved = re.sub(r'"[^"]*editledger"(?=[,\n])', '"/where/it/was/editledger"', servers.read_text())
    assert moved != servers.read_text()
    servers.write_text(moved)
    assert "Changed" in run(project, home, "setup", client).text
    assert "".join(servers.read_text().split()) == "".join(before[servers].decode().split())
    run(project, home, "setup", client, "--remove")
    assert not servers.exists()


def test_no_table_is_left_of_ours_that_codex_would_refuse(project: Path, home: Path) -> None:
    config = put(project / ".codex" / "config.toml", 'model = "m"\n')
    run(project, home, "setup", "codex")
    with config.open("a") as file:
        file.write('\n[mcp_servers.editledger.tools.write_file]\napproval_mode = "approve"\n\n[other]\n')
    assert run(project, home, "setup", "codex", "--remove").status == 0
    assert tomllib.loads(config.read_text()) == {"model": "m", "other": {}}


def test_a_plugin_that_is_not_ours_is_neither_overwritten_nor_removed(project: Path, home: Path) -> None:
    theirs = put(project / ".opencode" / "plugin" / "editledger.js", "// theirs\n")
    before = files(project)
    refused = run(project, home, "setup", "opencode")
    assert refused.status == 1
    assert str(theirs) in refused.said
    assert "Nothing to change" in run(project, home, "setup", "opencode", "--remove").text
    assert files(project) == before


def test_a_plugin_of_an_earlier_version_is_ours(project: Path, home: Path) -> None:
    old = "// Written by `cas setup opencode`: as it was once\n"
    plugin = put(project / ".opencode" / "plugin" / "editledger.js", old)
    assert run(project, home, "setup", "opencode").status == 0
    assert plugin.read_text() != old
    assert run(project, home, "setup", "opencode", "--remove").status == 0
    assert not (project / ".opencode").exists()


# ---- what is refused


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"model": "\xe9"}', "is not in UTF-8 (byte 11), and was left as it is"),
        (b'{"a": "' + b"y" * (16 << 20) + b'"}', "is larger than 16 MiB"),
        (b'{"hooks": {}, "hooks": {"Stop": []}}', '"hooks" appears more than once'),
    ],
    ids=["latin-1", "large", "twice"],
)
def test_a_file_that_is_refused_is_named_with_the_reason(content: bytes, said: str, project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", content)
    refused = run(project, home, "setup", "claude-code")
    assert refused.status == 1
    assert f"{settings} " in refused.said
    assert said in refused.said
    assert files(project) == {settings: content, project / "a.txt": b"one\n"}


def test_a_link_that_leads_to_itself_is_named(project: Path, home: Path) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.symlink_to(settings.name)
    refused = run(project, home, "setup", "claude-code")
    assert refused.status == 1
    assert refused.said == f"cas: Too many levels of symbolic links: {settings}\n"
