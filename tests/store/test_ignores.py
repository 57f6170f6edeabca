"""Ignore rules, judged by git, whose syntax they have."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, strategies as st

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
    b"*.log\t\n",
    b"build/ \n",
    b"***\n!foo\n",
    b"***/\n",
    b"***/tmp\n",
    b"***/**\n",
    b"a/***/z\n",
    b"*\n!***/z\n!*/\n",
    b"out/****\n!out/keep\n",
    b"sub/***/\n",
    b"***p\n",
    b"sub/**/\n",
    b"*/**/\n",
    b"**/a/**/**/\n",
    b"*\n!sub\n!sub/**/\n!x\n",
    b"a\n!/\n",
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


BRACKETS: Final = (
    *(f"x[[:{name}:]]" for name in ("alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower")),
    *(f"x[[:{name}:]]" for name in ("print", "punct", "space", "upper", "xdigit")),
    "x[![:alpha:]]",
    "x[^[:alpha:]q-z_]",
    "x[[:digit:]-a]",
    "x[a-[:digit:]]",
    "x[[:none:]]",
    "x[[:alpha:]",
    "x[[:alpha]",
    "x[[:]",
    "x[[a]",
    "x[[.a.]]",
    "x[a-Z]",
    "x[!a-Z]",
    "x[z-ab]",
    "x[\\]a]",
    "x[\\]-a]",
    "x[a-\\]]",
    "x[]a]",
    "x[!]a]",
    "x[]-a]",
    "x[a-]",
    "x[-a]",
    "x[a-c-e]",
    "x[--0]",
    "x[a",
    "x[",
    "x[]",
    "x[!",
    "x[a\\",
    "\\x[ab]",
    "x\\[ab]",
    "x[/]",
    "x[!/]",
    "[x/]a",
    "*[/a]",
    "x[~~]",
    "x[a&&b]",
    "x[a||b]",
    "x[*?]",
    "x[ ]",
    "x[a ",
    "!x[a]",
    "#x[a",
    "x?",
    "x[!a]",
    "x[é]",
    "x[!é]?",
    "x[à-ü]?",
    "xà",
    "x*\xa0",
)
LETTERS: Final = tuple(f"x{chr(code)}" for code in range(1, 128) if chr(code) != "/")
WORDS: Final = ("x", "xé", "xà", "xb\xa0", "xab", "x[ab]", "x]", "x[a", "xa]", "x[", "sub/xa", "sub/x/", "-xa")


def by_check_ignore(root: Path, text: str, names: Iterable[str]) -> set[str]:
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


def by_us(text: str, names: Iterable[str]) -> set[str]:
    rules = Rules(Rules(), "", [os.fsencode(text) + b"\n"])
    below = Rules(rules, "sub", [])

    def is_ignored(name: str) -> bool:
        folder, _, last = name.rpartition("/")
        return (below if folder else rules).ignores(last, is_folder=False)

    return set(filter(is_ignored, names))


@pytest.mark.parametrize("text", BRACKETS)
def test_a_set_in_brackets_holds_what_git_puts_into_it(tmp_path: Path, text: str) -> None:
    names = (*LETTERS, *(name for name in WORDS if not name.endswith("/")))
    assert by_us(text, names) == by_check_ignore(tmp_path, text, names)


@given(st.text("xab-[]!^\\:/é", min_size=1, max_size=8).map(lambda text: f"x[{text}"))
def test_whatever_stands_in_brackets_is_read_as_git_reads_it(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    names = [f"x{word}" for word in ("", *"ab-[]!^:x", "é", "ab", "a]", "b]", "[]", "é]", "-]", "aa")]
    root = tmp_path_factory.getbasetemp() / "brackets"
    root.mkdir(exist_ok=True)
    assert by_us(text, names) == by_check_ignore(root, text, names)


ENDS: Final = (
    *("", " ", "\t", " \t", "\t ", "\x0b", "\x0c", "\r", "\r\r", "\x1c", "\xa0"),
    *("\\ ", "\\  ", "\\\\ ", "\\\t", " \\ "),
)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("begun", ["x", "*x", "", "[x]", "x[a", "sub/x"])
def test_of_the_end_of_a_line_only_spaces_go(tmp_path: Path, begun: str, end: str) -> None:
    names = [f"{folder}{name}" for folder in ("", "sub/") for name in names_with_ends()]
    assert by_us(f"{begun}{end}", names) == by_check_ignore(tmp_path, f"{begun}{end}", names)


@given(st.text("x \t\\\r\x0b*", max_size=6))
def test_whatever_a_line_ends_in_is_read_as_git_reads_it(tmp_path_factory: pytest.TempPathFactory, end: str) -> None:
    root = tmp_path_factory.getbasetemp() / "ends"
    root.mkdir(exist_ok=True)
    assert by_us(f"x{end}", names_with_ends()) == by_check_ignore(root, f"x{end}", names_with_ends())


def names_with_ends() -> list[str]:
    """Return names that end in the white space that a line may end in, or don't."""
    return [f"{name}{end}" for name in ("x", "xx", "x\\") for end in ("", *ENDS)] + [end for end in ENDS if end]


def test_a_name_that_is_no_text_is_bytes_to_a_line(tmp_path: Path) -> None:
    names = [os.fsdecode(name) for name in (b"x\xe9", b"x\xc3\xa9", b"x\xff", b"x\x80")]
    for text in ("x?", "x??", "x[!a]", "x[é]", os.fsdecode(b"x[\x80-\xe9]"), "xé"):
        assert by_us(text, names) == by_check_ignore(tmp_path, text, names)


def test_a_line_that_git_takes_and_that_fits_nothing_does_not_stop_the_walk() -> None:
    rules = Rules(Rules(), "", [b"*.[a-Z]\n*.log\n"])
    assert not rules.ignores("x.b", is_folder=False)
    assert rules.ignores("x.log", is_folder=False)
    assert rules.refused == []


@pytest.mark.parametrize("line", ["caf\u00e9[a", "x[[:none:]]"])
def test_a_line_whose_brackets_have_no_end_or_no_such_class_is_told(line: str) -> None:
    assert Rules(Rules(), "", [f"*.log\n{line}\r\n".encode()]).refused == [line]


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
