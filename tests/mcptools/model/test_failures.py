"""Every error of the store and the system is mapped to one failure with its code and type."""

import errno
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import objstore
from mcptools.catalog.tool_list import TOOLS
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.tools.tool_methods import TOOL_METHODS


def test_failure_codes_and_types_are_unique() -> None:
    assert len({kind.code for kind in FailureKind}) == len({kind.type for kind in FailureKind}) == len(FailureKind)


def test_failure_codes_are_those_of_the_contract() -> None:
    codes = {kind.type: kind.code for kind in FailureKind}
    assert (
        codes.items()
        >= {
            "file_not_found": -32001,
            "permission_denied": -32002,
            "binary_file": -32004,
            "string_not_found": -32010,
            "string_ambiguous": -32011,
            "edits_conflict": -32012,
            "stale_file": -32020,
            "invalid_request": -32600,
        }.items()
    )


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (objstore.FileMissing("a/b"), FailureKind.FILE_NOT_FOUND, "File not found: /ws/a/b"),
        (objstore.PathOutside("a/b"), FailureKind.PERMISSION_DENIED, "Permission denied: /ws/a/b"),
        (objstore.PathReserved("a/b", "the store"), FailureKind.PERMISSION_DENIED, "Permission denied: /ws/a/b"),
        (objstore.PermissionRefused("a/b"), FailureKind.PERMISSION_DENIED, "Permission denied: /ws/a/b"),
        (
            objstore.PathIsSymlink("a/b"),
            FailureKind.SYMLINK,
            "Symlinks are not allowed (security policy): /ws/a/b",
        ),
        (objstore.PathIsDirectory("a/b"), FailureKind.IO, "Is a directory, not a file: /ws/a/b"),
        (objstore.PathNotRegular("a/b"), FailureKind.IO, "Not a regular file: /ws/a/b"),
        (objstore.FileExists("a/b"), FailureKind.FILE_EXISTS, "Already exists: /ws/a/b"),
        (
            objstore.FileTooLarge("a/b", 9, 8),
            FailureKind.RESOURCE_LIMIT,
            "File too large: 9 bytes (max: 8): /ws/a/b",
        ),
        (
            objstore.FileChanged("a/b"),
            FailureKind.STALE_FILE,
            "File changed on disk since it was read; read it again: /ws/a/b",
        ),
        (PermissionError(errno.EACCES, "x"), FailureKind.PERMISSION_DENIED, "Permission denied: /ws/a/b"),
        (OSError(errno.ENOSPC, "No space left on device"), FailureKind.DISK_SPACE, "No space left on device: /ws/a/b"),
        (OSError(errno.EIO, "Input/output error"), FailureKind.IO, "Input/output error: /ws/a/b"),
    ],
)
def test_error_names_the_path_as_the_client_wrote_it(
    error: objstore.CasError | OSError, kind: FailureKind, message: str
) -> None:
    failure = failure_of(error, "/ws/a/b")
    assert (failure.kind, str(failure)) == (kind, message)
    assert failure.error()["path"] == "/ws/a/b"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (objstore.StoreLocked("/ws/.cas/lock", 30), FailureKind.LOCKED),
        (objstore.DiskFull("/ws/a"), FailureKind.DISK_SPACE),
        (objstore.CallAborted("a", "why"), FailureKind.IO),
        (objstore.StoreDamaged(1, 2, "why"), FailureKind.IO),
        (objstore.StoreRefuses("why"), FailureKind.IO),
    ],
)
def test_store_error_keeps_its_message(error: objstore.CasError, kind: FailureKind) -> None:
    failure = failure_of(error, "/ws/a/b")
    assert (failure.kind, str(failure)) == (kind, str(error))


@pytest.mark.parametrize(
    "error", [objstore.StoreDamaged(1, 2, "why"), objstore.BlobMissing(b"b"), objstore.HistoryBroken("a", 1, "why")]
)
def test_damage_has_a_hint_for_the_person(error: objstore.CasError) -> None:
    assert "`cas fsck`" in failure_of(error, "/ws/a/b").hint


def test_a_store_of_an_early_version_has_a_hint_for_the_person() -> None:
    assert "`cas store convert`" in failure_of(objstore.FormatTooOld(), "/ws/a/b").hint


def test_error_of_a_call_with_two_paths_names_the_failing_one() -> None:
    failure = failure_of(objstore.FileExists("c/d"), "/ws/a/b", "/ws/c/d")
    assert str(failure) == "Already exists: /ws/c/d"


@pytest.mark.parametrize("paths", [("src/f", "f"), ("f", "src/f"), ("/ws/src/f", "/ws/f"), ("/ws/f", "/ws/src/f")])
def test_error_does_not_name_a_longer_path_with_the_same_ending(paths: tuple[str, str]) -> None:
    assert failure_of(objstore.FileExists("f"), *paths).facts["path"] == min(paths, key=len)


@pytest.mark.parametrize("paths", [("/ws/a/b",), ("a/b",), ("",), ("/ws/a/b", "/ws/c")])
@pytest.mark.parametrize("place", ["/ws/.cas", "/ws/.cas/lock", "/ws"])
@pytest.mark.parametrize(
    "error", [objstore.PermissionRefused, lambda place: PermissionError(errno.EACCES, "Permission denied", place)]
)
def test_refused_path_is_named_if_the_call_did_not_name_it(
    error: Callable[[str], objstore.CasError | OSError], place: str, paths: tuple[str, ...]
) -> None:
    failure = failure_of(error(place), *paths)
    assert (failure.kind, str(failure)) == (FailureKind.PERMISSION_DENIED, f"Permission denied: {place}")
    assert failure.facts == {"path": place}
    assert failure.hint == "A person has to let the server read and write there."
    assert failure_of(error(place), place).hint == ""


def test_failure_contains_its_facts() -> None:
    failure = Failure(FailureKind.IO, "why", hint="what to do", line=7)
    assert failure.error() == {
        "code": -32032,
        "type": "io_error",
        "message": "why",
        "hint": "what to do",
        "line": 7,
    }


def test_the_documentation_lists_every_failure() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text()
    listed = re.findall(r"^\| (-\d+) \| `(\w+)` \|", text, re.MULTILINE)
    assert listed == [(str(kind.code), kind.type) for kind in FailureKind]


def test_the_documentation_lists_every_tool_and_its_arguments() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)\(([\w, ]*)\)` \|", text, re.MULTILINE))
    assert set(listed) == set(TOOLS)
    for name, arguments in listed.items():
        # The page says once for all tools which of them take a conversation.
        left_out = {"self"} if name == "list_edits" else {"self", "mcp_conversation_id"}
        parameters = inspect.signature(TOOL_METHODS[name].function).parameters
        assert [each for each in arguments.split(", ") if each] == [
            each for each in parameters if each not in left_out
        ], name
