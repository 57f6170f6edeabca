"""Test the ignore rules against git, whose syntax they use."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, strategies as st

from objstore.disk.ignore_rules.gitignore import Rules, Verdict
from objstore.disk.ignore_rules.ignore_texts import IgnoreTexts

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
            if path.name == ".git" or ignores(rules, os.fsencode(path.name), is_folder=path.is_dir()):
                continue
            if path.is_dir():
                walk(path, Rules(rules, os.fsencode(path.name), texts(path)))
            else:
                found.add(str(path.relative_to(root / "work")))

    def texts(folder: Path) -> IgnoreTexts:
        return of_git((folder / name).read_bytes() if (folder / name).exists() else b"")

    walk(root / "work", Rules(Rules(), b"", texts(root / "work")))
    return found


def of_git(text: bytes) -> IgnoreTexts:
    """Return the texts of a folder that has only a `.gitignore`."""
    return IgnoreTexts(text, b"")


def ignores(rules: Rules, name: bytes, *, is_folder: bool) -> bool:
    """Return whether a scan leaves out a name that git's index doesn't have."""
    return rules.verdict(name, is_folder=is_folder) is not Verdict.SCANNED


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
        rules = Rules(Rules(), b"", of_git(os.fsencode(text) + b"\n"))
        *folders, last = os.fsencode(name).split(b"/")
        for folder in folders:
            if ignores(rules, folder, is_folder=True):
                return True
            rules = Rules(rules, folder)
        return ignores(rules, last, is_folder=False)

    return set(filter(is_ignored, names))


LINES: Final = st.text("ab*?/![]^-: \\#", min_size=1, max_size=9)
NAMES_BELOW: Final = ("a", "b", "ab", "a#", "ba/a", "-", "a b", "é", "]", "b\\")
PATHS: Final = [f"{above}{name}" for above in ("", "a/", "b/", "a/b/", "ab/a/") for name in NAMES_BELOW]
SPECIAL_LINES: Final = (
    "x[[:digit:]]",
    "x[[:none:]]",
    "x[[::]]",
    "x[[:digit:a]",
    "x[z-a]",
    "x[a-]",
    "x[]-a]",
    "x[!b]y",
    "x[\\]a]",
    "x[^]]",
    "x?",
    "x\t",
    "x\\ ",
    "x\\",
    "a/**/z",
    "a/***/z",
    "a**/b",
    "**/b",
    "**b",
    "b/**",
    "a/b**",
    "/**",
    "**",
    "**/",
    "x**/**/z",
    "a\n!/a",
    "x\n!/",
    "x\n!//",
    "*.py[cod]",
    "[Xx]*.[a-c]",
    "*a*b*c*",
)
SPECIAL_NAMES: Final = (
    *("x1", "xb", "xa", "x-", "x]", "x^", "xz", "x", "x ", "x\t", "x\n", "xé", "x\\", "x:", "x[", "x:]", "x/y", "xay"),
    *("a/b\n/z", "a/b/c/z", "a/z", "ac/d/b", "ab", "a/b", "a/bc/d", "b/c", "a/a/b", "m.pyc", "m.pyx", "X1.b", "azbzcz"),
)


def test_lines_with_wildcards_are_read_as_git_reads_them(tmp_path: Path) -> None:
    for line in SPECIAL_LINES:
        for text in (line, f"/{line}", f"{line}/", f"!{line}\n*", f"*\n!{line}", f"a/{line}"):
            assert files_walked(text, SPECIAL_NAMES) == ignored_by_git(tmp_path, text, SPECIAL_NAMES), text


@example(lines=[])
@given(lines=st.lists(LINES, max_size=4))
def test_lines_are_read_as_git_reads_them(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    root = tmp_path_factory.getbasetemp() / "lines"
    root.mkdir(exist_ok=True)
    text = "\n".join(lines)
    assert files_walked(text, PATHS) == ignored_by_git(root, text, PATHS)


def test_a_deeper_ignore_file_overrides_one_above(tmp_path: Path) -> None:
    spread(tmp_path, FILES)
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], check=True)
    (tmp_path / "work" / ".gitignore").write_bytes(b"*.log\nfoo\nm.py\n")
    (tmp_path / "work" / "sub" / ".gitignore").write_bytes(b"!foo\n/ax\n")
    (tmp_path / "work" / "doc" / ".gitignore").write_bytes(b"!keep.log\nb/\n")
    assert taken(tmp_path, ".gitignore") == files_listed_by_git(tmp_path)


def test_rebuilt_folders_are_left_out_unless_an_ignore_file_includes_them() -> None:
    name = b"node_modules"
    assert Rules().verdict(name, is_folder=True) is Verdict.LEFT_OUT
    assert Rules().verdict(name, is_folder=False) is Verdict.SCANNED
    assert Rules(Rules(), b"", of_git(b"!node_modules/\n")).verdict(name, is_folder=True) is Verdict.SCANNED
    assert Rules(Rules(), b"", of_git(b"node_modules/\n")).verdict(name, is_folder=True) is Verdict.LEFT_OUT


def test_our_own_ignore_file_overrides_that_of_git_in_the_same_folder() -> None:
    rules = Rules(Rules(), b"", IgnoreTexts(b"*.log\n!kept\n", b"!a.log\nkept\n"))
    assert [rules.verdict(name, is_folder=False) for name in (b"a.log", b"b.log", b"kept")] == [
        Verdict.SCANNED,
        Verdict.IGNORED_BY_GIT,
        Verdict.LEFT_OUT,
    ]


def test_rules_of_git_end_at_the_top_of_a_repository_and_ours_go_on() -> None:
    class Index:
        def has(self, path: bytes, *, is_folder: bool) -> bool:
            return path == b"kept" and not is_folder

    rules = Rules(Rules(Rules(), b"", IgnoreTexts(b"*.log\n", b"*.tmp\n")), b"inner", index=Index())
    assert rules.verdict(b"a.log", is_folder=False) is Verdict.SCANNED
    assert rules.verdict(b"a.tmp", is_folder=False) is Verdict.LEFT_OUT
    assert Rules(rules, b"deeper").index is rules.index


def test_everything_in_a_folder_that_git_ignores_is_ignored() -> None:
    rules = Rules(Rules(), b"build", IgnoreTexts(b"!a\n", b"!a\nb\n"), is_ignored=True)
    assert Rules(rules, b"deeper").verdict(b"a", is_folder=False) is Verdict.IGNORED_BY_GIT
    assert rules.verdict(b"a", is_folder=False) is Verdict.IGNORED_BY_GIT
    assert rules.verdict(b"b", is_folder=False) is Verdict.LEFT_OUT


def test_names_that_are_not_text_can_be_ignored() -> None:
    assert ignores(Rules(Rules(), b"", of_git(b"*.tmp\n")), b"caf\xe9.tmp", is_folder=False)
    assert ignores(Rules(Rules(), b"", of_git(b"caf\xe9.*\n")), b"caf\xe9.tmp", is_folder=False)


def test_a_file_that_is_too_long_is_not_applied_and_is_reported() -> None:
    rules = Rules(Rules(), b"", of_git(b"*\n" * 600_000))
    assert not ignores(rules, b"a", is_folder=False)
    assert rules.refused == [".gitignore is longer than 1048576 bytes and is not applied"]


def test_a_line_with_many_wildcards_takes_no_longer_than_others() -> None:
    rules = Rules(Rules(), b"", of_git(b"*a" * 100 + b"\n" + b"/**" * 60 + b"/x\n"))
    assert not ignores(rules, b"a" * 200 + b"b", is_folder=False)
    for _ in range(50):
        rules = Rules(rules, b"a" * 100)
    assert not ignores(rules, b"a" * 200 + b"b", is_folder=False)


def test_rules_have_the_same_fingerprint_if_and_only_if_they_are_equal() -> None:
    above = Rules(Rules(), b"", of_git(b"*.log\n"))
    assert Rules(above, b"a").fingerprint == above.fingerprint
    assert Rules(above, b"a", of_git(b"\n")).fingerprint != above.fingerprint
    assert Rules(above, b"a", is_ignored=True).fingerprint != above.fingerprint
    assert Rules(Rules(), b"", of_git(b"*.tmp\n")).fingerprint != above.fingerprint
    assert Rules(Rules(), b"", IgnoreTexts(b"", b"*.log\n")).fingerprint != above.fingerprint
