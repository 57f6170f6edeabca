"""Search below a directory for names, paths and lines, within the limits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

from mcptools.answers.edits import Answer
from mcptools.answers.paging import page_of
from mcptools.answers.reading import FilesFound, LineFound, LinesFound, TreeEntry, TreeListed
from mcptools.edit.display import one_line, shown, unnameable
from mcptools.edit.file_text import file_text
from mcptools.edit.globs import TooManyAlternatives, from_start, leads_into, matches
from mcptools.files.regex_search import LinesOf, TooSlow, matching, too_slow
from mcptools.files.walking import Walk, WalkedEntry
from mcptools.model.failures import Failure, FailureKind
from mcptools.tools.context import PathArgument, ToolContext, absolute, converting_errors
from mcptools.tools.reading import OffsetArgument
from objstore import CasError, split_lines

__all__ = ["SearchTools"]

_MAX_QUOTED: Final = 400
"""Characters of a line that are quoted."""

_MAX_BEFORE: Final = 100
"""Characters before the match in a long line's quotation, unless the rest of the line is shorter."""

_CUT: Final = "…"
"""Marks where a line is cut."""


class SearchTools:
    """The search tools. They never show the store, follow no links, and don't enter version control folders."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def directory_tree(
        self,
        path: PathArgument,
        max_depth: Annotated[int, "Levels to show; 0: all"] = 0,
        offset: OffsetArgument = 0,
    ) -> Answer[TreeListed]:
        """Show everything below a directory, at any depth, as an indented tree."""
        if min(max_depth, offset) < 0:
            raise Failure(FailureKind.INVALID_REQUEST, "max_depth and offset cannot be negative")

        def is_above_the_last(folder: WalkedEntry) -> bool:
            return not max_depth or folder.below.count("/") + 1 < max_depth

        with self._walking(path) as walk:
            entries = [TreeEntry(path=shown(found.below), type=found.kind) for found in walk.names(is_above_the_last)]
        page = page_of(
            entries, lambda entry: len(entry.path) + 30, offset=offset, limit=0, budget=self._context.limits.max_answer
        )
        return Answer(
            content=TreeListed(
                path=absolute(walk.files, walk.start),
                entries=list(page.items),
                complete=not walk.notes(),
                next_offset=page.next_offset,
            ),
            text="\n".join(map(_branch, page.items)) or page.nothing("The directory is empty."),
            notes=(
                *page.note("entries"),
                *unnameable((entry.path for entry in page.items), (shown(name.below) for name in walk.unnameable)),
                *walk.notes(),
            ),
        )

    def search_files(
        self,
        path: PathArgument,
        pattern: Annotated[str, "Glob such as *.py or src/**/test_*; without * ? [ or {a,b} it is part of a name"],
        exclude_patterns: Annotated[Sequence[str], "Globs of files and directories to leave out"] = (),
        offset: OffsetArgument = 0,
    ) -> Answer[FilesFound]:
        """Find files and directories by their names, not by what is in them."""
        if offset < 0:
            raise Failure(FailureKind.INVALID_REQUEST, "offset cannot be negative")

        with self._walking(path) as walk:
            start = absolute(walk.files, walk.start)
            wanted, left_out = from_start(pattern, start), [from_start(each, start) for each in exclude_patterns]

            def is_left_in(found: WalkedEntry) -> bool:
                return not any(matches(found.below, excluded) for excluded in left_out)

            paths = [
                absolute(walk.files, found.path)
                for found in walk.names(lambda folder: leads_into(folder.below, wanted) and is_left_in(folder))
                if matches(found.below, wanted) and is_left_in(found)
            ]
        page = page_of(
            paths, lambda found: len(found) + 4, offset=offset, limit=0, budget=self._context.limits.max_answer
        )
        return Answer(
            content=FilesFound(paths=list(page.items), complete=not walk.notes(), next_offset=page.next_offset),
            text="\n".join(map(one_line, page.items)) or page.nothing("Nothing matches the pattern."),
            notes=(*page.note("paths"), *unnameable(page.items, _places(walk)), *walk.notes()),
        )

    def grep_files(
        self,
        path: PathArgument,
        keyword: Annotated[str, "Text to look for"],
        pattern: Annotated[str, "Only in files that match this glob, such as *.py"] = "",
        *,
        use_regex: Annotated[bool, "keyword is a Python regular expression"] = False,
        ignore_case: Annotated[bool, "Ignore case"] = False,
        offset: OffsetArgument = 0,
    ) -> Answer[LinesFound]:
        """Find text: the lines that contain it, in one file or in all files below a directory."""
        if offset < 0:
            raise Failure(FailureKind.INVALID_REQUEST, "offset cannot be negative")
        seconds = self._context.limits.max_seconds
        found: list[LineFound] = []
        files = passed_over = 0
        with self._walking(path) as walk:
            try:
                with matching(keyword, use_regex=use_regex, ignore_case=ignore_case, seconds=seconds) as lines_of:
                    for content, place in self._texts(walk, pattern):
                        if content is None:
                            passed_over += 1
                        elif not self._context.is_binary(content):
                            found += _found_in(file_text(content).lines, place, lines_of)
                            files += 1
            except TooSlow:
                if walk.files.facts(walk.start).kind == "file":
                    raise too_slow(keyword, seconds) from None
                walk.cut = f"{seconds:g} s have passed"
        page = page_of(
            found,
            lambda line: len(line.path) + len(line.text) + 40,
            offset=offset,
            limit=0,
            budget=self._context.limits.max_answer,
        )
        passed = (f"{passed_over} files could not be read, or exceed the size limit.",) if passed_over else ()
        return Answer(
            content=LinesFound(
                matches=list(page.items),
                files=files,
                complete=not walk.notes() and not passed,
                next_offset=page.next_offset,
            ),
            text="\n".join(f"{one_line(line.path)}:{line.line}: {line.text}" for line in page.items)
            or page.nothing("No line contains the keyword."),
            notes=(
                *page.note("matches"),
                *unnameable((line.path for line in page.items), _places(walk)),
                *passed,
                *walk.notes(),
            ),
        )

    # ---- inside

    def _texts(self, walk: Walk, pattern: str) -> Iterator[tuple[bytes | None, str]]:
        """Yield the content of each file that matches `pattern`, or None if it can't be read, and its absolute path.

        If the walk starts at a file, only that file is searched; if it can't be, that is a failure.
        """
        if walk.files.facts(walk.start).kind == "file":
            found = walk.files.read(walk.start, limit=self._context.limits.max_file_bytes)
            place = absolute(walk.files, found.path)
            if self._context.is_binary(found.bytes):
                raise Failure(FailureKind.BINARY_FILE, f"Cannot search binary file: {place}", path=place)
            yield found.bytes, place
            return
        wanted = from_start(pattern, absolute(walk.files, walk.start))
        for name in walk.names(lambda folder: leads_into(folder.below, wanted)):
            if name.kind != "file" or (wanted and not matches(name.below, wanted)):
                continue
            try:
                content = walk.files.read(name.path, limit=self._context.limits.max_file_bytes).bytes
            except CasError:
                content = None
            yield content, absolute(walk.files, name.path)

    @contextmanager
    def _walking(self, path: str) -> Iterator[Walk]:
        with converting_errors(path):
            files = self._context.directories.files_of(path)
            walk = Walk(
                files=files,
                start=files.relative(path),
                max_walked=self._context.limits.max_walked,
                max_seconds=self._context.limits.max_seconds,
            )
            try:
                yield walk
            except TooManyAlternatives as error:
                raise Failure(FailureKind.INVALID_REQUEST, str(error)) from error


def _places(walk: Walk) -> Iterator[str]:
    """Yield the displayed absolute paths of the names that no tool can use."""
    return (absolute(walk.files, name.path) for name in walk.unnameable)


def _branch(entry: TreeEntry) -> str:
    above, _, name = entry.path.rpartition("/")
    depth = above.count("/") + 1 if above else 0
    mark = {"directory": "/", "symlink": "@", "file": ""}.get(entry.type, "?")
    return "  " * depth + one_line(name) + mark


def _found_in(content: bytes, path: str, lines_of: LinesOf) -> list[LineFound]:
    hits = lines_of(content)
    if not hits:
        return []
    lines = split_lines(content)
    return [
        LineFound(
            path=path,
            line=line,
            text=_quoted(lines[line - 1].rstrip(b"\r\n").decode("utf-8", "backslashreplace"), at),
        )
        for line, at in hits
    ]


def _quoted(text: str, at: int) -> str:
    """Return a line as it is quoted: of a long one, the part around the match, which begins `at` this character."""
    if len(text) <= _MAX_QUOTED:
        return text
    start = max(0, min(at - _MAX_BEFORE, len(text) - _MAX_QUOTED))
    end = start + _MAX_QUOTED
    return f"{_CUT if start else ''}{text[start:end]}{_CUT if end < len(text) else ''}"
