"""The manual: a page for `cas` and for each of its commands, in the format of man(7), made from what --help says.

`python -m cli.manual DIR` writes them, as `make man` does.
"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from cli.main import SECTIONS, __doc__ as endings, cas

__all__ = ["page", "pages", "write_pages"]

SECTION: Final = 1
ROWS: Final = re.compile(r"^\| ([0-9]+) \| (.*) \|$", re.MULTILINE)

ENVIRONMENT: Final = {
    "CAS_WORKSPACE": "Where the workspace is looked for, instead of the current folder.",
    "CAS_PAGER, PAGER": "What long output goes through on a terminal. Without either: less -FRX.",
    "NO_COLOR": "Set to anything: no colour, unless --color asks for it.",
    "VISUAL, EDITOR": "What amend, and the key e of review, open a file in.",
    "XDG_STATE_HOME": "Where review keeps which hunks were put off. Without it: ~/.local/state.",
}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page's file, and the page."""
    yield from _pages(cas, "cas", None)


def page(command: click.Command, name: str, context: click.Context) -> str:
    """Return the page of one command. `name`: with the commands above it, as in `cas pin add`."""
    title = name.replace(" ", "-")
    short = _plain(command.get_short_help_str(200)).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{title.upper()}" "{SECTION}" "{_day()}" "editledger" "editledger"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(short)}",
    ]
    lines += [".SH SYNOPSIS", f".B {_text(name)}", _text(usage), ".SH DESCRIPTION", *_paragraphs(command.help or "")]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                lines += [".TP", f".B {_text(inner)}", _text(_plain(found.get_short_help_str(200)))]
    lines.append(".SH OPTIONS")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # the synopsis has the arguments
            lines += [".TP", f".B {_text(record[0])}", _text(_plain(record[1]))]
    if name == "cas":
        lines.append(".SH ENVIRONMENT")
        for variable, meaning in ENVIRONMENT.items():
            lines += [".TP", f".B {_text(variable)}", _text(meaning)]
    lines.append(".SH EXIT STATUS")
    for status, meaning in ROWS.findall(endings or ""):
        lines += [".TP", f".B {status}", _text(meaning)]
    lines += [".SH SEE ALSO", _text(", ".join(f"{other}({SECTION})" for other in _related(command, name, context)))]
    return "\n".join(filter(None, lines)) + "\n"


def write_pages(folder: Path) -> list[Path]:
    """Write every page into a folder, and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in pages():
        (folder / name).write_text(content)
        written.append(folder / name)
    return written


# ---- inside


def _day() -> str:
    # So that the same source gives the same pages, as packagers ask of whoever writes a date.
    made = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(made), UTC) if made else datetime.now(UTC)
    return now.strftime("%Y-%m-%d")


def _pages(command: click.Command, name: str, above: click.Context | None) -> Iterator[tuple[str, str]]:
    own = name.rpartition(" ")[2]
    context = click.Context(command, info_name=own, parent=above, **command.context_settings)
    yield f"{name.replace(' ', '-')}.{SECTION}", page(command, name, context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from _pages(found, f"{name} {inner}", context)


def _plain(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def _related(command: click.Command, name: str, context: click.Context) -> Iterator[str]:
    """Yield the titles of other pages that have to do with a command: what it is part of, its parts, its neighbours."""
    *above, own = name.split()
    parts = command.list_commands(context) if isinstance(command, click.Group) else []
    beside: list[str] = []
    if context.parent is not None and isinstance(context.parent.command, click.Group):
        beside = context.parent.command.list_commands(context.parent)
    if above == ["cas"]:
        sectioned = {other for names in SECTIONS.values() for other in names}
        rest = [other for other in beside if other not in sectioned]
        beside = next((names for names in SECTIONS.values() if own in names), rest)
    yield from ("-".join(above[:depth]) for depth in range(1, len(above) + 1))
    yield from ("-".join((*above, own, part)) for part in parts)
    yield from ("-".join((*above, neighbour)) for neighbour in beside if neighbour != own)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(filter(None, map(_plain, text.split("\n\n")))):
        if number:
            yield ".PP"
        yield _text(paragraph)


def _text(text: str) -> str:
    """Return text with nothing in it that roff would take for a request."""
    escaped = (
        text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("~", r"\(ti").replace("^", r"\(ha")
    )
    return rf"\&{escaped}" if escaped[:1] in {".", "'"} else escaped


if __name__ == "__main__":
    for path in write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")):
        sys.stdout.write(f"{path}\n")
