"""Write a step of a patch series as a mail that `git am` accepts, and `patch` for the diff in it.

Source: git's diff format with extended headers (names, modes, binary literals), and the mbox of `git format-patch`.
"""

import hashlib
import re
import zlib
from array import array
from base64 import b85encode
from collections.abc import Iterable, Iterator, Sequence
from email.header import Header
from struct import Struct
from typing import IO, TYPE_CHECKING, Final

from cli.render.diffstat import diffstat, file_change
from cli.render.edits import shown_move
from cli.screen.terminal import EXACT, visible
from objstore import (
    LINK_MODE,
    Origin,
    by_edit,
    date_of,
    diff_lines,
    git_mode,
    is_either_binary,
    quoted_name,
    unified_diff,
    value,
)

if TYPE_CHECKING:
    from objstore import EditView, Hunk, Seq, SeriesStep, StepState

__all__ = ["Patch", "PatchSeries"]

ADDRESS: Final = "cas@localhost"
ESCAPED: Final = "surrogateescape"
NAMELESS: Final = " .,:;()<>\"\\'"
"""Characters that git strips from both ends of an author's name. git refuses a mail if nothing is left."""

CLOSED: Final = re.compile(r"[^()]*(\([^()\\]*\)[^()]*)*")
"""Pattern of a name whose parentheses are all closed, as git reads them."""

NULL_ID: Final = "0" * 40
LONGEST_SLUG: Final = 52
NOT_IN_SLUG: Final = re.compile("[^0-9A-Za-z]+")
EXECUTABLE: Final = 0o111
LINE_BYTES: Final = 52
"""Bytes of a binary literal that one line holds."""

LENGTHS: Final = Struct("<3Q")
"""The header of a patch in the temporary file: how long its parts are."""


@value
class Patch:
    """One patch of a series."""

    name: str  # of its file
    content: bytes


class PatchSeries:
    """Patches that are made file by file and read in order: until then, their parts are in a temporary file."""

    def __init__(self, steps: "Iterable[SeriesStep]", spool: IO[bytes]) -> None:
        """Make the patches of all steps, in `spool`: an empty file."""
        self._spool: Final = spool
        self._places = array("q")  # of the patches in the spool, in order
        self.left_out: Final[dict[str, list[Seq]]] = {}
        """The edits that no patch can express, by reason."""
        edits = array("q")  # the first of each patch
        for step in steps:
            why = _why_inexpressible(step)
            if why:
                self.left_out.setdefault(why, []).extend(view.seq for view in step.views)
                continue
            parts = [_title(step).encode("utf-8", ESCAPED), _above_subject(step), b"".join(_below_subject(step))]
            edits.append(by_edit(step))
            self._places.append(spool.tell())
            spool.writelines([LENGTHS.pack(*map(len, parts)), *parts])
        order = sorted(range(len(edits)), key=edits.__getitem__)
        self._places = array("q", map(self._places.__getitem__, order))
        for left_out in self.left_out.values():
            left_out.sort()

    def __len__(self) -> int:
        """Return the number of patches."""
        return len(self._places)

    def names(self) -> Iterator[str]:
        """Yield the names of the patches' files, in order."""
        for number, (title, _, _) in self._numbered():
            yield _name(title, number)

    def patches(self) -> Iterator[Patch]:
        """Yield the patches, in order."""
        for number, (title, above, below) in self._numbered():
            subject = f"Subject: [PATCH {number}/{len(self)}] {_header(title)}\n"
            yield Patch(name=_name(title, number), content=above + subject.encode() + below)

    def _numbered(self) -> Iterator[tuple[int, tuple[str, bytes, bytes]]]:
        """Yield each patch's number, and its title, what precedes the line of the subject, and what follows that."""
        for number, at in enumerate(self._places, 1):
            self._spool.seek(at)
            title, above, below = map(self._spool.read, LENGTHS.unpack(self._spool.read(LENGTHS.size)))
            yield number, (title.decode("utf-8", ESCAPED), above, below)


def _name(title: str, number: int) -> str:
    slug = NOT_IN_SLUG.sub("-", title).strip("-")[:LONGEST_SLUG]
    return f"{number:04d}-{slug}.patch"


def _why_inexpressible(step: "SeriesStep") -> str:
    """Return why no patch can express a step ("": one can): of a mode, git keeps whether the file is executable."""
    before, after = step.before, step.after
    if before == after:
        return "the other live edits already have the same result"
    if before is None or after is None:
        return ""
    if (before.path, before.bytes, _mode(before)) != (after.path, after.bytes, _mode(after)):
        return ""
    return "git records no more of a mode than whether a file is executable"


# ---- the mail


def _title(step: "SeriesStep") -> str:
    first = step.views[0]
    names = shown_move(first.edit.source, first.edit.path)
    return f"{first.edit.operation.value} {names} (edit {' '.join(str(view.seq) for view in step.views)})"


def _above_subject(step: "SeriesStep") -> bytes:
    last = step.views[-1]
    when = date_of(last.edit.time).strftime("%a, %d %b %Y %H:%M:%S +0000")
    author = f"{_header(_author(last))} <{ADDRESS}>"
    return f"From {last.id.hex()[:40]} Mon Sep 17 00:00:00 2001\nFrom: {author}\nDate: {when}\n".encode()


def _below_subject(step: "SeriesStep") -> Iterator[bytes]:
    yield b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n"
    for view in step.views:
        facts = {"Edit": view.id.hex(), "Conversation": view.edit.conversation, "Tool": view.edit.tool}
        facts |= {"Reason": view.reason} | {f"Note-{key}": note for key, note in sorted(view.edit.notes.items())}
        for name, fact in facts.items():
            if fact:
                yield f"{visible(name)}: {visible(fact)}\n".encode("utf-8", "replace")
    yield b"\n---\n"
    before, after = (None if side is None else side.bytes for side in (step.before, step.after))
    hunks = diff_lines(before or b"", after or b"")
    change = file_change((step.after or step.before or _nothing()).path, before, after, hunks)
    yield from diffstat([change], EXACT)
    yield b"\n"
    yield from _diff(step.before, step.after, hunks)
    yield b"-- \ncas\n\n"


def _author(view: "EditView") -> str:
    """Return the author of an edit: the first of its names that git accepts as an author."""
    notes = view.edit.notes
    if view.edit.origin is Origin.AGENT:
        names = [notes.get("agent", ""), notes.get("client", ""), view.edit.tool]
    else:
        names = [notes.get("who", ""), view.edit.origin.value]
    return next(filter(None, map(_as_author, names)), "cas")


def _as_author(name: str) -> str:
    """Return a name in the form that git accepts for an author; "" if git would refuse it."""
    # git takes the text around the first @ as the address, and reads past the end for a quote or a parenthesis that is
    # not closed, even in quotes or encoded.
    said = _without_brackets(name.replace("@", " at ").replace('"', "'")).strip()
    if not CLOSED.fullmatch(said):
        said = said.replace("(", "[").replace(")", "]")
    return said if said.strip(NAMELESS) else ""


def _header(text: str) -> str:
    safe = _without_brackets(text)
    # A word that begins like an encoded word must be one.
    return safe if safe.isascii() and "=?" not in safe else Header(safe, "utf-8", maxlinelen=10_000).encode()


def _without_brackets(text: str) -> str:
    return visible(text).replace("<", "").replace(">", "")


def _nothing() -> "StepState":
    raise ValueError("a step from no file to no file")


# ---- the diff


def _diff(before: "StepState | None", after: "StepState | None", hunks: "Sequence[Hunk]") -> Iterator[bytes]:
    old_name, new_name = ((side or before or after or _nothing()).path for side in (before, after))
    old, new = (None if side is None else side.bytes for side in (before, after))
    old_mode, new_mode = _mode(before), _mode(after)
    yield b"diff --git %b %b\n" % (_header_name(f"a/{old_name}"), _header_name(f"b/{new_name}"))
    if before is None:
        yield f"new file mode {new_mode}\n".encode()
    elif after is None:
        yield f"deleted file mode {old_mode}\n".encode()
    elif old_mode != new_mode:
        yield f"old mode {old_mode}\nnew mode {new_mode}\n".encode()
    if old_name != new_name:
        yield b"rename from %b\nrename to %b\n" % (_header_name(old_name), _header_name(new_name))
    if old == new:
        return
    mode = f" {old_mode}" if before is not None and after is not None and old_mode == new_mode else ""
    yield f"index {_git_id(old)}..{_git_id(new)}{mode}\n".encode()
    if is_either_binary(old or b"", new or b""):
        yield b"GIT binary patch\n"
        yield from _literal(new or b"")
        yield from _literal(old or b"")
        return
    diff = unified_diff(old, new, path_before=f"a/{old_name}", path_after=f"b/{new_name}", hunks=hunks)
    lines = diff.split(b"\n")
    for at, line in enumerate(lines[:2]):
        name = line[4:]
        if name.endswith(b" "):
            # GNU patch drops spaces at the end of a name, even before a tab.
            lines[at] = line[:4] + b'"%b"' % name
        elif b" " in name and not name.startswith(b'"') and name != b"/dev/null":
            # A tab ends a name with spaces in it; git and GNU patch agree on that.
            lines[at] = line + b"\t"
    yield b"\n".join(lines)


def _header_name(name: str) -> bytes:
    """Return a name for a header line; quoted if it has spaces, because GNU patch would end it at the first one."""
    quoted = quoted_name(name)
    return b'"%b"' % quoted if b" " in quoted and not quoted.startswith(b'"') else quoted


def _mode(side: "StepState | None") -> str:
    # git knows two kinds of file, and links.
    if side is not None and side.mode == LINK_MODE:
        return git_mode(LINK_MODE)
    return "100755" if side is not None and side.mode & EXECUTABLE else "100644"


def _git_id(content: bytes | None) -> str:
    if content is None:
        return NULL_ID
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _literal(content: bytes) -> Iterator[bytes]:
    """Yield bytes as git writes a binary file: deflated, in base 85, each line prefixed with its length."""
    yield b"literal %d\n" % len(content)
    deflated = zlib.compress(content)
    for start in range(0, len(deflated), LINE_BYTES):
        line = deflated[start : start + LINE_BYTES]
        length = chr(ord("A") + len(line) - 1) if len(line) <= 26 else chr(ord("a") + len(line) - 27)  # noqa: PLR2004 -- letters
        yield length.encode() + b85encode(line, pad=True) + b"\n"
    yield b"\n"
