"""Test the ignore rules against git, whose syntax they use."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, strategies as st

from objstore.worktree.gitignore import Rules

PATTERNS = (
    b"*.pyc\n",
    b"*.log\n!keep.log\n",
    b"build/\n",
    b"/build\n",
    b"doc/*.txt\n",
    b"**/tmp\n",
    b"a/**/z\n",
    b"out/**\n!out/keep\n",
    b"*\n!*/\n!*.py\n",
    b"# a remark\n\n\\#file\n",
    b"name\\ \n",
    b"[ab]x\n",
    b"[!ab]x\n",
    b"!nothing\n",
    b"foo\n!foo\n",
    b"/a/b/\r\n",
    b"?.c\n",
    b"build/ \n",
    b"sub/**/\n",
    b"*/**/\n",
    b"**/a/**/**/\n",
    b"*\n!sub\n!sub/**/\n!x\n",
    b"sub\n!//\n/\n",
)
NAMES = (
    "x.pyc",
    "y.log",
    "keep.log",
    "build",
    "tmp",
    "z",
    "out",
    "keep",
    "m.py",
    "#file",
    "name ",
    "ax",
    "cx",
    "foo",
    "q.c",
)
FILES = (
    *NAMES,
    *(f"doc/{name}" for name in ("a.txt", "b/a.txt", "build/x", "keep.log")),
    *(f"a/{name}" for name in ("z", "b/z", "b/c/z", "b/x")),
    *(f"sub/{name}" for name in ("foo", "build/x", "out/x", "out/keep", "m.py", "ax")),
)


def spread(root: Path, files: Iterable[str]) -> list[str]:
    """Make the files, as far as no other has a folder's name; return those that are there."""
    for name in files:
        path = root / "work" / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            path = root / "work" / f"other-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    work = root / "work"
    return sorted(
        str(path.relative_to(work)) for path in work.rglob("*") if path.is_file() and ".git" not in path.parts
    )


def taken(root: Path, name: str) -> set[str]:
    """Return the files that a walk by our rules, read from files of that name, comes to."""
    found: set[str] = set()

    def walk(folder: Path, rules: Rules) -> None:
        for path in folder.iterdir():
            if path.name == ".git" or rules.ignores(path.name, is_folder=path.is_dir()):
                continue
            if path.is_dir():
                walk(path, Rules(rules, path.name, texts(path)))
            else:
                found.add(str(path.relative_to(root / "work")))

    def texts(folder: Path) -> list[bytes]:
        return [(folder / name).read_bytes()] if (folder / name).exists() else []

    walk(root / "work", Rules(Rules(), "", texts(root / "work")))
    return found


def files_listed_by_git(root: Path) -> set[str]:
    """Return the files that git takes in."""
    listed = subprocess.run(
        ["git", "-C", str(root / "work"), "ls-files", "--others", "--exclude-standard", "-z"],
        check=True,
        stdout=subprocess.PIPE,
        env={"HOME": str(root), "PATH": "/usr/bin:/bin"},
    )
    return {name for name in listed.stdout.decode().split("\0") if name}


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_ignore_files_are_read_as_git_reads_them(tmp_path: Path, pattern: bytes) -> None:
    spread(tmp_path, FILES)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "work" / ".gitignore").write_bytes(pattern)
    assert taken(tmp_path, ".gitignore") == files_listed_by_git(tmp_path)


DIFFERENCES: Final = (
    # reason, an expression for the lines that it concerns, a line as an example and the name that it shows with
    ("a class in a set is not supported, so the line is refused", r"\[:", "x[[:digit:]]", "x1"),
    ("`re` refuses a reversed range, which holds nothing to git", r"\[[^\]]*-", "x[az-b]", "xa"),
    ("a set can hold a slash", r"\[[^\]]*/|\[[!^]", "x[!b]y", "x/y"),
    ("a backslash in a set is a member of it", r"\[[^\]]*\\", "x[\\]a]", "x]"),
    ("a name is a string of characters, to git one of bytes", r"[^\x00-\x7f]", "x?", "xé"),
    ("white space of any kind goes at the end of a line, with git only spaces", r"\s$", "x\t", "x"),
    ("`$` fits before a newline at the end of a name", r"\n", "x", "x\n"),
    ("`.` fits no newline in a folder's name", r"\n", "a/**/z", "a/b\n/z"),
    ("three or more stars are not two", r"\*{3}", "a/***/z", "a/b/c/z"),
    ("two stars beside a letter cross no slash", r"[^/!]\*\*|\*\*[^/]", "a**/b", "ac/d/b"),
    ("a folder in one that is taken in is taken in where a pattern fits both", r"(?!)", "a\n!/a", "a/a/b"),
    ("slashes alone fit every folder", r"^!?/+$", "x\n!/", "x/y"),
)
"""What pathspec reads in another way than git."""


def ignored_by_git(root: Path, text: str, names: Iterable[str]) -> set[str]:
    """Return those of the names that git ignores where an ignore file has this text."""
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".git" / "info" / "exclude").write_bytes(os.fsencode(text) + b"\n")
    asked = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "--stdin", "-z"],
        check=False,  # it says that way that none is
        input=os.fsencode("\0".join(names)),
        stdout=subprocess.PIPE,
        env={"HOME": str(root), "PATH": "/usr/bin:/bin"},
    )
    assert asked.returncode in {0, 1}
    return {os.fsdecode(name) for name in asked.stdout.split(b"\0") if name}


def files_walked(text: str, names: Iterable[str]) -> set[str]:
    """Return those of the names that a walk by our rules does not come to."""

    def is_ignored(name: str) -> bool:
        rules = Rules(Rules(), "", [os.fsencode(text) + b"\n"])
        *folders, last = name.split("/")
        for folder in folders:
            if rules.ignores(folder, is_folder=True):
                return True
            rules = Rules(rules, folder, [])
        return rules.ignores(last, is_folder=False)

    return set(filter(is_ignored, names))


LINES: Final = st.text("ab*?/![]^ \\#", min_size=1, max_size=7).filter(
    lambda line: not any(re.search(lines, line) for _, lines, _, _ in DIFFERENCES)
)
NAMES_BELOW: Final = ("a", "b", "ab", "a#", "ba/a")
PATHS: Final = [f"{above}{name}" for above in ("", "a/", "b/", "a/b/", "ab/a/") for name in NAMES_BELOW]


@example(lines=[])
@given(lines=st.lists(LINES, max_size=4))
def test_lines_are_read_as_git_reads_them_except_for_known_differences(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "lines"
    root.mkdir(exist_ok=True)
    text = "\n".join(lines)
    # A folder within a folder, where a line takes in again, is one of the differences.
    paths = [path for path in PATHS if path.count("/") < 2] if "!" in text else PATHS
    assert files_walked(text, paths) == ignored_by_git(root, text, paths)
    if not lines:  # once: a difference that is gone has to leave the list
        for reason, _, line, name in DIFFERENCES:
            assert files_walked(line, [name]) != ignored_by_git(root, line, [name]), reason


@pytest.mark.parametrize("line", ["x[z-a]", "x[[:digit:]]", "x[[:none:]]"])
def test_an_unsupported_line_does_not_stop_the_walk(line: str) -> None:
    rules = Rules(Rules(), "", [f"*.tmp\n{line}\r\n*.log\n".encode()])
    assert rules.refused == [line]
    assert rules.ignores("x.log", is_folder=False)
    assert not rules.ignores("x1", is_folder=False)


def test_a_deeper_ignore_file_overrides_one_above(tmp_path: Path) -> None:
    spread(tmp_path, FILES)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "work" / ".gitignore").write_bytes(b"*.log\nfoo\nm.py\n")
    (tmp_path / "work" / "sub" / ".gitignore").write_bytes(b"!foo\n/ax\n")
    (tmp_path / "work" / "doc" / ".gitignore").write_bytes(b"!keep.log\nb/\n")
    assert taken(tmp_path, ".gitignore") == files_listed_by_git(tmp_path)


def test_rebuilt_folders_are_ignored_unless_an_ignore_file_includes_them() -> None:
    assert Rules().ignores("node_modules", is_folder=True)
    assert not Rules().ignores("node_modules", is_folder=False)
    assert not Rules(Rules(), "", [b"!node_modules/\n"]).ignores("node_modules", is_folder=True)


def test_names_that_are_not_text_can_be_ignored() -> None:
    name = b"caf\xe9.tmp".decode("utf-8", "surrogateescape")
    assert Rules(Rules(), "", [b"*.tmp\n"]).ignores(name, is_folder=False)
    assert Rules(Rules(), "", [b"caf\xe9.*\n"]).ignores(name, is_folder=False)


@pytest.mark.parametrize("hostile", [b"*a" * 40, b"!", b"x" * 2_000_000], ids=["wildcards", "nothing", "huge"])
def test_lines_that_could_stop_the_walk_are_not_applied_and_are_reported(hostile: bytes) -> None:
    rules = Rules(Rules(), "", [hostile + b"\n"])
    assert not rules.ignores("a" * 200 + "b", is_folder=False)
    assert rules.refused


def test_rules_have_the_same_fingerprint_if_and_only_if_they_are_equal() -> None:
    above = Rules(Rules(), "", [b"*.log\n"])
    assert Rules(above, "a", []).fingerprint == above.fingerprint
    assert Rules(above, "a", [b""]).fingerprint != above.fingerprint
    assert Rules(Rules(), "", [b"*.tmp\n"]).fingerprint != above.fingerprint
