"""A slice of `python -m tests.real_packages`: a module of the standard library, with its own tests."""

import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

from tests.real_packages import tried

TESTS = (sys.executable, "-m", "unittest", "-q", "test_textwrap")


def test_edit_that_breaks_a_real_module_is_named_by_its_own_tests_and_taken_out(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    tests = find_spec("test.test_textwrap")
    assert tests is not None
    assert tests.origin is not None
    old = {
        "textwrap.py": Path(textwrap.__file__).read_bytes(),
        "test_textwrap.py": Path(tests.origin).read_bytes(),
    }
    new = {f"docs/{name}.md": name.encode() for name in "abcdef"}
    found = tried(folder, old, new, "textwrap.py", TESTS)
    assert found.named == found.culprit
    assert found.runs <= found.most
