"""`cas setup` keeps existing settings, and `--remove` restores unchanged files byte for byte."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from cli.setup.plans import WIRED, Programs, Scope, plan
from cli.setup.settings_files import BACKUP, changes, write
from tests.support.client_files import SERVER_FILES, files, put, run
from tests.support.command_runner import cas

COMMENTED_SETTINGS = b"""\
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
    COMMENTED_SETTINGS,
    COMMENTED_SETTINGS.replace(b"\n", b"\r\n"),
]


def check_setup_and_removal(client: str, path: Path, content: bytes, project: Path, home: Path) -> None:
    """Set a client up and remove it, and check that every file is as before."""
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
def test_json_settings_are_restored_byte_for_byte(content: bytes, project: Path, home: Path) -> None:
    check_setup_and_removal("claude-code", project / ".claude" / "settings.json", content, project, home)


@pytest.mark.parametrize("content", [b'{"version": 1}', b'{\n  "version": 1,\n  "hooks": {}\n}'])
def test_a_file_with_only_a_version_is_restored_byte_for_byte(content: bytes, project: Path, home: Path) -> None:
    check_setup_and_removal("cursor", project / ".cursor" / "hooks.json", content, project, home)


@pytest.mark.parametrize(
    "content",
    [
        b"x = 1",
        b"\n",
        b'x = 1\n\n\n[a]\nb = """\n[mcp_servers.editledger]\n"""\n# end\n\n',
        b'model = "x"\r\n\r\n[a]\r\nb = 1\r\n',
    ],
)
def test_toml_settings_are_restored_byte_for_byte(content: bytes, project: Path, home: Path) -> None:
    check_setup_and_removal("codex", project / ".codex" / "config.toml", content, project, home)


def test_later_changes_by_a_person_and_the_copy_are_kept(project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}')
    run(project, home, "setup", "claude-code")
    settings.write_text(settings.read_text().replace('"x"', '"y"'))
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "y"}
    assert settings.with_name(settings.name + BACKUP).read_text() == '{"model": "x"}'


def test_an_existing_file_that_becomes_empty_is_not_deleted(project: Path, home: Path) -> None:
    settings = put(project / ".mcp.json", '{"model": "x"}\n')
    run(project, home, "setup", "claude-code")
    parsed = json.loads(settings.read_text())
    del parsed["model"]
    settings.write_text(json.dumps(parsed))
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {}


def test_the_copy_holds_the_file_from_before_the_first_setup(project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    before = files(project)
    run(project, home, "setup", "claude-code")
    settings.write_text(settings.read_text().replace('"timeout": 30', '"timeout": 29'))
    assert "Changed" in run(project, home, "setup", "claude-code").text
    assert settings.with_name(settings.name + BACKUP).read_text() == '{"model": "x"}\n'
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert files(project) == before


def test_a_copy_that_holds_our_entries_is_not_restored(project: Path, home: Path) -> None:
    """Earlier versions made a copy before each change."""
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    run(project, home, "setup", "claude-code")
    copy = settings.with_name(settings.name + BACKUP)
    copy.write_bytes(settings.read_bytes())
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "x"}
    assert copy.exists()


@pytest.mark.parametrize("content", ["not ours", '{"hooks": {}, "hooks": {}}'])
def test_a_foreign_file_with_the_name_of_the_copy_is_left_alone(content: str, project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", '{"model": "x"}\n')
    copy = put(settings.with_name(settings.name + BACKUP), content)
    run(project, home, "setup", "claude-code")
    assert run(project, home, "setup", "claude-code", "--remove").status == 0
    assert json.loads(settings.read_text()) == {"model": "x"}
    assert copy.read_text() == content


def test_a_hand_written_entry_of_our_name_is_copied_before_it_is_changed(project: Path, home: Path) -> None:
    by_hand = '{"mcpServers": {"editledger": {"command": "editledger", "args": ["--read-only", "."]}}}'
    servers = put(project / ".mcp.json", by_hand)
    run(project, home, "setup", "claude-code")
    assert servers.with_name(servers.name + BACKUP).read_text() == by_hand


@pytest.mark.parametrize("client", WIRED)
def test_files_written_only_by_setup_are_changed_without_a_copy(client: str, tmp_path: Path) -> None:
    """Such files usually change because the program has moved."""
    scope = Scope(project=tmp_path, home=tmp_path)
    old = plan(client, scope, Programs(cas="/gone/cas", server="/gone/editledger"), server=True)
    new = plan(client, scope, Programs(cas="cas", server="editledger"), server=True)
    for steps, remove in ((old, False), (new, False), (new, True)):
        planned = changes(steps, remove=remove)
        assert len(planned) == sum(bool(step.apply("")) for step in steps)
        for change in planned:
            write(change, tmp_path)
        assert not list(tmp_path.rglob(f"*{BACKUP}"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("client", "name"), [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml")])
def test_fields_that_a_person_adds_to_our_server_entry_are_kept(
    client: str, name: str, project: Path, home: Path
) -> None:
    run(project, home, "setup", client)
    servers = project / name
    if servers.suffix == ".json":
        parsed = json.loads(servers.read_text())
        parsed["mcpServers"]["editledger"] |= {"env": {"X": "1"}, "timeout": 600000}
        servers.write_text(json.dumps(parsed))
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


def foreign_entry(client: str) -> str:
    """Return the text of a client's list of servers in which something else has our name."""
    if client == "codex":
        return '[mcp_servers.editledger]\ncommand = "docker"\n\n[other]\na = 1\n'
    key = {"vscode": "servers", "opencode": "mcp"}.get(client, "mcpServers")
    command = ["docker"] if client == "opencode" else "docker"
    return json.dumps({key: {"editledger": {"command": command}}, "a": 1}, indent=2) + "\n"


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("client", WIRED)
def test_removing_hooks_alone_leaves_another_server_of_our_name(
    client: str, project: Path, home: Path, *, is_changed: bool
) -> None:
    settings = put(project / SERVER_FILES[client], foreign_entry(client))
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    assert cas("setup", client, folder=project, settings=own).status == 0
    if is_changed:
        settings.write_text(settings.read_text().replace("1", "2", 1))
    assert cas("setup", client, "--remove", folder=project, settings=own).status == 0
    assert settings.read_text() == foreign_entry(client).replace("1", "2" if is_changed else "1", 1)


@pytest.mark.parametrize("client", WIRED)
@pytest.mark.parametrize("content", ["", "a"])
def test_remove_leaves_a_server_that_a_person_put_in_place_of_ours(
    client: str, content: str, project: Path, home: Path
) -> None:
    settings = project / SERVER_FILES[client]
    if content:
        put(settings, "a = 1\n" if client == "codex" else '{"a": 1}\n')
    assert run(project, home, "setup", client).status == 0
    theirs = re.sub(r'"[^"]*editledger"(?=\s*[],\n])', '"docker"', settings.read_text())
    assert "docker" in theirs
    settings.write_text(theirs)
    assert run(project, home, "setup", client, "--remove").status == 0
    assert '"docker"' in settings.read_text()
    assert "hook" not in settings.read_text()


def test_remove_leaves_no_incomplete_table_for_codex(project: Path, home: Path) -> None:
    config = put(project / ".codex" / "config.toml", 'model = "m"\n')
    run(project, home, "setup", "codex")
    with config.open("a") as file:
        file.write('\n[mcp_servers.editledger.tools.write_file]\napproval_mode = "approve"\n\n[other]\n')
    assert run(project, home, "setup", "codex", "--remove").status == 0
    assert tomllib.loads(config.read_text()) == {"model": "m", "other": {}}


def test_a_foreign_plugin_is_neither_overwritten_nor_removed(project: Path, home: Path) -> None:
    foreign = put(project / ".opencode" / "plugins" / "editledger.js", "// theirs\n")
    before = files(project)
    refused = run(project, home, "setup", "opencode")
    assert refused.status == 1
    assert str(foreign) in refused.said
    assert "Nothing to change" in run(project, home, "setup", "opencode", "--remove").text
    assert files(project) == before


@pytest.mark.parametrize("folder", ["plugin", "plugins"])
def test_a_plugin_of_an_earlier_version_is_replaced_and_removed(folder: str, project: Path, home: Path) -> None:
    old = "// Written by `cas setup opencode`: as it was once\n"
    put(project / ".opencode" / folder / "editledger.js", old)
    assert run(project, home, "setup", "opencode").status == 0
    assert not (project / ".opencode" / "plugin").exists()
    assert (project / ".opencode" / "plugins" / "editledger.js").read_text() != old
    assert run(project, home, "setup", "opencode", "--remove").status == 0
    assert not (project / ".opencode").exists()


# ---- refused files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"model": "\xe9"}', "is not in UTF-8 (byte 11), and was left as it is"),
        (b'{"a": "' + b"y" * (16 << 20) + b'"}', "is larger than 16 MiB"),
        (b'{"hooks": {}, "hooks": {"Stop": []}}', '"hooks" appears more than once'),
    ],
    ids=["latin-1", "large", "twice"],
)
def test_a_refused_file_is_named_with_the_reason(content: bytes, message: str, project: Path, home: Path) -> None:
    settings = put(project / ".claude" / "settings.json", content)
    refused = run(project, home, "setup", "claude-code")
    assert refused.status == 1
    assert f"{settings} " in refused.said
    assert message in refused.said
    assert files(project) == {settings: content, project / "a.txt": b"one\n"}


def test_a_symlink_to_itself_is_refused_and_named(project: Path, home: Path) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.symlink_to(settings.name)
    refused = run(project, home, "setup", "claude-code")
    assert refused.status == 1
    assert refused.said == f"cas: Too many levels of symbolic links: {settings}\n"
