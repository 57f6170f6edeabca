"""The manual pages: one for each command, made of what the help says, in the format that man reads."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.main import COMMANDS
from cli.manual import pages, write_pages
from tests.cli.desk import PATIENCE, PROGRAM, SOURCE, environment

READERS = {
    "groff": ["groff", "-man", "-Tutf8", "-ww", "-P-c"],
    "mandoc": ["mandoc", "-T", "utf8", "-W", "warning"],
}


def test_there_is_a_page_for_each_command_with_all_its_options() -> None:
    written = dict(pages())
    assert {"cas.1", *(f"cas-{name}.1" for name in COMMANDS)} <= set(written)
    assert r"\-\-conversation ID" in written["cas-log.1"]
    assert "interrupted" in written["cas.1"]
    for name, content in written.items():
        assert [line for line in content.splitlines() if not line] == [], name
        assert re.findall(r"^\.SH (.*)$", content, re.MULTILINE)[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name


@pytest.mark.parametrize("reader", [name for name in READERS if shutil.which(name)])
def test_man_reads_the_pages_without_a_warning(tmp_path: Path, reader: str) -> None:
    for path in write_pages(tmp_path):
        ran = subprocess.run(
            [*READERS[reader], str(path)], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, ""), path
        shown = re.sub(r".\x08", "", ran.stdout).replace("\N{HYPHEN}", "-")
        assert path.stem in shown


def test_make_writes_them(tmp_path: Path) -> None:
    makefile = (Path(SOURCE) / "Makefile").read_text()
    assert re.search(r"^man: setup .*\n\t\$\(BIN\)/python -m cli\.manual ", makefile, re.MULTILINE)
    ran = subprocess.run(
        [PROGRAM[0], "-P", "-m", "cli.manual", str(tmp_path)],
        env=environment({}),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert len(ran.stdout.splitlines()) == len(list(tmp_path.iterdir()))
