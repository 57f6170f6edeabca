"""`make man` writes a page for each command, and man can read it."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from cli.shell.main import COMMANDS, cas
from tests.support.command_runner import PATIENCE
from tests.support.man_pages import write_pages


def test_each_command_has_a_page_with_its_options(tmp_path: Path) -> None:
    write_pages(tmp_path)
    context = click.Context(cas)
    expected = {"cas.1"}
    for name in COMMANDS:
        found = cas.get_command(context, name)
        inner = found.commands if isinstance(found, click.Group) else {}
        expected |= {f"cas-{name}.1", *(f"cas-{name}-{other}.1" for other in inner)}
    assert {path.name for path in tmp_path.iterdir()} == expected
    assert r"\-\-conversation,\fP \-\-conv ID" in (tmp_path / "cas-log.1").read_text()
    assert "See \\fBcas-log(1)\\fP" in (tmp_path / "cas.1").read_text()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_reads_the_pages_without_a_warning(tmp_path: Path) -> None:
    write_pages(tmp_path)
    pages = sorted(tmp_path.iterdir())
    ran = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-c", *pages], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert ran.stderr == ""
    shown = re.sub(r".\x08", "", ran.stdout).replace("\N{HYPHEN}", "-")
    assert [page.stem for page in pages if page.stem not in shown.replace("cas ", "cas-")] == []
