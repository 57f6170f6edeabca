"""Look up what commits hold at paths, and whether a file has the bytes that git would put there for it.

git may change bytes between a commit and a file. Of these conversions, line endings and Large File Storage are computed
here, because asking git would run filter programs that the repository's configuration names. A file under another
conversion does not count as git's; then its change is treated like any other.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Set as AbstractSet
from typing import Final

from objstore.disk.git.command import run_git
from objstore.disk.git.repository import LFS_POINTER, Repository
from objstore.text.forms import shown_lines
from objstore.text.lines import split_lines, without_ending
from objstore.values.fastclass import value

__all__ = [
    "AddedText",
    "CommittedChanges",
    "TreeEntry",
    "changes_of",
    "committed_blobs",
    "entries_at",
    "is_any_of",
    "is_any_staged",
    "is_content_of",
    "is_pointer_to",
    "left_out_at",
    "merge_base",
    "merged_text",
    "new_commits",
    "staged_at",
    "text_added",
    "texts_of",
]

_MAX_NAMED: Final = 500
"""Paths that a command line names; of more paths, the whole tree is listed."""

_SHA256_DIGITS: Final = 64
_LINK: Final = "120000"
_REGULAR: Final = frozenset({"100644", "100755"})
_EXECUTABLE: Final = "100755"
_LEFT_OUT: Final = "S"
"""The tag of an entry of the index that is not in the work tree: see git-sparse-checkout(1)."""
_MAX_NEW: Final = 500
"""Commits that are looked at after a branch moved; of more, the newest."""

_MAX_BLOB: Final = 1 << 26
_RAW_FIELDS: Final = 5
"""Modes, names of blobs and status in a line of `git diff-tree --raw`."""


@value
class AddedText:
    """What some commits added."""

    lines: Mapping[bytes, AbstractSet[bytes]]  # by path, without endings, and without those that the file had before
    blobs: AbstractSet[str]  # the names of what they made of files


@value
class TreeEntry:
    """A file or symlink in a commit."""

    mode: str  # octal, as git prints it
    id: str  # hexadecimal name of its blob

    @property
    def is_executable(self) -> bool:
        """Return whether git makes the file executable."""
        return self.mode == _EXECUTABLE


@value
class CommittedChanges:
    """The changes of some commits."""

    blobs: frozenset[str]  # hexadecimal names of the blobs that they put at any path
    deleted: frozenset[bytes]  # paths that they deleted, relative to the work tree


def entries_at(repository: Repository, commit: str, paths: Collection[bytes]) -> dict[bytes, TreeEntry] | None:
    """Return what a commit holds at `paths`, relative to the work tree; None if git can't say.

    A path that the commit lacks is left out, and so is a folder or submodule.
    """
    named = [os.fsdecode(path) for path in paths] if len(paths) <= _MAX_NAMED else []
    listed = run_git(repository, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *named)
    if listed is None:
        return None
    entries: dict[bytes, TreeEntry] = {}
    wanted = set(paths)
    for line in listed.split(b"\0"):
        fields, _, path = line.partition(b"\t")
        mode, _, rest = fields.decode("ascii", "replace").partition(" ")
        if path in wanted and (mode in _REGULAR or mode == _LINK):
            entries[path] = TreeEntry(mode=mode, id=rest.rpartition(" ")[2])
    return _as_checked_out(repository, entries)


def staged_at(repository: Repository, paths: Collection[bytes]) -> dict[bytes, TreeEntry]:
    """Return what the index holds at `paths`, relative to the work tree, without files in conflict."""
    return {path: entry for path, (entry, _) in _staged(repository, paths).items()}


def is_any_staged(repository: Repository) -> bool:
    """Return whether the index may differ from HEAD's commit."""
    return run_git(repository, "diff-index", "--cached", "--quiet", "HEAD", "--") is None


def left_out_at(repository: Repository, paths: Collection[bytes]) -> dict[bytes, TreeEntry]:
    """Return what the index holds at those of `paths` that a sparse checkout leaves out of the work tree."""
    return {path: entry for path, (entry, is_left_out) in _staged(repository, paths).items() if is_left_out}


def _staged(repository: Repository, paths: Collection[bytes]) -> dict[bytes, tuple[TreeEntry, bool]]:
    """Return what the index holds at `paths`, each with whether a sparse checkout leaves it out."""
    named = [os.fsdecode(path) for path in paths] if len(paths) <= _MAX_NAMED else []
    listed = run_git(repository, "ls-files", "--stage", "-t", "-z", "--", *named) or b""
    entries: dict[bytes, TreeEntry] = {}
    left_out: set[bytes] = set()
    wanted = set(paths)
    for line in listed.split(b"\0"):
        fields, _, path = line.partition(b"\t")
        match fields.decode("ascii", "replace").split(" "):
            case [tag, mode, name, "0"] if path in wanted and (
                mode in _REGULAR or mode == _LINK
            ):  # 1 to 3: the sides of a conflict
                entries[path] = TreeEntry(mode=mode, id=name)
                left_out |= {path} if tag == _LEFT_OUT else set()
    entries = _as_checked_out(repository, entries)
    return {path: (entry, path in left_out) for path, entry in entries.items()}


def _as_checked_out(repository: Repository, entries: dict[bytes, TreeEntry]) -> dict[bytes, TreeEntry]:
    """Return the entries; those of links as entries of files, if git writes links as files (core.symlinks=false)."""
    links = [path for path, entry in entries.items() if entry.mode == _LINK]
    if not links or (run_git(repository, "config", "--type=bool", "core.symlinks") or b"").strip() != b"false":
        return entries
    return entries | {path: TreeEntry(mode="100644", id=entries[path].id) for path in links}


def merge_base(repository: Repository, ours: str, theirs: str) -> str:
    """Return the best common ancestor of two commits; "" if there is none, or more than one."""
    found = (run_git(repository, "merge-base", "--all", ours, theirs) or b"").decode("ascii", "replace").split()
    return found[0] if len(found) == 1 else ""


def merged_text(repository: Repository, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Return the text that git makes of two versions of a file; None if they are in conflict, or git can't say."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (ours, base, theirs), strict=True):
            with open(path, "wb") as file:
                file.write(text)
        return run_git(repository, "merge-file", "--stdout", *paths)


def changes_of(repository: Repository, commits: Iterable[str]) -> CommittedChanges | None:
    """Return what differs in these commits from each parent's files; None if git can't say.

    A commit that the repository lacks changes nothing.
    """
    listed = _raw_changes(repository, commits)
    if listed is None:
        return None
    states = list(_changed_blobs(listed))
    return CommittedChanges(
        blobs=frozenset(new for _, _, new in states if new.strip("0")),
        deleted=frozenset(path for path, _, new in states if not new.strip("0")),
    )


def committed_blobs(repository: Repository, commit: str) -> dict[bytes, str]:
    """Return what a commit put at each path that it changed: the name of the blob."""
    changed = _changed_blobs(_raw_changes(repository, [commit]) or b"")
    return {path: new for path, _, new in changed if new.strip("0")}


def text_added(repository: Repository, commits: Iterable[str]) -> AddedText:
    """Return the text that commits added."""
    states = list(_changed_blobs(_raw_changes(repository, commits) or b""))
    texts = texts_of(repository, [name for _, *names in states for name in names]) or {}
    added: dict[bytes, set[bytes]] = {}
    for path, old, new in states:
        gained, before = (split_lines(shown_lines(texts.get(name, b""))) for name in (new, old))
        lines = set(map(without_ending, gained)).difference(map(without_ending, before))
        added.setdefault(path, set()).update(lines)
    return AddedText(lines=added, blobs=frozenset(new for _, _, new in states if new.strip("0")))


def new_commits(repository: Repository, known: str) -> list[tuple[str, int, str]]:
    """Return the newest commits of branches, tags, worktrees and the stash: name, seconds when made, parents.

    `known`: without what this commit contains ("": all).
    """
    stash = run_git(repository, "rev-parse", "--verify", "--quiet", "refs/stash") or b""
    starts = ["--branches", "--tags", *stash.decode("ascii", "replace").split()]
    options = [f"--max-count={_MAX_NEW}", "--timestamp", "--parents"]
    worktrees = run_git(repository, "worktree", "list", "--porcelain") or b""
    heads = [line[5:].decode("ascii", "replace") for line in worktrees.split(b"\n") if line.startswith(b"HEAD ")]
    heads = [head for head in heads if head.strip("0")]
    without = ["--not", known] if known else []
    listed = run_git(repository, "rev-list", *options, *starts, *heads, *without, "--") or b""
    found: list[tuple[str, int, str]] = []
    for line in listed.decode("ascii", "replace").splitlines():
        moment, commit, *parents = line.split(" ")
        if moment.isdigit():
            found.append((commit, int(moment), " ".join(parents)))
    return found


def is_content_of(entry: TreeEntry, content: bytes, *, is_link: bool = False) -> bool:
    """Return whether git, for this entry, may have put exactly `content` into the file, or made it the link's text."""
    if is_link is not (entry.mode == _LINK):
        return False
    if is_link:
        return _object_id(content, entry.id) == entry.id
    return any(_object_id(stored, entry.id) == entry.id for stored in _stored_forms(content))


def is_any_of(blobs: AbstractSet[str], content: bytes) -> bool:
    """Return whether git may have written `content` for one of some blobs."""
    like = next(iter(blobs), "")
    return bool(like) and any(_object_id(stored, like) in blobs for stored in _stored_forms(content))


def texts_of(repository: Repository, ids: Iterable[str]) -> Mapping[str, bytes] | None:
    """Return the bytes of blobs, by their names; None if git can't say. Missing and very large blobs are left out."""
    wanted = list(dict.fromkeys(ids))
    given = "".join(f"{name}\n" for name in wanted).encode()
    sizes = run_git(repository, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=given)
    if sizes is None:
        return None
    small = [
        fields[0]
        for line in sizes.decode("ascii", "replace").splitlines()
        if (fields := line.split(" "))[1:2] == ["blob"] and int(fields[2]) <= _MAX_BLOB
    ]
    printed = run_git(repository, "cat-file", "--batch", given="".join(f"{name}\n" for name in small).encode())
    if printed is None:
        return None
    texts: dict[str, bytes] = {}
    at = 0
    for name in small:
        end = printed.index(b"\n", at)
        size = int(printed[at:end].rpartition(b" ")[2])
        texts[name] = printed[end + 1 : end + 1 + size]
        at = end + size + 2
    return texts


def _raw_changes(repository: Repository, commits: Iterable[str]) -> bytes | None:
    """Return what git prints of the changes of commits; None if it can't say."""
    given = "".join(f"{commit}\n" for commit in commits).encode()
    options = ("--stdin", "-r", "-z", "--root", "--no-renames", "--raw", "-m")
    return run_git(repository, "diff-tree", *options, given=given)


def _changed_blobs(listed: bytes) -> Iterator[tuple[bytes, str, str]]:
    """Yield each changed path with the names of its blobs before and after; zeros: there is no file."""
    fields = iter(listed.split(b"\0"))
    for text in fields:
        parts = text[1:].split(b" ") if text.startswith(b":") else []
        if len(parts) == _RAW_FIELDS:
            yield next(fields, b""), parts[2].decode("ascii", "replace"), parts[3].decode("ascii", "replace")


def _stored_forms(content: bytes) -> Iterable[bytes]:
    """Yield the blobs for which git may have written `content`: as they are, with other line endings, or from LFS."""
    yield content
    if b"\r\n" in content:
        yield content.replace(b"\r\n", b"\n")
    yield _pointer([content])


def is_pointer_to(text: bytes, pieces: Iterable[bytes]) -> bool:
    """Return whether a text is the pointer that Large File Storage keeps in place of a content, given in pieces."""
    return text.startswith(LFS_POINTER) and text == _pointer(pieces)


def _pointer(pieces: Iterable[bytes]) -> bytes:
    from hashlib import sha256  # it loads OpenSSL, which takes 3 ms of a hook

    digest, size = sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return b"%s\noid sha256:%s\nsize %d\n" % (LFS_POINTER, digest.hexdigest().encode(), size)


def _object_id(content: bytes, like: str) -> str:
    """Return git's name of a blob, by the hash function that the name `like` was made with."""
    import hashlib  # as above

    header = f"blob {len(content)}\0".encode()
    if len(like) == _SHA256_DIGITS:
        return hashlib.sha256(header + content).hexdigest()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
