"""The tools without a server: limits, and arguments that can't be sent over the wire."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from mcptools.catalog.tool_list import TOOLS
from mcptools.files.workspaces import Directories
from mcptools.model.cancellation import Cancelled, Watch
from mcptools.model.failures import Failure, FailureKind
from mcptools.model.limits import ServerLimits
from mcptools.model.session import Session
from mcptools.tools.editing import EditOp
from mcptools.tools.tool_methods import TOOL_METHODS
from objstore import Workspace
from tests.support.direct_tools import Tools
from tests.support.path_sandbox import as_unprivileged_user


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    directories = Directories([str(tmp_path)])
    yield Tools(directories, Session(), ServerLimits(max_file_bytes=8))
    directories.close()


def test_tool_methods_are_exactly_the_tools_of_the_catalogue() -> None:
    assert set(TOOL_METHODS) == set(TOOLS)


def test_edit_with_a_time_outside_the_calendar_is_listed_and_shown(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objstore.review.calls.edit_recorder.now", lambda: 2**63 - 1)
    tools.write_file(str(tmp_path / "a"), "x\n")
    assert [edit.time[:10] for edit in tools.list_edits().content.edits] == ["9999-12-30"]
    assert tools.show_edit(1).content.edit.time.startswith("9999-12-30")


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system with such distant times")  # noqa: S108 - only checked for existence
def test_file_info_supports_a_time_outside_the_calendar() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, closing(Directories([folder])) as directories:
        file = Path(folder) / "a"
        file.touch()
        os.utime(file, (1, 300_000_000_000))
        found = Tools(directories, Session(), ServerLimits()).get_file_info(str(file))
        assert found.content.modified.startswith("9999-12-30")


def test_an_answer_says_that_the_bytes_of_a_secret_are_stored(tmp_path: Path) -> None:
    directories = Directories([str(tmp_path)])
    tools = Tools(directories, Session(), ServerLimits())
    said = "`cas purge 'my keys/server.key'` removes them."
    (tmp_path / "my keys").mkdir()
    written = tools.write_file(str(tmp_path / "my keys" / "server.key"), "one\n")
    edited = tools.multi_edit_text_file(
        str(tmp_path / "my keys" / "server.key"), [EditOp(old_string="one", new_string="two")]
    )
    moved = tools.move_file(str(tmp_path / "my keys" / "server.key"), str(tmp_path / "a.txt"))
    for answer in (written, edited, moved):
        assert [said in note for note in answer.notes if "secret" in note] == [True]
    assert not [note for note in tools.write_file(str(tmp_path / "b.txt"), "x\n").notes if "secret" in note]
    directories.close()


def test_file_size_limit_applies_to_reads_and_edits(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "fits").write_text("12345678")
    (tmp_path / "over").write_text("123456789")
    assert tools.read_file(str(tmp_path / "fits")).content.size == 8
    edits = [EditOp(old_string="1", new_string="one")]
    tools.multi_edit_text_file(str(tmp_path / "fits"), edits)
    for call in (
        partial(tools.read_file, str(tmp_path / "over")),
        partial(tools.read_text_file, str(tmp_path / "over")),
        partial(tools.multi_edit_text_file, str(tmp_path / "over"), edits),
    ):
        with pytest.raises(Failure, match="File too large: 9 bytes") as refusal:
            call()
        assert refusal.value.kind is FailureKind.RESOURCE_LIMIT


def test_half_a_surrogate_pair_is_refused_and_not_written(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for call in (
        partial(tools.write_file, str(file), "\ud800"),
        partial(tools.multi_edit_text_file, str(file), [EditOp(old_string="text", new_string="\udcff")]),
    ):
        with pytest.raises(Failure) as refusal:
            call()
        assert refusal.value.kind is FailureKind.ENCODING
    with pytest.raises(Failure) as refusal:
        tools.read_file(str(tmp_path / "\ud800"))
    assert refusal.value.kind is FailureKind.INVALID_REQUEST
    assert file.read_text() == "text"


def test_cancelled_call_searches_no_further_edit(tools: Tools, tmp_path: Path) -> None:
    file = tmp_path / "file"
    tools.write_file(str(file), "text")
    watch = Watch(lambda *_: watch.cancel())  # while it waits for the writer lock
    with pytest.raises(Cancelled):
        watch.run(lambda: tools.multi_edit_text_file(str(file), [EditOp(old_string="not there", new_string="")]))


def test_unreadable_store_is_named_by_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("CAS_SAFE_DIRECTORY", folder)  # it belongs to another user
        Path(folder).chmod(0o755)
        (Path(folder) / "file").write_text("text\n")
        Workspace.init(folder).close()
        store = Path(folder).resolve() / ".cas"
        store.chmod(0)
        try:
            with closing(Directories([folder])) as directories, as_unprivileged_user():
                tools = Tools(directories, Session(), ServerLimits())
                for call in (
                    tools.list_edits,
                    partial(tools.list_edits, path="file"),
                    partial(tools.show_edit, 1),
                    partial(tools.write_file, "file", "other\n"),
                ):
                    with pytest.raises(Failure, match=f"^Permission denied: {store}$") as refusal:
                        call()
                    assert refusal.value.hint
        finally:
            store.chmod(0o700)


def test_file_in_an_unwritable_folder_is_reported_as_unwritable() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "shut").mkdir()
        for file in (root / "shut" / "file", root / "file"):
            file.write_text("a\n")
            file.chmod(0o666)
        for folder, mode in ((root / "shut", 0o555), (root, 0o777)):
            folder.chmod(mode)
        patch = "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
        try:
            with closing(Directories([name])) as directories, as_unprivileged_user():
                tools = Tools(directories, Session(), ServerLimits(min_free_space=0))
                reason = "File is not writable: shut/file"
                assert tools.apply_patch("shut/file", patch, dry_run=True).notes == (
                    f"The patch fits, but applying it now would be refused: {reason}",
                )
                with pytest.raises(Failure, match=f"^{reason}$") as refusal:
                    tools.apply_patch("shut/file", patch)
                assert refusal.value.kind is FailureKind.PERMISSION_DENIED
                assert tools.apply_patch("file", patch, dry_run=True).notes == ()
                writable = [tools.get_file_info(path).content.writable for path in ("shut/file", "shut", "file", ".")]
                assert writable == [False, False, True, True]
        finally:
            (root / "shut").chmod(0o755)


def test_directory_name_can_not_forge_a_line_of_an_answer(tmp_path: Path) -> None:
    roots = [tmp_path / "a\nb", tmp_path / "c"]
    for root in roots:
        root.mkdir()
    with closing(Directories([str(root) for root in roots])) as directories:
        tools = Tools(directories, Session(), ServerLimits())
        allowed = tools.list_allowed_directories()
        assert allowed.content.directories == [str(root) for root in roots]
        assert allowed.text == f"{str(roots[0])!r}\n{roots[1]}"
        for call in (partial(tools.read_file, "/etc/passwd"), tools.list_edits):
            with pytest.raises(Failure) as refusal:
                call()
            assert refusal.value.hint.endswith(f"{str(roots[0])!r}, {roots[1]}")


def test_name_that_is_not_utf8_can_be_listed(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "caf\udce9").touch()
    (entry,) = tools.list_directory(str(tmp_path)).content.entries
    assert entry.name == "caf\\udce9"
