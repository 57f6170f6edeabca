"""What a Python source defines, imports and leaves undefined."""

import pytest

from objstore.text.needs.python_names import Import, python_names


def undefined(source: str) -> list[tuple[str, int]]:
    return list(python_names(source.encode()).undefined)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import os\nos.path\n",
        "def f(a, *b, c=1, **d):\n    return a, b, c, d, f\n",
        "for x in []: pass\nelse: x = 1\nprint(x)\n",
        "with open('f') as g: g\n",
        "class A:\n    b = 1\n    c = b\n    def d(self): return __class__\n",
        "def f():\n    global late\n    late = 1\ndef g(): return late\n",
        "print([a for a in range(3)], {b: c for b, c in {}}, lambda d: d)\n",
        "try:\n    unicode\nexcept NameError:\n    pass\n",
        "if (n := 3): n\n",
        "match 1:\n    case {'a': x, **rest}: x, rest\n    case [y, *z]: y, z\n",
        "print(__file__, __name__, __doc__, WindowsError)\n",
        "from typing import Literal\ndef f(a: 'Literal[\"b\"]', c: Literal['d']): ...\n",
        "def f() -> 'list[int]': ...\n",
        "from typing import Annotated\ndef f(a: Annotated[int, 'no name']): ...\n",
        "from sqlalchemy import cast\ncast('column', int)\n",
        "import os\nhome = os.environ\ndel os\n",
        "class A:\n    for i in range(3): pass\n    del i\n",
        "from functools import cache\nclass A:\n    @cache\n    def f(self): ...\n    def cache(self): ...\n",
        "class A:\n    @property\n    def x(self): ...\n    @x.setter\n    def x(self, to): ...\n",
        "xs = [y for x in [1] if (y := x)]\nprint(y)\n",
        "def f():\n    for i in []:\n        if i: print(y)\n        y = 1\n",
        "def f():\n    def g():\n        nonlocal x\n        x = 1\n    g()\n    print(x)\n    x = 2\n",
        "def f():\n    lambda: late\n    [late for _ in []]\n    late = 1\n",
        "def f():\n    while 1:\n        try: x\n        except UnboundLocalError: x = 1\n",
        "def f():\n    global g\n    g = 1\nf()\nprint(g)\ng = 2\n",
        "def f():\n    [y := 1 for _ in [1]]\n    print(y)\n    y = 2\n",
        "def f(a):\n    match a:\n        case [b, *c] if b: c\n        case int(real=g) as h: g, h\n",
        "len = len\ny = 1\nclass A:\n    y = y\n",
        "from a import *\ny = y\n",
        "def f():\n    try: pass\n    except OSError as e: print(e)\n    e = 1\n",
        "def f():\n    try: g()\n    except: pass\n    try: gone\n    except: pass\ndef g(): ...\n",
        "try: pass\nexcept* OSError as caught: caught\n",
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n",
    ],
)
def test_what_is_bound_anywhere_in_its_scopes_is_not_undefined(source: str) -> None:
    assert undefined(source) == []


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        ("\nretry(3)\n", "retry", 2),
        ("def f():\n    return missing\n", "missing", 2),
        ("class A(Base):\n    pass\n", "Base", 1),
        ("@decorated\ndef f(): ...\n", "decorated", 1),
        ("def f(a: Gone): ...\n", "Gone", 1),
        ("from __future__ import annotations\ndef f(a: Gone): ...\n", "Gone", 2),
        ("def f(a: 'list[Gone]') -> None: ...\n", "Gone", 1),
        ("from __future__ import annotations\nx: Gone[int] = 1\n", "Gone", 2),
        ("def f():\n    x = 1\ndef g():\n    return x\n", "x", 4),
        ("__all__ = ['a', 'gone']\na = 1\n", "gone", 1),
        ("__all__ = ['a']\n__all__ += ['gone']\na = 1\n", "gone", 1),
        ("def __getattr__(name): ...\nprint(gone)\n", "gone", 2),
        ("import typing as t\nt.cast('Gone', 1)\n", "Gone", 2),
        ("from typing import TypeVar\nT = TypeVar('T', bound='Gone')\n", "Gone", 2),
        ("x = 1\ndel gone\n", "gone", 2),
        ("class A:\n    @x.setter\n    def x(self, to): ...\n", "x", 2),
        ("if TYPE_CHECKING:\n    import os\n", "TYPE_CHECKING", 1),
        ("match 1:\n    case Gone(x=y): y\n", "Gone", 2),
        ("def f():\n    global state\n    return state\n", "state", 3),
        ("def f(xs):\n    [x for x in xs]\n    return y\n", "y", 3),
        ("print(f'{1:{gone}}')\n", "gone", 1),
        ("def f(v):\n    if v:\n        s = s.strip()\n    return s\n", "s", 3),
        ("def f():\n    if x: pass\n    else: x = 1\n", "x", 2),
        ("def f():\n    x += 1\n    x = 2\n", "x", 2),
        ("x = x + 1\n", "x", 1),
        ("class A:\n    x = x\n", "x", 2),
        ("def f():\n    class B(base): ...\n    base = 1\n", "base", 2),
        ("def f():\n    try: gone()\n    except:\n        raise\n", "gone", 2),
    ],
)
def test_what_nothing_binds_is_undefined_with_its_first_line(source: str, name: str, line: int) -> None:
    assert undefined(source) == [(name, line)]


def test_imports_are_named_with_their_dots_and_lines() -> None:
    source = b"import a.b as c, d\nfrom . import e\nfrom ..f.g import (\n    h as i,\n    j,\n)\nfrom k import *\n"
    assert python_names(source).imports == (
        Import("a.b", 0, "", 1),
        Import("d", 0, "", 1),
        Import("", 1, "e", 2),
        Import("f.g", 2, "h", 3),
        Import("f.g", 2, "j", 3),
        Import("k", 0, "*", 7),
    )


def test_import_whose_failure_is_caught_is_not_counted() -> None:
    assert python_names(b"try:\n    import fast\nexcept ImportError:\n    fast = None\n").imports == ()


@pytest.mark.parametrize("source", [b"def f(:\n", b"\0", b"x = '\xff'\n", b"# coding: nothing\n", b"(" * 5000])
def test_what_is_no_python_says_so_and_raises_nothing(source: bytes) -> None:
    assert python_names(source).error


@pytest.mark.parametrize(
    "source",
    [b"type A = int\n", b"class A[T]: ...\n", b"def f[T](a: T): ...\n", b"x = f'{a['b']}'\n", b"x = t'{a}'\n"],
)
def test_what_a_newer_python_may_read_is_no_error(source: bytes) -> None:
    assert python_names(source).error == ""


def test_name_that_the_module_deletes_in_the_end_is_not_defined() -> None:
    names = python_names(b"import os\nimport sys\ndel os, sys\nsys = 1\ndef f():\n    x = 1\n    del x\nx = 2\n")
    assert names.defined == {"sys", "f", "x"}
