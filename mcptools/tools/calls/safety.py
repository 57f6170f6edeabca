"""Check a file before a patch tool uses it, with the checks and messages of the patch tools' document."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from mcptools.edit.display import shown
from mcptools.model.failures import Failure, FailureKind, failure_of
from mcptools.tools.context import ToolContext
from objstore import (
    CasError,
    Content,
    DiskFailed,
    Files,
    FileTooLarge,
    PathInfo,
    PathInvalid,
    PathIsDirectory,
    PathNotRegular,
    PathOutside,
)

__all__ = ["SafetyChecks", "refusing"]

_REQUIRED_SPACE_FACTOR = 1.1
"""How many times a file's size must be free on the disk before the file is rewritten."""

_UTF16: Final = (
    "It is UTF-16, which the patch tools don't take: edit_file_diff applies the same diff, and multi_edit_text_file "
    "replaces strings."
)


class SafetyChecks:
    """The safety checks of the patch tools."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def checked(self, path: str, *, write: bool = False, space: bool = False) -> Content:
        """Return the content of a regular text file within the limits. Raises Failure.

        `write`: also check that it is writable; `space`: also check for free disk space. A tool that changes the file
        reads it again under the lock.
        """
        return self.checked_with_facts(path, write=write, space=space)[0]

    def checked_with_facts(self, path: str, *, write: bool = False, space: bool = False) -> tuple[Content, PathInfo]:
        """Return what `checked` does, and the file's size, times and permissions from before it was read."""
        limit = self._context.limits.max_file_bytes
        with _wording(path):
            files = self._files_of(path)
            facts = files.facts(path)
            if facts.kind == "symlink":
                raise Failure(FailureKind.SYMLINK, f"Symlinks are not allowed (security policy): {shown(path)}")
            if facts.kind != "file":
                raise Failure(FailureKind.IO, f"Not a regular file: {shown(path)}")
            found = files.read(path, limit=limit, follow=False)
            if self._context.has_binary_bytes(found.bytes):
                # The document counts every file with a NUL as binary, and so UTF-16.
                hint = "" if self._context.is_binary(found.bytes) else _UTF16
                raise Failure(FailureKind.BINARY_FILE, f"Binary files are not supported: {shown(path)}", hint=hint)
            if write and not facts.writable:
                raise Failure(FailureKind.PERMISSION_DENIED, f"File is not writable: {shown(path)}")
            if space:
                self._check_space(files, path, len(found.bytes))
        return found, facts

    def has(self, path: str) -> bool:
        """Return whether something is at a path that this server may read."""
        try:
            return _facts(self._files_of(path), path) is not None
        except (CasError, Failure):
            return False

    def check_target(self, path: str) -> None:
        """Check the path that a file is to be written to, which need not exist. Raises Failure."""
        with _wording(path):
            files = self._files_of(path)
            facts = _facts(files, path)
            if facts is not None and facts.kind == "symlink":
                raise Failure(FailureKind.SYMLINK, f"Symlinks are not allowed (security policy): {shown(path)}")
            if facts is not None and facts.kind != "file":
                raise Failure(FailureKind.IO, f"Not a regular file: {shown(path)}")
            _free_space(files, path)  # raises where nothing may be written

    def check_writable(self, path: str, size: int, *, reserve: bool) -> None:
        """Check that `size` bytes may be written to a path, which need not exist. Raises Failure.

        `reserve`: the disk must have as much free space as no tool uses up.
        """
        with _wording(path):
            files = self._files_of(path)
            facts = _facts(files, path)
            if facts is not None and not facts.writable:
                raise Failure(FailureKind.PERMISSION_DENIED, f"File is not writable: {shown(path)}")
            self._check_space(files, path, size, reserve=reserve)

    def _files_of(self, path: str) -> Files:
        try:
            return self._context.directories.files_of(path)
        except Failure as failure:
            if failure.kind is FailureKind.PERMISSION_DENIED:
                raise _escape(path, failure.hint) from failure
            if failure.kind is FailureKind.INVALID_REQUEST:
                raise _invalid(path, str(failure), failure.hint) from failure
            raise

    def _check_space(self, files: Files, path: str, size: int, *, reserve: bool = True) -> None:
        free, minimum = _free_space(files, path), self._context.limits.min_free_space if reserve else 0
        if free < minimum:
            raise Failure(FailureKind.DISK_SPACE, f"Insufficient disk space: {free} bytes free (minimum: {minimum})")
        needed = int(size * _REQUIRED_SPACE_FACTOR)
        if free < needed:
            raise Failure(
                FailureKind.DISK_SPACE, f"Insufficient disk space for operation: {free} bytes free, {needed} needed"
            )


@contextmanager
def refusing(**fields: object) -> Iterator[None]:
    """Add the fields that the document requires to every failure."""
    try:
        yield
    except Failure as failure:
        raise failure.with_facts(**fields) from failure


@contextmanager
def _wording(path: str) -> Iterator[None]:
    """Convert errors of paths to failures with the document's messages."""
    try:
        yield
    except PathOutside as error:
        raise _escape(path, shown(str(error))) from error
    except PathInvalid as error:
        raise _invalid(path, shown(f"{error.reason}: {path!r}")) from error
    except (PathIsDirectory, PathNotRegular) as error:
        raise Failure(FailureKind.IO, f"Not a regular file: {shown(path)}") from error
    except FileTooLarge as error:
        message = f"File too large: {error.size} bytes (max: {error.limit})"
        raise Failure(FailureKind.RESOURCE_LIMIT, message, size=error.size, limit=error.limit) from error
    except (CasError, OSError) as error:
        raise failure_of(error, path) from error


def _facts(files: Files, path: str) -> PathInfo | None:
    """Return the facts about a path, or None if nothing is there. Raises PathError."""
    try:
        return files.facts(path)
    except CasError as error:
        if failure_of(error, path).kind is not FailureKind.FILE_NOT_FOUND:
            raise
    return None


def _free_space(files: Files, path: str) -> int:
    """Return how many bytes may still be written where a path is. Raises Failure, and PathError."""
    try:
        return files.free_space(path)
    except (DiskFailed, OSError) as error:
        raise Failure(FailureKind.IO, f"Cannot check disk space: {shown(str(error))}") from error


def _invalid(path: str, reason: str, hint: str = "") -> Failure:
    return Failure(FailureKind.INVALID_REQUEST, f"Invalid path: {reason}", hint=hint, path=shown(path))


def _escape(path: str, hint: str) -> Failure:
    return Failure(
        FailureKind.PERMISSION_DENIED,
        f"Path attempts to escape base directory: {shown(path)}",
        hint=hint,
        path=shown(path),
    )
