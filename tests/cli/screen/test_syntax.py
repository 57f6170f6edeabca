"""Syntax in colours: it changes no character, and a hostile file can't make it hang."""

import re
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner, program_finding, unforked_cas
from tests.support.sampling import sampled_product

CODE = re.compile("\x1b\\[[0-9;]*m")
KEYWORD, IN_CHANGE, STRING, COMMENT = "\x1b[34m", "\x1b[1m", "\x1b[36m", "\x1b[90m"

TEXTS = {
    "a.py": 'import os\n\n\ndef f():\n    """Two\n    lines."""\n    return "x"  # why\n\n\nclass A:\n\tpass\n',
    "a.c": '/* one\n   two */\nint main(void) {\n\treturn 0; // "x"\n}\n',
    "a.sh": 'if true; then\n  cat <<EOF\n$x "quoted\nEOF\nfi\n',
    "a.html": "<!-- one\ntwo --><p class='x'>\x1b[2Jtext</p>\n<script>var a = `b`;</script>\n",
    "a.json": '{"a": "\u202e\x9b31m", "b": null}\n[\n',
    "a.md": "# Title\n\n```python\nimport os\n```\n\r\n",
    "a.rs": 'fn main() { let s = r#"x"#; }\n' * 3 + "\x00",
    "a.pl": "my $x = <<E;\n" + "{(" * 20 + "\n",
    "a.unknown": "import os\n",
    "a.tex": "% c\n\\begin{x} $a\n\ufeff\u200b",
}


@pytest.mark.parametrize(("name", "layout"), sampled_product(list(TEXTS), [[], ["-y"]]))
def test_colours_change_no_character(runner: CommandRunner, name: str, layout: list[str]) -> None:
    old = TEXTS[name].encode()
    runner.done("accept", str(runner.write(name, old)))
    lines = old.splitlines(keepends=True)
    runner.write(name, b"".join([b"new \x1b]0;x\x07 line\n", *lines[:1], b"if class\n", *lines[1:], b"# end"]))
    for words in (["diff"], ["show"]):
        colored, plain = (
            runner.typed("--color", color, *words, *layout, COLUMNS="80") for color in ("always", "never")
        )
        assert (CODE.sub("", colored[1]), colored[0]) == (plain[1], 0)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", plain[1])


def changed(runner: CommandRunner) -> None:
    runner.done("accept", str(runner.write("a.py", TEXTS["a.py"].encode())))
    runner.edit("a.py", b'return "x"', b"return None")


def test_keywords_strings_and_comments_are_marked(runner: CommandRunner) -> None:
    changed(runner)
    for layout in ([], ["-y"]):
        shown = runner.done("--color", "always", "diff", *layout, COLUMNS="120").text
        assert f'{STRING}"""Two' in shown
        assert f"{STRING}    lines." in shown  # it began on the line before
        assert f"{KEYWORD}class" in shown
        assert f"{IN_CHANGE}return" in shown
    assert KEYWORD not in runner.done("diff").text


def test_a_file_of_an_unknown_kind_is_shown_without(runner: CommandRunner) -> None:
    runner.done("accept", str(runner.write("a.unknown", b"import os\nclass\n")))
    runner.write("a.unknown", b"import os\nclass\nend\n")
    assert KEYWORD not in runner.done("--color", "always", "diff").text


def replaced(place: Path, content: str) -> tuple[str, ...]:
    """Return a program that finds another Pygments."""
    package = place / "pygments"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lexers.py").write_text(content)
    (package / "token.py").write_text(
        "class Name: Class = Function = Tag = ()\nComment = Keyword = Number = String = ()\n"
    )
    (package / "util.py").write_text("class ClassNotFound(Exception): ...\n")
    return program_finding(place)


SLOW = """
import re
class Lexer:
    def get_tokens_unprocessed(self, text):
        try:
            re.match("(a+)+$", "a" * 60 + "b")  # takes longer than any limit
        except Exception as error:  # as Pygments does when it is interrupted while it compiles a lexer
            raise ValueError("uncompilable regex") from error
        yield 0, (), text
def get_lexer_for_filename(name):
    return Lexer()
"""


def test_a_text_that_takes_too_long_is_shown_without(runner: CommandRunner, tmp_path: Path) -> None:
    changed(runner)
    shown = unforked_cas("--color", "always", "diff", folder=runner.folder, program=replaced(tmp_path, SLOW))
    assert (shown.status, shown.said) == (0, "")
    assert CODE.sub("", shown.text) == CODE.sub("", runner.done("--color", "always", "diff").text)
