"""Define every failure of a tool: one list of codes and types, and facts that help a client to recover."""

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from json import dumps
from typing import Final

from mcptools.edit.display import shown
from objstore import (
    DAMAGE,
    BlobTooLarge,
    CallAborted,
    CasError,
    ConversationReserved,
    DiskFailed,
    DiskFull,
    EditAway,
    EditExpired,
    FileChanged,
    FileExists,
    FileMissing,
    FileTooLarge,
    FormatTooOld,
    NamesShared,
    PathError,
    PathInvalid,
    PathIsSymlink,
    PathOutside,
    PathReserved,
    PermissionRefused,
    StoreLocked,
)

__all__ = ["Failure", "FailureKind", "LazyFailure", "failure_of", "resolving_lazy_failures"]


class FailureKind(Enum):
    """The kind of a failure: a number (`code`) and a name (`type`), which stay the same across releases.

    Numbers that the document of `multi_edit_text_file` defines, and names that the patch tools' document defines, are
    used as they are.
    """

    FILE_NOT_FOUND = (-32001, "file_not_found")
    PERMISSION_DENIED = (-32002, "permission_denied")
    BINARY_FILE = (-32004, "binary_file")
    STRING_NOT_FOUND = (-32010, "string_not_found")
    STRING_AMBIGUOUS = (-32011, "string_ambiguous")
    EDITS_CONFLICT = (-32012, "edits_conflict")
    STALE_FILE = (-32020, "stale_file")
    ANCHOR_NOT_FOUND = (-32021, "anchor_not_found")
    ANCHOR_AMBIGUOUS = (-32022, "anchor_ambiguous")
    LOCKED = (-32023, "locked")
    RESOURCE_LIMIT = (-32024, "resource_limit")
    DISK_SPACE = (-32025, "disk_space_error")
    SYMLINK = (-32026, "symlink_error")
    ENCODING = (-32027, "encoding_error")
    REVIEW_CONFLICT = (-32028, "review_conflict")
    INVALID_PATCH = (-32029, "invalid_patch")
    CONTEXT_MISMATCH = (-32030, "context_mismatch")
    FILE_EXISTS = (-32031, "file_exists")
    IO = (-32032, "io_error")
    NOTHING_TO_UNDO = (-32033, "nothing_to_undo")
    NOT_APPROVED = (-32034, "not_approved")
    REBASE_CONFLICT = (-32035, "rebase_conflict")
    EXPIRED = (-32036, "expired")
    INVALID_REQUEST = (-32600, "invalid_request")
    INTERNAL = (-32603, "internal_error")

    @property
    def code(self) -> int:
        """Return the number."""
        return self.value[0]

    @property
    def type(self) -> str:
        """Return the name."""
        return self.value[1]

    @property
    def patch_type(self) -> str:
        """Return the name that the patch tools give: one of the ten of their document."""
        return _PATCH_KINDS.get(self, self).type


_PATCH_KINDS: Final[Mapping[FailureKind, FailureKind]] = {
    FailureKind.STRING_NOT_FOUND: FailureKind.CONTEXT_MISMATCH,
    FailureKind.STRING_AMBIGUOUS: FailureKind.CONTEXT_MISMATCH,
    FailureKind.EDITS_CONFLICT: FailureKind.CONTEXT_MISMATCH,
    FailureKind.STALE_FILE: FailureKind.CONTEXT_MISMATCH,
    FailureKind.ANCHOR_NOT_FOUND: FailureKind.CONTEXT_MISMATCH,
    FailureKind.ANCHOR_AMBIGUOUS: FailureKind.CONTEXT_MISMATCH,
    FailureKind.LOCKED: FailureKind.RESOURCE_LIMIT,  # the document's word for an operation that timed out
    FailureKind.REVIEW_CONFLICT: FailureKind.CONTEXT_MISMATCH,
    FailureKind.FILE_EXISTS: FailureKind.IO,
    FailureKind.NOTHING_TO_UNDO: FailureKind.IO,
    FailureKind.NOT_APPROVED: FailureKind.PERMISSION_DENIED,
    FailureKind.REBASE_CONFLICT: FailureKind.CONTEXT_MISMATCH,
    FailureKind.EXPIRED: FailureKind.IO,
    FailureKind.INVALID_REQUEST: FailureKind.IO,  # as the document reports an invalid path
    FailureKind.INTERNAL: FailureKind.IO,
}
"""What the patch tools report in place of the kinds that their document does not know."""


class Failure(Exception):
    """A tool refused or failed, and changed no file."""

    def __init__(self, kind: FailureKind, message: str, /, *, hint: str = "", **facts: object) -> None:
        self.kind = kind
        self.hint = hint  # a sentence that helps the model to correct the call; "": the message is enough
        self.facts: Mapping[str, object] = facts
        super().__init__(message)

    def error(self) -> dict[str, object]:
        """Return the failure as structured content: code, type, message, the hint if there is one, and the facts."""
        hint = {"hint": self.hint} if self.hint else {}
        return {"code": self.kind.code, "type": self.kind.type, "message": str(self), **hint, **self.facts}

    def flat(self) -> dict[str, object]:
        """Return the failure as structured content of the patch tools, with the facts on the same level as `error`.

        `error_type` is one of the document's ten; where ours says more, it is there as `type`.
        """
        finer = {} if self.kind.type == self.kind.patch_type else {"type": self.kind.type}
        hint = {"hint": self.hint} if self.hint else {}
        facts = {"success": False, **self.facts, "error": str(self), "error_type": self.kind.patch_type}
        return {**facts, **finer, **hint}

    def with_facts(self, **facts: object) -> "Failure":
        """Return the failure with these facts added to its own."""
        return Failure(self.kind, str(self), hint=self.hint, **{**self.facts, **facts})


class LazyFailure(Failure):
    """A failure whose full explanation takes time, and is computed after the writers' lock is released."""

    def __init__(self, kind: FailureKind, message: str, explain: Callable[[], Failure]) -> None:
        super().__init__(kind, message)
        self.explain = explain


@contextmanager
def resolving_lazy_failures() -> Iterator[None]:
    """Replace a LazyFailure by its full explanation."""
    try:
        yield
    except LazyFailure as refusal:
        raise refusal.explain() from refusal


_ELSEWHERE: Final = "That is another mount: write the file there and delete it here."

_PERMISSION_HINT: Final = "A person has to let the server read and write there."

_DAMAGE_HINT: Final = "A person can run `cas fsck` to see what is damaged and which files that affects."

_CONVERSION_HINT: Final = "A person has to run `cas store convert` once."

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_KIND_OF: Final[Mapping[type[CasError], FailureKind]] = {
    FileMissing: FailureKind.FILE_NOT_FOUND,
    PathOutside: FailureKind.PERMISSION_DENIED,
    PathReserved: FailureKind.PERMISSION_DENIED,
    PermissionRefused: FailureKind.PERMISSION_DENIED,
    PathInvalid: FailureKind.INVALID_REQUEST,
    NamesShared: FailureKind.INVALID_REQUEST,
    PathIsSymlink: FailureKind.SYMLINK,
    FileTooLarge: FailureKind.RESOURCE_LIMIT,
    BlobTooLarge: FailureKind.RESOURCE_LIMIT,
    FileChanged: FailureKind.STALE_FILE,
    FileExists: FailureKind.FILE_EXISTS,
    StoreLocked: FailureKind.LOCKED,
    DiskFull: FailureKind.DISK_SPACE,
    EditExpired: FailureKind.EXPIRED,
    EditAway: FailureKind.REVIEW_CONFLICT,
    ConversationReserved: FailureKind.INVALID_REQUEST,
}


def failure_of(error: CasError | OSError, *paths: str) -> Failure:
    """Return the failure that reports `error`, which happened in a call on `paths`.

    It names the one of `paths`, as the client wrote them, that the error is about.
    """
    match error:
        case PathError():
            # `src/config.py` also ends in `config.py`, so the shortest path that ends so is meant. An absolute path
            # that is not one of them is a served directory that is gone, has become a link, or may not be used, or it
            # is inside the store.
            is_whole = isinstance(error, FileMissing | PathIsSymlink | PermissionRefused) and error.path.startswith("/")
            others = error.path if is_whole else paths[0]
            about = min((path for path in paths if _is_about(error, path)), key=len, default=others)
            return _failure_of_path(error, about, is_shut=about not in paths)
        case CallAborted(__cause__=DiskFailed(__cause__=OSError(errno=errno.EXDEV))):
            return Failure(FailureKind.IO, shown(str(error)), hint=_ELSEWHERE)
        case CasError():
            hint = _DAMAGE_HINT if isinstance(error, DAMAGE) else ""
            hint = _CONVERSION_HINT if isinstance(error, FormatTooOld) else hint
            return Failure(_KIND_OF.get(type(error), FailureKind.IO), shown(str(error)), hint=hint)
        case PermissionError():
            about = _place_of(error, paths[0])
            hint = "" if about in paths else _PERMISSION_HINT
            return Failure(FailureKind.PERMISSION_DENIED, f"Permission denied: {shown(about)}", hint=hint, path=about)
        case _:
            about = _place_of(error, paths[0])
            kind = FailureKind.DISK_SPACE if error.errno in _NO_SPACE else FailureKind.IO
            return Failure(kind, f"{error.strerror or type(error).__name__}: {shown(about)}", path=about)


def _is_about(error: PathError, path: str) -> bool:
    return path == error.path or path.endswith(f"/{error.path}")


def _place_of(error: OSError, path: str) -> str:
    """Return the absolute path in the system's error, or `path` if it has none.

    For the paths that a tool is given, the system is called with a name in an open folder, which is not absolute.
    """
    return error.filename if isinstance(error.filename, str) and error.filename.startswith("/") else path


def _failure_of_path(error: PathError, path: str, *, is_shut: bool) -> Failure:
    kind = _KIND_OF.get(type(error), FailureKind.IO)
    sentence = str(error)
    if sentence.endswith(error.path):
        sentence = sentence.removesuffix(error.path) + path
    sentence = shown(sentence)
    match error:
        case PathOutside() | PathReserved():
            return Failure(kind, f"Permission denied: {shown(path)}", hint=sentence, path=path)
        case FileMissing(other=str(other)) if other:
            hint = f"There is {dumps(other)}, which is the same name in another Unicode form: give it as it is there"
            return Failure(kind, sentence, hint=hint, path=path)
        case FileTooLarge():
            return Failure(kind, sentence, path=path, size=error.size, limit=error.limit)
        case PermissionRefused() if is_shut:
            return Failure(kind, sentence, hint=_PERMISSION_HINT, path=path)
        case _:
            return Failure(kind, sentence, path=path)
