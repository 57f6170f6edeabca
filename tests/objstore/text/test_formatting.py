"""Test which changes of a text count as formatting."""

import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from objstore.text.formatting import is_reformatted

MESSY = b"""import os
import abc
def  f( a,b ) :
    x = {'k':1,
      "l" : "it's"}
    if a :
        return x
    return [a,
            b,]
"""
SCRIPT = b"""import {b} from './b'
const f = (x) => {return {"k": x, l: 'it', veryLongName: anotherVeryLongName, third: yetAnotherName};
};
function g(a,b){ if(a) return b;
  return [a,
    b] ;}
"""
SCRIPT_BY_FORMATTER = b"""import { b } from "./b"
const f = (x) => {
  return {
    "k": x,
    l: "it",
    veryLongName: anotherVeryLongName,
    third: yetAnotherName,
  };
};
function g(a, b) {
  if (a) return b;
  return [a, b];
}
"""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("a.py", b"a=1\n", b"a = 1\n", id="spaces"),
        pytest.param("a.py", b"f(a, b)\n", b"f(\n    a,\n    b,\n)\n", id="lines and a last comma"),
        pytest.param("a.py", b"x = {a, }\n", b"x = {a}\n", id="last comma of a set"),
        pytest.param("a.py", b"say('x')\n", b'say("x")\n', id="quotes"),
        pytest.param("a.py", b"if a:\n\tb\n", b"if a:\n    b\n", id="tabs"),
        pytest.param("a.py", b"a  # why  \n", b"a # why\n", id="spaces around a comment"),
        pytest.param("a.py", b"a\r\n", b"a\n", id="line endings"),
        pytest.param("a.js", b"f(a)\n", b"f(\n  a,\n)\n", id="last comma of a script"),
        pytest.param("a.js", b"x=a/b/c\n", b"x = a / b / c\n", id="divisions"),
        pytest.param("a.js", b"x=`a ${b} c`\n", b"x = `a ${b} c`\n", id="template"),
        pytest.param("a.go", b"x:=-1\n", b"x := -1\n", id="Go"),
        pytest.param("a.c", b"#define A 1\nint x=A;\n", b"#define A 1\nint x = A;\n", id="C"),
        pytest.param("a.rs", b"fn f<'a>(x:&'a str){'x'}\n", b"fn f<'a>(x: &'a str) {\n    'x'\n}\n", id="Rust"),
        pytest.param("A.java", b'f("a  b" ,1);\n', b'f("a  b", 1);\n', id="Java"),
        pytest.param("a.json", b'{"a":[1,-2]}', b'{\n  "a": [1, -2]\n}\n', id="JSON"),
    ],
)
def test_a_change_that_keeps_the_tokens_is_formatting(name: str, before: bytes, after: bytes) -> None:
    assert is_reformatted(before, after, name.encode())
    assert is_reformatted(after, before, name.encode())


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("a.py", b"a = 1\n", b"a = 1\n", id="nothing"),
        pytest.param("a.py", b"a = 1\n", b"a = 2\n", id="a number"),
        pytest.param("a.py", b"if ok:\n    log()\n    pay()\n", b"if ok:\n    log()\npay()\n", id="out of a block"),
        pytest.param("a.py", b"x = a * (b + c)\n", b"x = a * b + c\n", id="parentheses"),
        pytest.param("a.py", b"if not (a or b):\n    c\n", b"if not a or b:\n    c\n", id="parentheses of not"),
        pytest.param("a.py", b"x = (1,)\n", b"x = (1)\n", id="tuple"),
        pytest.param("a.py", b"x = y[1,]\n", b"x = y[1]\n", id="tuple as an index"),
        pytest.param("a.py", b'run("rm -rf /tmp/b")\n', b'run("rm -rf / tmp/b")\n', id="space in a string"),
        pytest.param("a.py", b'x = f"{a }"\n', b"x = f'{a }'\n", id="formatted string"),
        pytest.param("a.py", b"x = '\\\"'\n", b'x = "\\""\n', id="escape"),
        pytest.param("a.py", b"x = 1\n# x\n", b"x = 1  # x\n", id="place of a comment"),
        pytest.param("a.py", b"import b\nimport a\n", b"import a\nimport b\n", id="order of imports"),
        pytest.param("a.py", b"x = (\n", b"x = ( \n", id="no Python"),
        pytest.param("a.js", b"// admins\nif (!a) return;\n", b"// admins if (!a) return;\n", id="into a comment"),
        pytest.param("a.js", b"return\nx\n", b"return x\n", id="end of a statement"),
        pytest.param("a.js", b"a\n++b\n", b"a++\nb\n", id="end of a statement before an operator"),
        pytest.param("a.js", b"f([1,,])\n", b"f([1,])\n", id="hole in an array"),
        pytest.param("a.js", b"x = /a b/\n", b"x = /a  b/\n", id="regular expression"),
        pytest.param("a.js", b"if (a) /a b/.test(c)\n", b"if (a) /a  b/.test(c)\n", id="perhaps a regular expression"),
        pytest.param("a.js", b"x = `a b`\n", b"x = `a  b`\n", id="template"),
        pytest.param("a.js", b"x = `${`a b`}`\n", b"x = `${`a  b`}`\n", id="nested template"),
        pytest.param("a.js", b"x = <p>a  b</p>\n", b"x = <p>a b</p>\n", id="markup"),
        pytest.param("a.c", b"#define A(x) x\n", b"#define A (x) x\n", id="macro"),
        pytest.param("a.c", b"x = a+ ++b;\n", b"x = a++ +b;\n", id="operators"),
        pytest.param("a.cpp", b'x = R"(a b)";\n', b'x = R"(a  b)";\n', id="raw string"),
        pytest.param("a.go", b"f(a,\nb)\n", b"f(a, b)\n", id="line break in Go"),
        pytest.param("a.rs", b'x(r#"a" b"#);\n', b'x(r#"a"  b"#);\n', id="raw string of Rust"),
        pytest.param("a.sh", b"echo '$HOME'\n", b'echo "$HOME"\n', id="shell"),
        pytest.param("a.yml", b"a:\n  b: 1\n", b"a:\nb: 1\n", id="YAML"),
        pytest.param("Makefile", b"a:\n\tb\n", b"a:\n    b\n", id="makefile"),
        pytest.param("a.txt", b"limit 1 000\n", b"limit 1000\n", id="prose"),
        pytest.param("py", b"a=1\n", b"a = 1\n", id="no known ending"),
        pytest.param("a.py", b"a \0b\n", b"a\0b\n", id="binary"),
        pytest.param("a.py", b"a=1\n" * 100_000, b"a = 1\n" * 100_000, id="too long"),
    ],
)
def test_a_change_that_may_change_the_meaning_is_not_formatting(name: str, before: bytes, after: bytes) -> None:
    assert not is_reformatted(before, after, name.encode())
    assert not is_reformatted(after, before, name.encode())


@pytest.mark.parametrize(("name", "formatter"), [("a.py", MESSY), ("a.js", SCRIPT)], ids=["ruff", "script"])
def test_what_a_formatter_makes_of_a_text_is_formatting(name: str, formatter: bytes) -> None:
    after = SCRIPT_BY_FORMATTER
    if name == "a.py":
        command = [sys.executable, "-m", "ruff", "format", "--isolated", "-"]
        after = subprocess.run(command, input=formatter, capture_output=True, check=True).stdout
    assert after != formatter
    assert is_reformatted(formatter, after, name.encode())


ENDINGS = ("py", "js", "ts", "c", "go", "rs", "java", "json", "txt")
WORDS = "a b1 1 . 'x' ' ` / // /* */ # , ; : ( ) [ ] { } = + ++ - > < if return ${ é"
PARTS = st.sampled_from([*WORDS.split(), '"y z"', '"', "\\", "\\'", "\n", "\t", "\r\n", ""])


@given(ending=st.sampled_from(ENDINGS), before=st.lists(PARTS), after=st.lists(PARTS))
def test_no_text_fails_and_only_white_space_commas_and_quotes_ever_differ(
    ending: str, before: list[str], after: list[str]
) -> None:
    def dense(parts: list[str]) -> str:
        return "".join("".join(parts).split()).translate(str.maketrans("'", '"', ","))

    def text(parts: list[str]) -> bytes:
        return " ".join(parts).encode()

    for other in (after, [*before, " "], [*before, "\n"]):
        if is_reformatted(text(before), text(other), f"a.{ending}".encode()):
            assert dense(before) == dense(other)
