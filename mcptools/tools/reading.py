"""Read files and list directories. These tools record nothing in the store."""

import functools
import mimetypes
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final, TypeAlias

from mcptools.answers.edits import Answer, DirectoryListed, FileRead, ListedEntry, TextRead
from mcptools.answers.paging import Page, fitted, page_of
from mcptools.answers.reading import AllowedDirectories, FileDescribed, FileOfMany, FilesRead, LinesRead
from mcptools.edit.anchored import EMPTY_TEXT
from mcptools.edit.display import (
    LONGEST_WORDS,
    cut,
    decoded,
    one_line,
    shown,
    unnameable,
)
from mcptools.edit.file_text import encoding, file_text, line_endings
from mcptools.edit.hashline import hashlines, hashlines_around
from mcptools.files.regex_search import TooSlow, matching, too_slow
from mcptools.model import refusals
from mcptools.model.cancellation import progress
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.context import PathArgument, ToolContext, absolute, converting_errors, sha256
from objstore import Content, Files, date_of, split_lines

__all__ = ["LimitArgument", "OffsetArgument", "ReadingTools"]

OffsetArgument: TypeAlias = Annotated[int, "How much to skip, such as the next_offset of the previous answer"]
LimitArgument: TypeAlias = Annotated[int, "Lines at most; 0: as many as fit"]

_NOT_UTF8: Final = (
    r"Not UTF-8 throughout: other bytes are shown as \xNN and can't be written in an edit; edit around them."
)
_NO_LINE: Final = f"The file is empty. edit_text_file inserts its first lines at {EMPTY_TEXT}."
_ENDINGS: Final = {
    "crlf": "Lines end in CRLF. The edit tools keep that, also if you send LF.",
    "mixed": "Some lines end in CRLF, others in LF. The edit tools keep each line's, also if you send LF.",
    "cr": "Lines end in CR alone. The edit tools keep that, also if you send LF.",
}
_ENCODINGS: Final = {
    "utf-8-bom": "It begins with a byte-order mark of UTF-8, which the edit tools keep.",
    "utf-16-le": "It is UTF-16, little-endian, with a byte-order mark, which is not shown. The edit tools keep both.",
    "utf-16-be": "It is UTF-16, big-endian, with a byte-order mark, which is not shown. The edit tools keep both.",
}
_RANGE: Final = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_OVERHEAD: Final = 16
"""Characters of a line in an answer, without its content."""
_FIELDS: Final = 200
"""Characters of one of several files in an answer, without its path, content and error."""


class ReadingTools:
    """The tools that read files and list directories."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def read_file(self, path: PathArgument, offset: OffsetArgument = 0, limit: LimitArgument = 0) -> Answer[FileRead]:
        """Read a file's text, all or some lines. For a binary file: its type, size and hash."""
        files, found = self._context.read(path)
        answer, lines, of = self._whole(files, found, offset, limit)
        self._showed(files, found, [lines], of=of)
        return answer

    def read_text_file(
        self, path: PathArgument, offset: OffsetArgument = 0, limit: LimitArgument = 0
    ) -> Answer[TextRead]:
        """Read a text file with a tag on each line: `{line}:{tag}|{content}`."""
        files, found = self._text(path)
        content = found.bytes
        text = file_text(content).lines
        lines = split_lines(text)
        whole, utf8 = decoded(text)
        page = self._page(lines, offset, limit, size=len(whole))
        tagged, cut = self._fitted(hashlines(page.items, offset + 1))
        file_hash = sha256(content)
        self._showed(files, found, [page.span], of=len(lines))
        return Answer(
            content=TextRead(
                path=absolute(files, found.path),
                content=tagged,
                file_hash=file_hash,
                lines=len(lines),
                line_endings=line_endings(content),
                encoding=encoding(content),
                final_newline=text.endswith(b"\n"),
                utf8=utf8,
                next_offset=page.next_offset,
            ),
            text=tagged,
            notes=(
                f"file_hash: {file_hash}",
                *(() if lines else (_NO_LINE,)),
                *cut,
                *page.note("lines"),
                *_form(content),
                *_exactness(utf8=utf8),
            ),
        )

    def read_multiple_files(
        self,
        paths: Annotated[list[str], "Absolute, or below the only allowed directory"],
        offset: OffsetArgument = 0,
    ) -> Answer[FilesRead]:
        """Read several files at once. If one can't be read, the others are read all the same."""
        self._check_page(offset, 0)
        files: list[FileOfMany] = []
        left = self._context.limits.max_answer
        for number, path in enumerate(paths[offset:], 1):
            progress(number, len(paths) - offset, shown(path))
            try:
                where, found = self._context.read(path)
                answer, lines, of = self._whole(where, found, 0, 0)
            except Failure as failure:
                file, note = _unreadable(path, failure), None
            else:
                file = _one_of_many(answer.content)
                note = functools.partial(self._showed, where, found, [lines], of=of)
            left -= len(file.path) + len(file.content) + len(file.error) + _FIELDS
            if files and left < 0:
                break
            files.append(file)
            if note is not None:
                note()
        end = offset + len(files)
        page = Page(items=files, offset=offset, next_offset=end if end < len(paths) else 0, total=len(paths))
        partly = [
            f"{file.path} was cut: go on with read_file and offset={file.next_offset}."
            for file in files
            if file.next_offset
        ]
        return Answer(
            content=FilesRead(
                files=files, failed=sum(bool(file.error) for file in files), next_offset=page.next_offset
            ),
            text="\n".join(map(_as_text, files)),
            notes=(*partly, *page.note("files")),
        )

    def read_file_by_line(
        self,
        path: PathArgument,
        ranges: Annotated[list[str], 'Lines and ranges of lines, from 1: ["5", "10-20"]'],
        offset: OffsetArgument = 0,
    ) -> Answer[LinesRead]:
        """Read some lines of a text file, with their tags."""
        wanted = [_range(spelling) for spelling in ranges]

        def choose(content: bytes) -> list[int]:
            count = len(split_lines(content))
            numbers: list[int] = []
            for first, last in sorted(wanted):
                numbers += range(max(first, numbers[-1] + 1) if numbers else first, min(last, count) + 1)
            return numbers

        return self._chosen(path, choose, offset, before=0, after=0)

    def read_file_by_keyword(
        self,
        path: PathArgument,
        keyword: Annotated[str, "Text to look for"],
        before: Annotated[int, "Lines before each match"] = 0,
        after: Annotated[int, "Lines after each match"] = 0,
        *,
        use_regex: Annotated[bool, "keyword is a Python regular expression"] = False,
        ignore_case: Annotated[bool, "Ignore case"] = False,
        offset: OffsetArgument = 0,
    ) -> Answer[LinesRead]:
        """Read the lines of a text file that contain a keyword, with their tags."""

        def choose(content: bytes) -> list[int]:
            seconds = self._context.limits.max_seconds
            try:
                with matching(keyword, use_regex=use_regex, ignore_case=ignore_case, seconds=seconds) as lines_of:
                    return [hit.line for hit in lines_of(content)]
            except TooSlow:
                raise too_slow(keyword, seconds) from None

        return self._chosen(path, choose, offset, before=before, after=after)

    def list_directory(self, path: PathArgument, offset: OffsetArgument = 0) -> Answer[DirectoryListed]:
        """List what is directly in one directory: names, types and sizes."""
        with converting_errors(path):
            files = self._context.directories.files_of(path)
            found = files.list_directory(path)
            entries = [ListedEntry(name=shown(entry.name), type=entry.kind, size=entry.size) for entry in found]
            place = absolute(files, files.relative(path))
        self._check_page(offset, 0)
        page = page_of(
            entries, lambda entry: len(entry.name) + 40, offset=offset, limit=0, budget=self._context.limits.max_answer
        )
        marks = {"file": "[FILE]", "directory": "[DIR]", "symlink": "[LINK]"}
        return Answer(
            content=DirectoryListed(path=place, entries=list(page.items), next_offset=page.next_offset),
            text="\n".join(f"{marks.get(entry.type, '[OTHER]')} {one_line(entry.name)}" for entry in page.items)
            or page.nothing("The directory is empty."),
            notes=(
                *page.note("entries"),
                *unnameable(
                    (entry.name for entry in page.items),
                    (listed.name for listed, entry in zip(entries, found, strict=True) if listed.name != entry.name),
                ),
            ),
        )

    def get_file_info(self, path: PathArgument) -> Answer[FileDescribed]:
        """Return the type, size, times and permissions of a file or directory."""
        with converting_errors(path):
            files = self._context.directories.files_of(path)
            facts = files.facts(path)
        described = FileDescribed(
            path=absolute(files, facts.path),
            type=facts.kind,
            size=facts.size,
            permissions=f"{facts.mode:04o}",
            writable=facts.writable,
            modified=_utc(facts.modified),
            accessed=_utc(facts.accessed),
        )
        text = "\n".join(f"{name}: {getattr(described, name)}" for name in described.__slots__ if name != "success")
        return Answer(content=described, text=text)

    def list_allowed_directories(self) -> Answer[AllowedDirectories]:
        """List the directories that you may work in."""
        directories = sorted(map(shown, self._context.directories.roots))
        missing = ", ".join(map(one_line, self._context.directories.missing))
        return Answer(
            content=AllowedDirectories(directories=directories),
            text="\n".join(map(one_line, directories)),
            notes=(f"Not served, because it is no directory: {missing}",) if missing else (),
        )

    # ---- inside

    def _text(self, path: str) -> tuple[Files, Content]:
        """Return a text file's current content; the session does not count it as read yet. Raises Failure."""
        files, found = self._context.read(path)
        if self._context.is_binary(found.bytes):
            raise refusals.binary_file("Cannot read binary file as text", path, found.bytes)
        return files, found

    def _showed(self, files: Files, found: Content, lines: Iterable[range], *, of: int) -> None:
        """Note which lines of a file an answer shows. Called when nothing can refuse the call any more."""
        self._context.session.showed(
            (files.root, found.path), found.blob, found.bytes, lines, of, at=self._context.began
        )

    def _chosen(
        self, path: str, choose: Callable[[bytes], list[int]], offset: int, *, before: int, after: int
    ) -> Answer[LinesRead]:
        if min(before, after) < 0:
            raise Failure(FailureKind.INVALID_REQUEST, "before and after cannot be negative")
        self._check_page(offset, 0)
        files, found = self._text(path)
        text = file_text(found.bytes).lines
        lines = split_lines(text)

        budget = self._context.limits.max_answer

        @functools.cache
        def near(number: int) -> tuple[range, int]:
            """Return the range of lines around a line that fits the budget, nearest lines first, and its size."""
            first, last = max(0, number - 1 - before), min(number + after, len(lines))
            start, end = number - 1, number
            size = _size(lines[start])
            while first < start or end < last:
                is_above = first < start and (end == last or number - start <= end - number + 1)
                size_of_next = _size(lines[start - 1 if is_above else end])
                if size + size_of_next > budget:
                    break
                size += size_of_next
                start, end = (start - 1, end) if is_above else (start, end + 1)
            return range(start, end), size

        page = page_of(choose(text), lambda number: near(number)[1], offset=offset, limit=0, budget=budget)
        given = [near(number)[0] for number in page.items]
        tagged, cut = self._fitted(
            hashlines_around(lines, (index + 1 for part in given for index in part), before=0, after=0)
        )
        left_out = tuple(
            f"Around line {number} only lines {part.start + 1} to {part.stop} fit; read_file_by_line has the others."
            for number, part in zip(page.items, given, strict=True)
            if part.start > max(0, number - 1 - before) or part.stop < min(number + after, len(lines))
        )
        file_hash = sha256(found.bytes)
        self._showed(files, found, given, of=len(lines))
        return Answer(
            content=LinesRead(
                path=absolute(files, found.path),
                content=tagged,
                matches=list(page.items),
                file_hash=file_hash,
                lines=len(lines),
                next_offset=page.next_offset,
            ),
            text=tagged or page.nothing("No such lines."),
            notes=(
                f"file_hash: {file_hash}",
                *cut,
                *left_out,
                *page.note("matches"),
                *_exactness(utf8=decoded(text)[1]),
            ),
        )

    def _whole(self, files: Files, found: Content, offset: int, limit: int) -> tuple[Answer[FileRead], range, int]:
        """Return a file's answer, and for Session.showed the range of lines that it shows and how many there are."""
        content = found.bytes
        binary = self._context.is_binary(content)
        kind = mimetypes.guess_type(found.path)[0] or ("application/octet-stream" if binary else "text/plain")
        of_file = file_text(content)
        whole, utf8 = ("", False) if binary else decoded(of_file.as_in_file(of_file.lines))
        lines = [] if binary else split_lines(of_file.lines)
        page = self._page(lines, offset, limit, size=len(whole))
        file_hash = sha256(content)
        text, cut = self._fitted(
            whole
            if len(page.items) == len(lines)
            else "".join(decoded(of_file.as_in_file(line))[0] for line in page.items)
        )
        answer = Answer(
            content=FileRead(
                path=absolute(files, found.path),
                content=text,
                binary=binary,
                utf8=utf8,
                type=kind,
                size=len(content),
                file_hash=file_hash,
                next_offset=page.next_offset,
            ),
            text=f"Binary file: {kind}, {len(content)} bytes, SHA-256 {file_hash}" if binary else text,
            notes=(*cut, *page.note("lines"), *_utf16(content), *_exactness(utf8=utf8 or binary)),
        )
        return answer, page.span, len(lines)

    def _fitted(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a page's text cut to an answer's limit, and a note if it was cut."""
        return fitted(text, self._context.limits.max_answer)

    def _page(self, lines: Sequence[bytes], offset: int, limit: int, *, size: int) -> Page[bytes]:
        """Return the page of lines that fit in an answer. `size`: the characters of all lines together."""
        self._check_page(offset, limit)
        if not offset and not limit and size + _OVERHEAD * len(lines) <= self._context.limits.max_answer:
            return Page(
                items=lines, offset=0, next_offset=0, total=len(lines)
            )  # the usual case, without adding up sizes
        return page_of(lines, _size, offset=offset, limit=limit, budget=self._context.limits.max_answer)

    @staticmethod
    def _check_page(offset: int, limit: int) -> None:
        if min(offset, limit) < 0:
            raise Failure(FailureKind.INVALID_REQUEST, "offset and limit cannot be negative")


def _size(line: bytes) -> int:
    """Return the size of a line in an answer, in characters."""
    return len(decoded(line)[0]) + _OVERHEAD


def _range(spelling: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(spelling)
    if found is None:
        raise Failure(
            FailureKind.INVALID_REQUEST, f'Not a line or a range of lines, as "5" or "10-20": {shown(spelling)!r}'
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise Failure(FailureKind.INVALID_REQUEST, f"The range ends before it begins: {spelling}")
    return first, last


def _exactness(*, utf8: bool) -> tuple[str, ...]:
    return () if utf8 else (_NOT_UTF8,)


def _utf16(content: bytes) -> tuple[str, ...]:
    """Return the note about an encoding that a whole text does not show, or ()."""
    name = encoding(content)
    return (_ENCODINGS[name],) if name.startswith("utf-16") else ()


def _form(content: bytes) -> tuple[str, ...]:
    """Return the note about line endings and a byte-order mark that edit tools keep, or ()."""
    endings = _ENDINGS.get(line_endings(content))
    marked = _ENCODINGS.get(encoding(content))
    return tuple(note for note in (endings, marked) if note is not None)


def _one_of_many(read: FileRead) -> FileOfMany:
    return FileOfMany(
        path=read.path,
        content=read.content,
        binary=read.binary,
        utf8=read.utf8,
        size=read.size,
        file_hash=read.file_hash,
        next_offset=read.next_offset,
        error="",
    )


def _unreadable(path: str, failure: Failure) -> FileOfMany:
    return FileOfMany(
        path=cut(shown(path), LONGEST_WORDS),
        content="",
        binary=False,
        utf8=False,
        size=0,
        file_hash="",
        next_offset=0,
        error=cut(str(failure), LONGEST_WORDS),
    )


def _as_text(file: FileOfMany) -> str:
    """Return one of several files as text, below a line with its path."""
    if file.error:
        return f"==> {one_line(file.path)}\nERROR: {file.error}\n"
    if file.binary:
        return f"==> {one_line(file.path)}\nBinary file: {file.size} bytes, SHA-256 {file.file_hash}\n"
    return f"==> {one_line(file.path)}\n{file.content}"


def _utc(nanoseconds: int) -> str:
    return date_of(nanoseconds // 1000).isoformat()
