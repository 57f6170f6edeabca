"""What a change of files breaks in those files, and in those that import them."""

from collections.abc import Mapping

import pytest

from objstore.text.needs.broken_names import broken_names
from objstore.text.needs.python_names import python_names
from objstore.text.needs.python_program import PythonProgram, module_words

Sources = Mapping[str, str]


def program(sources: Sources) -> PythonProgram:
    return PythonProgram(sources, lambda path: python_names(sources[path].encode()))


def broken(before: Sources, after: Sources) -> list[str]:
    first, second = program(before), program(after)
    found = broken_names(first, second, {path: path if path in before else "" for path in after})
    return [f"{each.path}:{each.line} {each.module}.{each.name}" for each in found]


PACKAGE = {"p/__init__.py": "", "p/a.py": "x = 1\ny = 2\n"}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("from p.a import y\n", ["p/b.py:1 p.a.y"]),
        ("from .a import x, y\n", ["p/b.py:1 p.a.y"]),
        ("from . import a\n", []),
        ("from .a import *\nprint(x, y)\n", ["p/b.py:2 .y"]),
        ("try:\n    from .a import y\nexcept ImportError:\n    y = 0\n", []),
        ("import p.a\n", []),
        ("def f():\n    from p.a import y\n", ["p/b.py:2 p.a.y"]),
    ],
)
def test_import_of_a_name_that_goes_is_broken(user: str, expected: list[str]) -> None:
    before = {**PACKAGE, "p/b.py": user}
    assert broken(before, before | {"p/a.py": "x = 1\n"}) == expected


def test_module_that_goes_breaks_its_imports() -> None:
    before = {**PACKAGE, "p/b.py": "import p.a\nfrom . import a\nimport os.path\nimport other\n"}
    after = {path: text for path, text in before.items() if path != "p/a.py"}
    assert broken(before, after) == ["p/b.py:1 p.a.", "p/b.py:2 p.a"]


def test_module_with_names_that_no_one_can_know_breaks_nothing() -> None:
    before = {**PACKAGE, "p/b.py": "from .a import y\n"}
    assert broken(before, before | {"p/a.py": "def __getattr__(name): ...\n"}) == []
    assert broken(before, before | {"p/a.py": "from numpy import *\n"}) == []


def test_what_is_exported_through_a_star_is_followed() -> None:
    before = {**PACKAGE, "p/__init__.py": "from .a import *\n", "use.py": "from p import y\n"}
    assert broken(before, before) == []
    assert broken(before, before | {"p/a.py": "x = 1\n"}) == ["use.py:1 p.y"]


def test_what_a_package_imports_again_from_its_files_is_followed() -> None:
    package = {"p/__init__.py": "from .a import x as x, y as z\n", "p/a.py": "x = 1\ny = 2\n"}
    before = {**package, "use.py": "from p import x, z\n"}
    assert broken(before, before | {"p/a.py": "x = 1\n"}) == ["p/__init__.py:1 p.a.y"]
    assert broken(before, before | {"p/__init__.py": "from .a import x as x\n"}) == ["use.py:1 p.z"]


def test_star_brings_what_all_names_and_what_no_underscore_begins() -> None:
    before = {"a.py": "__all__ = ['_x']\n_x = y = 1\n", "use.py": "from a import *\nprint(_x)\n"}
    assert broken(before, before) == []
    assert broken(before, before | {"a.py": "_x = y = 1\n"}) == ["use.py:2 ._x"]


def test_what_was_broken_before_is_no_news() -> None:
    before = {**PACKAGE, "p/b.py": "from .a import z\nprint(missing)\n"}
    assert broken(before, before | {"p/b.py": "from .a import z\n\nprint(missing)\n"}) == []


def test_words_of_a_package_s_file_are_its_folder_and_any() -> None:
    assert module_words("p/a.py") == ("a",)
    assert module_words("p/q/__init__.py") == ("q", "")
