"""What `cas` shows of UTF-16, and of text whose lines end in CR alone."""

import subprocess
from pathlib import Path

import pytest

from tests.support.command_runner import CommandRunner

TEXT = "".join(f"line {number} ü\n" for number in range(1, 13))
CHANGED = TEXT.replace("line 2 ü", "second").replace("line 11 ü", "eleventh")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT.encode("utf-16"), CHANGED.encode("utf-16")),
        (("\ufeff" + TEXT).encode("utf-16-be"), ("\ufeff" + CHANGED).encode("utf-16-be")),
        (TEXT.replace("\n", "\r").encode(), CHANGED.replace("\n", "\r").encode()),
        (TEXT.replace("\n", "\r\n").encode("utf-16"), CHANGED.replace("\n", "\r\n").encode("utf-16")),
    ],
)
def test_its_lines_are_shown_decided_on_and_exported_exactly(
    runner: CommandRunner, tmp_path: Path, before: bytes, after: bytes
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "f").write_bytes(before)
    runner.write("f", before)
    runner.cas("accept", "1")
    runner.write("f", after)
    shown = runner.cas("diff").text
    for line in ("-line 2 ü", "+second", "-line 11 ü", "+eleventh"):
        assert line in shown
    assert shown.count("@@ -") == 2
    assert "+second" in runner.cas("show", "2").text
    assert "+second" in runner.cas("diff", "1", "2").text
    assert " f | 4 ++--" in runner.cas("diff", "--stat").text
    assert " second" in runner.cas("blame", "f").text
    assert len(runner.cas("log", "-S", "eleventh", "--json").lines()) == 1
    patch = subprocess.run(
        ["git", "apply", "-"],
        cwd=other,
        input=runner.cas("export", "--patch", "2").out,
        check=True,
        capture_output=True,
    )
    assert not patch.stderr
    assert (other / "f").read_bytes() == after
    runner.cas("reject", "2:1")
    assert (runner.folder / "f").read_bytes() != before
    runner.cas("reject", "2")
    assert (runner.folder / "f").read_bytes() == before


def test_a_conversion_is_named_and_leaves_the_lines(runner: CommandRunner) -> None:
    runner.write("f", TEXT.encode("utf-16"))
    runner.cas("accept", "1")
    runner.write("f", CHANGED.encode())
    shown = runner.cas("diff").text
    assert "encoding UTF-16 (little-endian) -> plain" in shown
    assert "+second" in shown
    assert "encoding UTF-16 (little-endian) -> plain" in runner.cas("show", "2").text
    assert "encoding UTF-16 (little-endian) -> plain" in runner.cas("diff", "1", "2").text
    runner.cas("reject", "2:0")
    assert (runner.folder / "f").read_bytes() == CHANGED.encode("utf-16")
