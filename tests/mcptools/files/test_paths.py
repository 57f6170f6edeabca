"""Tools reach every path inside the allowed directories and no other, however the path is written."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mcptools.files.workspaces import Directories
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from objstore import Workspace
from tests.support.direct_tools import Tools
from tests.support.interruption import interrupted_at, interruption_points
from tests.support.mcp_agent import Agent, connected

PRIVATE = "secret\n"
EDIT = [{"old_string": "secret", "new_string": "known"}]
DIFF = "--- f\n+++ f\n@@ -1 +1 @@\n-secret\n+known\n"


@pytest.fixture
def outside(agent: Agent) -> Iterator[Path]:
    """Return a file in a directory whose name starts with the name of the allowed one."""
    outside = agent.root.with_name(f"{agent.root.name}-evil")
    outside.mkdir(exist_ok=True)
    (outside / "secret.txt").write_text(PRIVATE)
    yield outside / "secret.txt"
    assert (outside / "secret.txt").read_text() == PRIVATE
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def attempts(agent: Agent, path: str, inside: Path) -> list[tuple[int, str]]:
    """Try every tool on `path`; return the codes and messages of the refusals."""
    inside.mkdir(exist_ok=True)
    (inside / "mine.txt").write_text("mine\n")
    results = [
        agent.call("read_file", path=path),
        agent.call("read_text_file", path=path),
        agent.call("write_file", path=path, content="known"),
        agent.call("edit_file_diff", path=path, diff=DIFF),
        agent.call("delete_file", path=path),
        agent.call("move_file", source=path, destination=str(inside / "taken.txt")),
        agent.call("move_file", source=str(inside / "mine.txt"), destination=path),
    ]
    if path.startswith("/"):
        results.append(agent.call("multi_edit_text_file", path=path, edits=EDIT))
    assert (inside / "mine.txt").read_text() == "mine\n"
    assert not (inside / "taken.txt").exists()
    return [(result.error["code"], result.text) for result in results]


@pytest.mark.parametrize(
    "written_path",
    [
        pytest.param("{base}/{evil}/secret.txt", id="a directory whose name starts alike"),
        pytest.param("{folder}/../../{evil}/secret.txt", id="parent folders, absolute"),
        pytest.param("../{evil}/secret.txt", id="parent folders, relative"),
        pytest.param("{root}/none/../../{evil}/secret.txt", id="parent folders of a missing folder"),
        pytest.param("{root}//..//{evil}//secret.txt", id="doubled slashes"),
        pytest.param("{root}/../{evil}/.", id="a directory"),
    ],
)
def test_no_written_form_of_a_path_leads_out(agent: Agent, folder: Path, outside: Path, written_path: str) -> None:
    path = written_path.format(base=agent.root.parent, root=agent.root, folder=folder, evil=outside.parent.name)
    for code, message in attempts(agent, path, folder / "inside"):
        assert (code, message) in {
            (-32002, f"Permission denied: {path}"),
            (-32001, f"File not found: {path}"),  # if a folder of the path is missing
        }


@pytest.mark.parametrize("absolute", [True, False])
def test_no_symlink_leads_out(agent: Agent, folder: Path, outside: Path, *, absolute: bool) -> None:
    target = outside if absolute else Path(os.path.relpath(outside, folder))
    (folder / "file-link").symlink_to(target)
    (folder / "folder-link").symlink_to(target.parent)
    (folder / "chain").symlink_to("folder-link")
    (folder / "new-link").symlink_to(target.parent / "new.txt")
    for path in ("folder-link/secret.txt", "chain/secret.txt", "chain/new/file.txt"):
        for code, _ in attempts(agent, str(folder / path), folder / "inside"):
            assert code == -32002
    for path in ("file-link", "new-link"):
        for code, _ in attempts(agent, str(folder / path), folder / "inside"):
            assert code in {-32002, -32026, -32031}  # denied, a link, or existing
    assert agent.call("list_directory", path=str(folder / "folder-link")).error["code"] == -32002
    assert agent.call("create_directory", path=str(folder / "folder-link" / "new")).error["code"] == -32002


def test_link_inside_can_be_read_but_not_changed(agent: Agent, folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "file.txt").write_text(PRIVATE)
    (folder / "link.txt").symlink_to("real/file.txt")
    (folder / "linked").symlink_to("real")
    read = agent.done("read_file", path=str(folder / "link.txt"))
    assert (read.structured["content"], read.structured["path"]) == (PRIVATE, str(folder / "real" / "file.txt"))
    path = str(folder / "link.txt")
    for result in (
        agent.call("write_file", path=path, content="x"),
        agent.call("edit_file_diff", path=path, diff=DIFF),
        agent.call("edit_file_diff", path=path, diff=DIFF, dry_run=True),
        agent.call("multi_edit_text_file", path=path, edits=EDIT),
        agent.call("delete_file", path=path),
        agent.call("move_file", source=path, destination=str(folder / "b")),
    ):
        assert (result.error["code"], result.error["type"]) == (-32026, "symlink_error")
        assert result.text == f"Symlinks are not allowed (security policy): {path}"
    # A folder of the path may be a link: the file is recorded and reported at its real path.
    agent.done("multi_edit_text_file", path=str(folder / "linked" / "file.txt"), edits=EDIT)
    assert (folder / "real" / "file.txt").read_text() == "known\n"
    assert agent.history()[-1].edit.path == os.fsencode(f"{folder.name}/real/file.txt")


def test_loop_of_links_is_refused(agent: Agent, folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    for path in (folder / "a", folder / "a" / "file.txt"):
        for code, _ in attempts(agent, str(path), folder / "inside"):
            assert code in {-32001, -32002, -32026, -32031, -32032, -32600}


@pytest.mark.parametrize("name", [".cas", ".CAS", ".cas/", "./.cas", ".Cas", ".c\u200das"])
def test_store_is_out_of_reach(agent: Agent, folder: Path, name: str) -> None:
    agent.done("write_file", path=str(folder / "file.txt"), content="so that there is a store\n")
    for path in (f"{agent.root}/{name}/lock", f"{name}/lock", f"{name}/new"):
        for code, message in attempts(agent, path, folder / "inside"):
            assert (code, message) == (-32002, f"Permission denied: {path}")
    assert agent.call("list_directory", path=name).error["code"] == -32002
    assert agent.call("create_directory", path=f"{name}/x").error["code"] == -32002


@pytest.mark.parametrize("name", [".git", ".hg", ".svn", ".jj"])
def test_folders_of_version_control_are_not_written(agent: Agent, folder: Path, name: str) -> None:
    (folder / name).mkdir()
    (folder / name / "config").write_text(PRIVATE)
    path = str(folder / name / "config")
    assert agent.call("write_file", path=path, content="x").error["code"] == -32002
    assert agent.call("multi_edit_text_file", path=path, edits=EDIT).error["code"] == -32002
    assert agent.call("delete_file", path=path).error["code"] == -32002
    assert (folder / name / "config").read_text() == PRIVATE


@pytest.mark.parametrize("path", ["", "a\0b", "/etc/\0", "\0", "x" * 300, "x/" * 3000])
def test_invalid_path_is_refused(agent: Agent, path: str) -> None:
    for tool in ("read_file", "list_directory", "delete_file", "create_directory"):
        assert agent.call(tool, path=path).refused
    assert agent.call("write_file", path=path, content="x").refused


def test_names_with_newlines_quotes_and_escapes_are_supported(agent: Agent, folder: Path) -> None:
    for name in ("a\nb", 'quo"te', "esc\x1b[2J", "täb\t", " lead", "trail ", "-rf", "日本"):
        path = str(folder / name)
        agent.done("write_file", path=path, content=PRIVATE)
        agent.done("multi_edit_text_file", path=path, edits=EDIT)
        assert agent.done("read_file", path=path).structured["path"] == path
        assert (folder / name).read_text() == "known\n"


def create_undecodable_names(folder: Path) -> Path:
    """Create a file and a folder whose names are not UTF-8; return the file."""
    (folder / os.fsdecode(b"caf\xe9")).mkdir()
    (folder / os.fsdecode(b"caf\xe9/menu.txt")).write_text("known\n")
    file = folder / os.fsdecode(b"caf\xe9.txt")
    file.write_text("known\n")
    return file


@pytest.mark.parametrize("name", [r"caf\udce9.txt", r"caf\udce9/menu.txt"])
def test_escaped_form_of_a_name_that_is_not_utf8_is_refused(agent: Agent, folder: Path, name: str) -> None:
    create_undecodable_names(folder)
    (folder / "other").write_text("other\n")
    path, before = str(folder / name), sorted(os.walk(os.fsencode(folder)))
    calls: list[tuple[str, dict[str, object]]] = [
        ("read_file", {"path": path}),
        ("get_file_info", {"path": path}),
        ("write_file", {"path": path, "content": "mine\n"}),
        ("multi_edit_text_file", {"path": path, "edits": EDIT}),
        ("delete_file", {"path": path}),
        ("move_file", {"source": path, "destination": str(folder / "new")}),
        ("move_file", {"source": str(folder / "other"), "destination": path}),
    ]
    for tool, arguments in calls:
        error = agent.call(tool, **arguments).error
        assert (error["type"], error["message"]) == ("invalid_request", f"Not a usable path: {path}"), tool
        assert error["hint"].startswith("The name shown so is not UTF-8")
    assert sorted(os.walk(os.fsencode(folder))) == before


def test_existing_name_that_looks_like_an_escaped_one_is_supported(agent: Agent, folder: Path) -> None:
    path = str(folder / r"caf\udce9.txt")
    agent.done("write_file", path=path, content="mine\n")
    agent.done("read_file", path=path)
    create_undecodable_names(folder)
    agent.done("write_file", path=path, content="mine again\n")
    assert (folder / r"caf\udce9.txt").read_text() == "mine again\n"


def test_listings_warn_about_names_that_no_tool_can_use(agent: Agent, folder: Path) -> None:
    create_undecodable_names(folder)
    (folder / "plain.txt").write_text("plain\n")
    path = str(folder)
    warning = r"Names with \udcNN are not UTF-8, and no tool can use them: a person can rename them."
    calls: list[tuple[str, dict[str, object], dict[str, object]]] = [
        ("search_files", {"pattern": "*.txt"}, {"pattern": "plain*"}),
        ("grep_files", {"keyword": "known"}, {"keyword": "plain"}),
        ("directory_tree", {}, {"path": str(folder / "sub")}),
        ("list_directory", {}, {"path": str(folder / "sub")}),
    ]
    (folder / "sub").mkdir()
    for tool, with_undecodable, without_undecodable in calls:
        assert warning in agent.done(tool, **{"path": path, **with_undecodable}).texts[-1], tool
        assert warning not in agent.done(tool, **{"path": path, **without_undecodable}).texts[-1], tool


def test_missing_name_hints_at_an_existing_one_in_another_unicode_form(agent: Agent, folder: Path) -> None:
    (folder / "do\u0301c").mkdir()
    (folder / "do\u0301c/nai\u0308ve.txt").write_text("secret\n")
    ending = ", which is the same name in another Unicode form: give it as it is there"
    calls: list[tuple[str, dict[str, object]]] = [
        ("read_file", {}),
        ("read_text_file", {}),
        ("get_file_info", {}),
        ("edit_file_diff", {"diff": DIFF}),
        ("multi_edit_text_file", {"edits": EDIT}),
        ("delete_file", {}),
    ]
    for written_path, existing_name in (("do\u0301c/na\u00efve.txt", r"nai\u0308ve.txt"), ("d\u00f3c/x", r"do\u0301c")):
        for tool, arguments in calls:
            path = str(folder / written_path)
            refused = agent.call(tool, path=path, **arguments)
            assert refused.text.startswith(f"File not found: {path}"), tool
            assert refused.error["hint"] == f'There is "{existing_name}"{ending}', tool
    refused = agent.call("list_directory", path=str(folder / "d\u00f3c"))
    assert refused.error["hint"] == rf'There is "do\u0301c"{ending}'
    # A name that looks different gets no hint.
    assert "hint" not in agent.call("read_file", path=str(folder / "n\u00efve.txt")).error


def test_file_that_is_not_regular_is_refused_at_once(agent: Agent, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    path = str(folder / "fifo")
    for code, _ in attempts(agent, path, folder / "inside"):
        assert code in {-32032, -32031}


@pytest.mark.parametrize("by", ["command line", "client"])
def test_served_directory_can_be_named_by_its_link(tmp_path: Path, by: str) -> None:
    real, link = tmp_path / "real", tmp_path / "project"
    (real / "sub").mkdir(parents=True)
    (real / "file.txt").write_text(PRIVATE)
    link.symlink_to("real")
    served, named = ([link], None) if by == "command line" else ([], lambda: [link.as_uri()])
    with connected(real, served=served, client_roots=named) as agent:
        agent.done("write_file", path=str(link / "new.txt"), content="new\n")
        for path in (f"{link}", f"{link}/", f"{link}/."):
            listed = agent.done("list_directory", path=path).structured
            assert (listed["path"], [entry["name"] for entry in listed["entries"]]) == (
                str(real),
                ["file.txt", "new.txt", "sub"],
            )
            assert len(agent.done("directory_tree", path=path).structured["entries"]) == 3
            assert agent.done("search_files", path=path, pattern="file").structured["paths"] == [f"{real}/file.txt"]
            assert agent.done("grep_files", path=path, keyword="secret").structured["matches"]
            assert agent.done("get_file_info", path=path).structured["type"] == "directory"
            assert len(agent.done("list_edits", directory=path).structured["edits"]) == 1
            agent.done("create_directory", path=path)
            for tool, arguments in (("write_file", {"content": "x"}), ("delete_file", {})):
                assert agent.call(tool, path=path, **arguments).refused
        # The target of the link is resolved at the start: a link that now leads elsewhere is refused.
        (tmp_path / "elsewhere").mkdir()
        link.unlink()
        link.symlink_to("elsewhere")
        assert agent.call("list_directory", path=str(link)).error["code"] == -32002
    assert link.is_symlink()


def test_root_that_is_a_link_into_a_served_directory_can_be_listed(tmp_path: Path) -> None:
    root, link = tmp_path / "root", tmp_path / "link"
    (root / "part" / "sub").mkdir(parents=True)
    link.symlink_to("root/part")
    with connected(root, client_roots=lambda: [link.as_uri()]) as agent:
        entries = agent.done("list_directory", path=str(link)).structured["entries"]
        assert [entry["name"] for entry in entries] == ["sub"]
        assert agent.call("list_directory", path=str(root)).error["code"] == -32002


# ---- several directories


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    base = tmp_path_factory.mktemp("several").resolve()
    for name in ("one", "one-more", "one/inner"):
        (base / name).mkdir()
    with connected(base / "one", base / "one-more", base / "one" / "inner") as agent:
        yield agent


def test_edit_is_recorded_in_the_innermost_served_directory(pair: Agent) -> None:
    base = pair.root.parent
    for name in ("one", "one-more", "one/inner"):
        pair.done("write_file", path=str(base / name / "file.txt"), content=f"{name}\n")
        with Workspace.open(base / name) as workspace:
            assert [view.edit.path for view in workspace.history.edits()] == [b"file.txt"]


def test_path_must_be_absolute_with_several_directories(pair: Agent) -> None:
    for tool, arguments in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file_diff", {"diff": DIFF}),
        ("multi_edit_text_file", {"edits": EDIT}),
        ("delete_file", {}),
        ("list_directory", {}),
        ("create_directory", {}),
    ):
        error = pair.call(tool, path="file.txt", **arguments).error
        assert (error["code"], error["message"]) == (-32600, "Path must be absolute: file.txt")


@pytest.mark.parametrize("ending", ["/", "//", "/."])
def test_path_with_a_trailing_slash_changes_no_file(agent: Agent, folder: Path, ending: str) -> None:
    (folder / "file.txt").write_text(PRIVATE)
    inside = f"{folder.name}/file.txt"
    refused = [
        agent.call("write_file", path=f"{folder.name}/new{ending}", content="x"),
        agent.call("write_file", path=inside + ending, content="x"),
        agent.call("delete_file", path=inside + ending),
        agent.call("move_file", source=inside, destination=f"{folder.name}/new{ending}"),
        agent.call("edit_file_diff", path=inside + ending, diff=DIFF),
        agent.call("multi_edit_text_file", path=f"{folder}/file.txt{ending}", edits=EDIT),
    ]
    assert {(result.error["type"], result.error["code"]) for result in refused} == {("invalid_request", -32600)}
    assert refused[0].texts == [
        f"Not the path of a file, for it ends as a directory's: {folder.name}/new{ending}",
        "Leave the slash out if a file is meant; create_directory makes a directory.",
    ]
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("file.txt", PRIVATE)]
    agent.done("create_directory", path=f"{folder.name}/new{ending}")
    assert agent.done("list_directory", path=f"{folder.name}/new{ending}").structured["entries"] == []


@pytest.mark.parametrize(
    ("path", "expected_hint"), [("~", "./~"), ("~/file.txt", "./~"), ("file:///file.txt", "without file://")]
)
def test_home_and_file_addresses_are_refused(agent: Agent, path: str, expected_hint: str) -> None:
    before = sorted(agent.root.iterdir())
    for tool, arguments in (("read_file", {}), ("write_file", {"content": "x"}), ("create_directory", {})):
        result = agent.call(tool, path=path, **arguments)
        assert (result.error["code"], result.text) == (-32600, f"Path must be absolute: {path}")
        assert expected_hint in result.error["hint"]
    assert sorted(agent.root.iterdir()) == before


def test_name_that_starts_with_a_tilde_is_supported(agent: Agent, folder: Path) -> None:
    for path in (f"{folder.name}/~", f"./{folder.name}/~x", "~x"):
        agent.done("write_file", path=path, content=PRIVATE)
        assert agent.done("read_file", path=path).structured["content"] == PRIVATE
    agent.done("delete_file", path="~x")


def test_path_may_be_relative_to_the_only_directory(agent: Agent, folder: Path) -> None:
    path = f"{folder.name}/file.txt"
    assert agent.done("write_file", path=path, content=PRIVATE).structured["path"] == str(folder / "file.txt")
    agent.done("edit_file_diff", path=f"./{path}", diff=DIFF)
    assert agent.done("read_file", path=path).structured["content"] == "known\n"
    entries = agent.done("list_directory", path=folder.name).structured["entries"]
    assert [entry["name"] for entry in entries] == ["file.txt"]


def test_move_between_served_directories_is_refused(pair: Agent) -> None:
    base = pair.root.parent
    pair.done("write_file", path=str(base / "one" / "here.txt"), content="x\n")
    error = pair.call(
        "move_file", source=str(base / "one" / "here.txt"), destination=str(base / "one-more" / "there.txt")
    ).error
    assert error["code"] == -32600
    assert (base / "one" / "here.txt").exists()


def test_directory_that_can_not_be_a_workspace_is_reported_and_others_work(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    (tmp_path / "bad" / ".cas").write_text("no store\n")
    with connected(tmp_path / "good", tmp_path / "bad") as agent:
        error = agent.call("write_file", path=str(tmp_path / "bad" / "file.txt"), content="x\n").error
        assert error["type"] == "io_error"
        agent.done("write_file", path=str(tmp_path / "good" / "file.txt"), content="x\n")
    assert [path.name for path in (tmp_path / "bad").iterdir()] == [".cas"]


def test_link_that_replaces_the_file_during_a_call_is_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    (tmp_path / "other").write_text("other\n")
    failures: list[FailureKind] = []

    def act() -> None:
        file.unlink()
        file.symlink_to("other")

    with closing(Directories([str(tmp_path)])) as directories:
        tools = Tools(directories, Session(), ServerLimits())
        for point in interruption_points():
            file.unlink(missing_ok=True)
            file.write_text(PRIVATE)
            try:
                with interrupted_at(point, act):
                    tools.validate_patch(str(file), DIFF)
            except Failure as failure:
                failures.append(failure.kind)
    assert set(failures) == {FailureKind.SYMLINK}
