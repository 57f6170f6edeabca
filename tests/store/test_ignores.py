"""Ignore rules, judged by git, whose syntax they have."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from objstore.ignores import Rules

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


def by_git(root: Path) -> set[str]:
    """Return the files that git takes in."""
    listed = subprocess.run(
        ["git", "-C", str(root / "work"), "ls-files", "--others", "--exclude-standard", "-z"],
        check=True,
        stdout=subprocess.PIPE,
        env={"HOME": str(root), "PATH": "/usr/bin:/bin"},
    )
    return {name for name in listed.stdout.decode().split("\0") if name}


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_an_ignore_file_means_what_git_takes_it_for(tmp_path: Path, pattern: bytes) -> None:
    spread(tmp_path, FILES)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "work" / ".gitignore").write_bytes(pattern)
    assert taken(tmp_path, ".gitignore") == by_git(tmp_path)


def test_a_deeper_file_counts_more(tmp_path: Path) -> None:
    spread(tmp_path, FILES)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "work" / ".gitignore").write_bytes(b"*.log\nfoo\nm.py\n")
    (tmp_path / "work" / "sub" / ".gitignore").write_bytes(b"!foo\n/ax\n")
    (tmp_path / "work" / "doc" / ".gitignore").write_bytes(b"!keep.log\nb/\n")
    assert taken(tmp_path, ".gitignore") == by_git(tmp_path)


def test_folders_that_are_rebuilt_are_passed_over_unless_a_file_says_otherwise() -> None:
    assert Rules().ignores("node_modules", is_folder=True)
    assert not Rules().ignores("node_modules", is_folder=False)
    assert not Rules(Rules(), "", [b"!node_modules/\n"]).ignores("node_modules", is_folder=True)


def test_a_name_with_a_newline_is_one_name() -> None:
    rules = Rules(Rules(), "", [b"foo\n*.log\n"])
    assert not rules.ignores("foo\n", is_folder=False)
    assert rules.ignores("a\nb.log", is_folder=False)
    assert Rules(Rules(), "", [b"*\n"]).ignores("\n", is_folder=False)


def test_names_that_are_not_text_can_be_ignored() -> None:
    name = b"caf\xe9.tmp".decode("utf-8", "surrogateescape")
    assert Rules(Rules(), "", [b"*.tmp\n"]).ignores(name, is_folder=False)
    assert Rules(Rules(), "", [b"caf\xe9.*\n"]).ignores(name, is_folder=False)


@pytest.mark.parametrize("hostile", [b"*a" * 40, b"!", b"x" * 2_000_000], ids=["wildcards", "nothing", "huge"])
def test_what_could_stop_the_walk_is_not_heard_and_is_told(hostile: bytes) -> None:
    rules = Rules(Rules(), "", [hostile + b"\n"])
    assert not rules.ignores("a" * 200 + "b", is_folder=False)
    assert rules.refused


def test_rules_have_the_same_fingerprint_if_and_only_if_they_hold_the_same() -> None:
    above = Rules(Rules(), "", [b"*.log\n"])
    assert Rules(above, "a", []).fingerprint == above.fingerprint
    assert Rules(above, "a", [b""]).fingerprint != above.fingerprint
    assert Rules(Rules(), "", [b"*.tmp\n"]).fingerprint != above.fingerprint
