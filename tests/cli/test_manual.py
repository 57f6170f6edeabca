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
        sections = re.findall(r"^\.SH (.*)$", content, re.MULTILINE)
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        assert sections[-2:] == ["EXIT STATUS", "SEE ALSO"], name
        assert ".B \\-h, \\-\\-help" in content, name
        # Behind the name of each entry stands what it is.
        assert not re.search(r"^\.TP\n\.B .*\n\.", content, re.MULTILINE), name


def test_a_page_names_those_beside_it_and_each_of_them_is_there() -> None:
    written = dict(pages())
    ends = {name: content.rpartition(".SH SEE ALSO\n")[2] for name, content in written.items()}
    related = {name: end.replace("\\-", "-").strip() for name, end in ends.items()}
    for name, said in related.items():
        named = [other.replace("(1)", ".1") for other in said.split(", ")]
        assert set(named) <= set(written) - {name}, name
        assert len(named) == len(set(named)), name
    assert related["cas-log.1"].startswith("cas(1), cas-status(1), cas-show(1), ")
    assert related["cas-pin.1"].startswith(
        "cas(1), cas-pin-add(1), cas-pin-list(1), cas-pin-remove(1), cas-snapshot(1)"
    )
    assert related["cas-pin-add.1"] == "cas(1), cas-pin(1), cas-pin-list(1), cas-pin-remove(1)"
    assert "cas-log(1)" in related["cas.1"]


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
