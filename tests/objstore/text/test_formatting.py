"""Test which changes of a text count as formatting."""

import subprocess
import sys

import pytest

from objstore.text.formatting import is_reformatted

MESSY = b"""import os
import abc
def  f( a,b ) :
    x = {'k':1,
      "l" : 'it\\'s'}
    if (a) : return x ;
    return [a,
            b,]
"""


SCRIPT = b"""import {b} from './b'
const f = x => { return {'k': x, "l": 'it\\'s', veryLongName: anotherVeryLongName, third: yetAnotherName} }
function g(a,b){ if(a) return b
  return [a,
    b] }
"""
SCRIPT_BY_PRETTIER = b"""import { b } from "./b";
const f = (x) => {
  return {
    k: x,
    l: "it's",
    veryLongName: anotherVeryLongName,
    third: yetAnotherName,
  };
};
function g(a, b) {
  if (a) return b;
  return [a, b];
}
"""
"""What prettier 3.10 makes of it."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(SCRIPT, SCRIPT_BY_PRETTIER, id="prettier"),
        pytest.param(b"a=1\n", b"a = 1\n", id="spaces"),
        pytest.param(b"f(a, b)\n", b"f(\n    a,\n    b,\n)\n", id="lines and a trailing comma"),
        pytest.param(b"say('x')\n", b'say("x")\n', id="quotes"),
        pytest.param(b"say('it\\'s')\n", b'say("it\'s")\n', id="quotes that are escaped"),
        pytest.param(b"let a = 1\n", b"let a = 1;\n", id="semicolons"),
        pytest.param(b"x => y\n", b"(x) => y\n", id="parentheses"),
        pytest.param(b"import b\nimport a\nx = 1\n", b"import a\nimport b\n\nx = 1\n", id="order of imports"),
        pytest.param(b"a\r\n", b"a\n", id="ends of lines"),
    ],
)
def test_changes_that_formatters_make_are_formatting(before: bytes, after: bytes) -> None:
    assert is_reformatted(before, after)
    assert is_reformatted(after, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"a = 1\n", b"a = 1\n", id="nothing"),
        pytest.param(b"a = 1\n", b"a = 2\n", id="a number"),
        pytest.param(b"a = 1\n", b"a = 1\nb = 2\n", id="a line more"),
        pytest.param(b"f(a, b)\n", b"f(b, a)\n", id="order of arguments"),
        pytest.param(b"f(a, b)\n", b"f(ab)\n", id="a comma that is not the last"),
        pytest.param(b"import a\nimport b\n", b"import a\n", id="an import less"),
        pytest.param(b"x = 1\ny = 2\n", b"y = 2\nx = 1\n", id="order of statements"),
        pytest.param(b"[a]\n", b"{a}\n", id="other brackets"),
        pytest.param(b"a \0b\n", b"a\0b\n", id="binary"),
    ],
)
def test_other_changes_are_not_formatting(before: bytes, after: bytes) -> None:
    assert not is_reformatted(before, after)


def test_what_ruff_makes_of_a_text_is_formatting() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "-"], input=MESSY, capture_output=True, check=True
    )
    assert ran.stdout != MESSY
    assert is_reformatted(MESSY, ran.stdout)
