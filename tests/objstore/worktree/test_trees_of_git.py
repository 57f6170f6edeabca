"""Scans of whole work trees against git: random files, ignore files everywhere that git reads them, random settings."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, strategies as st

from objstore.disk.fs.confined_path import Tree
from objstore.disk.ignore_rules.rule_files import IgnoreReader
from objstore.disk.ignore_rules.scan_rules import ScanRules
from objstore.worktree.stat_cache import StatCache
from objstore.worktree.walk import TreeWalk

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

STORE: Final = b"store"
LATER: Final = 10**19
MARK: Final = b"\xef\xbb\xbf"
NAMES: Final = ("a", "A", "b", "B.log", "x.log", "x.LOG", "é.log", "build", "Build", "a b", "#x", "c.o", "C.O", "k\\")
LINES: Final = (
    *("*.log", "*.LOG", "!*.log", "*.Log", "build/", "BUILD", "/a", "/A", "a", "!a", "!A", "A/b", "a/B.LOG", "**/b"),
    *("a/**", "A/**/b", "[a-b]", "[A-B]", "[AB]", "[!a]*", "[!A-B]*", "[[:upper:]]", "[[:lower:]]*", "[^[:upper:]]"),
    *("\\A", "\\a", "*\\A", "?", "x.[l-m]*", "X.?OG", "#x", "\\#x", "É.log", "é*", "a b", "a b  ", "k\\", "K\\\\", ""),
    *(
        "c.o\0x",
        "*",
        "!*/",
        "!/b",
        "*.[oO]",
        "build/*",
        "!build/a",
        "B*/**",
        "  ",
        "!",
        "/",
        "c.o",
        "[",
        "a[",
        "[C]*",
        "[c-C]*",
    ),
)


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True).stdout


def ignore_file(draws: random.Random, most: int = 4) -> bytes:
    """Draw an ignore file in one of the forms that editors give it."""
    end = draws.choice([b"\n", b"\n", b"\r\n"])
    lines = [os.fsencode(draws.choice(LINES)) for _ in range(draws.randint(1, most))]
    start = draws.choice([b"", b"", MARK, MARK + MARK])
    return start + end.join(lines) + draws.choice([b"", end])


class DrawnTree:
    """A random repository, with the settings of a random user."""

    def __init__(self, folder: Path, draws: random.Random) -> None:
        self.home, self.top = folder / "home", folder / "work"
        (self.home / ".config" / "git").mkdir(parents=True)
        git(folder, "init", "-q", str(self.top))
        self.ignores_case = draws.random() < 0.5
        if draws.random() < 0.3:
            (self.home / "mine").write_bytes(ignore_file(draws))
            (self.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
        if draws.random() < 0.5 or self.ignores_case:
            words = ["ignorecase", "ignoreCase = true", "IGNORECASE=yes", "ignorecase = 1", "ignorecase = on"]
            values = words if self.ignores_case else ["ignorecase = 0", "ignorecase =", "ignorecase = no"]
            of_worktree = self.top / ".git" / "config.worktree"
            config = draws.choice([self.top / ".git" / "config", self.home / ".gitconfig", of_worktree])
            if config == of_worktree:
                git(self.top, "config", "extensions.worktreeConfig", "true")
            with config.open("a") as file:
                file.write(f"[core]\n\t{draws.choice(values)}\n")
        self.folders = [self.top]
        for _ in range(draws.randrange(6)):
            inner = self.free_path(draws)
            if inner is not None:
                inner.mkdir()
                self.folders.append(inner)
        self.put_files(draws, 12)
        for inner in draws.sample(self.folders, draws.randint(0, min(3, len(self.folders)))):
            (inner / ".gitignore").write_bytes(ignore_file(draws))
        exclude = self.top / ".git" / "info" / "exclude"
        exclude.unlink()
        if draws.random() < 0.6:
            exclude.write_bytes(ignore_file(draws))
        if draws.random() < 0.6:
            (self.home / ".config" / "git" / "ignore").write_bytes(ignore_file(draws))

    def free_path(self, draws: random.Random) -> Path | None:
        """Draw a path where nothing is: where case is ignored, nothing under another spelling either.

        Git takes two such files for one.
        """
        folder, name = draws.choice(self.folders), draws.choice(NAMES)
        taken = [path.name for path in folder.iterdir()]
        if name in taken or (self.ignores_case and name.lower() in map(str.lower, taken)):
            return None
        return folder / name

    def put_files(self, draws: random.Random, count: int) -> None:
        """Write some files, and have git track some of them."""
        for _ in range(count):
            path = self.free_path(draws)
            if path is not None:
                path.write_bytes(os.fsencode(path))
                if draws.random() < 0.15:
                    git(self.top, "add", "-f", "--", str(path.relative_to(self.top)))

    def ignores(self, root: Path) -> bool:
        """Return whether git ignores a folder, or one above it."""
        words = ["git", "-C", str(self.top), "check-ignore", "-q", "--no-index", str(root.relative_to(self.top))]
        return root != self.top and subprocess.run(words, check=False).returncode == 0

    def files_of_git(self, root: Path) -> set[bytes]:
        """Return the files below `root` that git tracks or would add."""
        words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        return {path for path in git(root, *words).split(b"\0") if path and os.path.lexists(root / os.fsdecode(path))}


@contextmanager
def only_home(home: Path) -> Iterator[None]:
    """Let git and this process know no settings but those in a home folder."""
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("HOME", str(home))
        settings.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            settings.delenv(name, raising=False)
        yield


def scanned(tree: Tree, kept: bytes) -> tuple[set[bytes], bytes]:
    """Return the files that a scan comes to, and the stat cache after it."""
    reader = IgnoreReader(tree, ScanRules(uses_git=True))
    walk = TreeWalk(tree, StatCache.decoded(kept, STORE, 0), clock=LATER, keep=lambda _: None, reader=reader)
    walk.run(b"")
    found = {(folder.path + b"/" + name).lstrip(b"/") for folder in walk.stat_cache for name in folder.files()}
    return found, walk.stat_cache.encoded(STORE, 0)


@given(draws=st.randoms(use_true_random=False))
def test_a_scan_comes_to_the_files_that_git_would_add(draws: random.Random) -> None:
    with tempfile.TemporaryDirectory() as name, only_home(Path(name) / "home"):
        drawn = DrawnTree(Path(name), draws)
        root = draws.choice([drawn.top, drawn.top, draws.choice(drawn.folders)])
        kept = b""
        with closing(Tree(root)) as tree:
            for _ in range(3):
                if drawn.ignores(root):
                    break  # a workspace in a folder that git ignores is one all the same
                found, kept = scanned(tree, kept)
                wanted = drawn.files_of_git(root)
                assert found == wanted
                reader = IgnoreReader(tree, ScanRules(uses_git=True))
                files = {os.fsencode(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
                outside = {path for path in files if not path.startswith(b".git/")}
                assert {path for path in outside if not reader.leaves_out(path)} == wanted
                drawn.put_files(draws, 3)
                if draws.random() < 0.3:
                    git(drawn.top, "rm", "-rq", "--cached", "--ignore-unmatch", ".")
                changed = draws.choice([drawn.top / ".git" / "info" / "exclude", root / ".gitignore"])
                changed.write_bytes(ignore_file(draws))


def test_an_ignore_file_that_is_too_long_does_not_take_others_along(tmp_path: Path) -> None:
    work, ignored = tmp_path / "work", tmp_path / "home" / ".config" / "git" / "ignore"
    ignored.parent.mkdir(parents=True)
    ignored.write_bytes(MARK + b"c\n")
    git(tmp_path, "init", "-q", str(work))
    for name in ("a", "b", "c"):
        (work / name).write_bytes(b"")
    (work / ".gitignore").write_bytes(MARK + b"a\n")
    (work / ".git" / "info" / "exclude").write_bytes(b"#" * (1 << 20) + b"\nb\n")
    with only_home(tmp_path / "home"), closing(Tree(work)) as tree:
        reader = IgnoreReader(tree, ScanRules(uses_git=True))
        walk = TreeWalk(tree, StatCache.decoded(b"", STORE, 0), clock=LATER, keep=lambda _: None, reader=reader)
        walk.run(b"")
        assert {name for folder in walk.stat_cache for name in folder.files()} == {b".gitignore", b"b"}
        assert ["longer than" in passed.reason for passed in walk.skipped] == [True]
