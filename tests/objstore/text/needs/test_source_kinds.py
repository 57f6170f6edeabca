"""Which files are sources, by their names."""

import subprocess
import sys

import pytest

from objstore.text.needs.source_kinds import concerns_sources, grammar_of, language_of

WITHOUT = """
import sys
sys.modules["tree_sitter"] = None
from objstore.text.needs.languages import languages_of
from objstore.text.needs.source_kinds import concerns_sources
print(len(languages_of(["a.js", "a.py"])), concerns_sources(["a.js", "b.ts"]), concerns_sources(["a.js", "a.py"]))
"""


@pytest.mark.parametrize(
    ("path", "grammar", "language"),
    [
        ("a.js", "javascript", "JavaScript"),
        ("a.cjs", "javascript", "JavaScript"),
        ("a.d.ts", "typescript", "TypeScript"),
        ("a.mts", "typescript", "TypeScript"),
        ("a.tsx", "tsx", "TypeScript"),
    ],
)
def test_ending_says_the_grammar(path: str, grammar: str, language: str) -> None:
    assert (grammar_of(path), language_of(path)) == (grammar, language)
    assert concerns_sources(["a.txt", path])


def test_without_the_extra_only_python_is_read() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], check=True, capture_output=True, text=True)
    assert run.stdout == "1 False True\n"
