"""A day of two agents in a web framework's sources: 66 edits for 9 prompts in 2 sessions, which make 85 changes."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from objstore import CallInfo, Operation, TurnInfo, Workspace
from tests.support.faulty_disk import UnsyncedDisk
from tests.support.review_project import done

__all__ = ["CHANGES", "EDITS", "PROMPTS", "day_worked", "work_in"]

_NAMES: Final = (
    "CHANGES.rst",
    "docs/config.rst",
    "docs/logging.rst",
    "src/pond/app.py",
    "src/pond/cli.py",
    "src/pond/config.py",
    "src/pond/ctx.py",
    "src/pond/json/provider.py",
    "src/pond/logging.py",
    "src/pond/sansio/scaffold.py",
    "src/pond/sessions.py",
    "tests/test_config.py",
    "tests/type_check/typing_route_with_positional_arguments_and_defaults.py",
)

_CREATED: Final = "src/pond/alias.py"
"""A new file, longer than a screen."""

_DELETED: Final = "src/pond/before.py"

_ASKED: Final[tuple[tuple[str, tuple[tuple[str, int], ...]], ...]] = (
    (
        """Add Config.from_toml: load a TOML file with tomllib, with tests, docs and a changelog entry.
Keep from_file as it is for everybody who calls it today.""",
        (("CHANGES.rst", 1), ("docs/config.rst", 2), ("src/pond/config.py", 5), ("tests/test_config.py", 4)),
    ),
    ("_split_path is used in three modules, so make it public", (("src/pond/app.py", 3), ("src/pond/cli.py", 3))),
    (
        "Better docs for logging: say what has_level_handler checks, and mention dictConfig",
        (("docs/logging.rst", 4), ("src/pond/logging.py", 3)),
    ),
    (
        "Keep the old module as an alias",
        ((_CREATED, 1), (_DELETED, 1), ("src/pond/ctx.py", 4), ("src/pond/json/provider.py", 5)),
    ),
    (
        "Type hints: replace t.Optional and t.Union with the | syntax everywhere in src",
        (
            ("src/pond/sansio/scaffold.py", 9),
            ("src/pond/sessions.py", 8),
            ("tests/type_check/typing_route_with_positional_arguments_and_defaults.py", 3),
        ),
    ),
    ("Drop the deprecated before_first_request and its tests", (("src/pond/app.py", 5), ("src/pond/ctx.py", 4))),
    (
        "The session cookie tests fail on CI when the clock jumps. Find out why and fix it without sleeps",
        (("src/pond/sessions.py", 4), ("src/pond/config.py", 3)),
    ),
    ("Make the CLI print where it loaded the app from, in verbose mode only", (("src/pond/cli.py", 7),)),
    ("Tidy the change log and the docs", (("CHANGES.rst", 3), ("docs/config.rst", 3))),
)
_OF_CODEX: Final = 6
"""From this prompt on, counted from 0, the second agent works."""

CHANGES: Final = sum(count for _, files in _ASKED for _, count in files)
"""How many changes there are to decide on."""

EDITS: Final = 66
PROMPTS: Final = tuple(prompt for prompt, _ in _ASKED)

_APART: Final = 12
_LINES: Final = 200


def _line(name: str, number: int) -> str:
    if name.endswith(".py"):
        return "\n" if number % _APART == 0 else f"    value_{number} = load({number}, silent=False)  # as before\n"
    return "\n" if number % 5 == 0 else f"Line {number} of the text, which says what there is to say about this.\n"


def _changed(name: str, line: str, number: int) -> str:
    if number % 24 == 9:
        return line.replace("silent=False", "silent=True") if name.endswith(".py") else line.replace("says", "tells")
    if number % 24 == 21:
        more = f"    if value_{number} is None:\n        raise ValueError({number})\n"
        return line + (more if name.endswith(".py") else "And one line more.\n")
    return line.replace("load(", "loaded(") if name.endswith(".py") else line.replace("say about", "tell about")


def _places() -> Iterator[int]:
    return iter(range(9, _LINES, _APART))


def day_worked(folder: Path) -> Path:
    """Make a project, and let two agents work in it for nine prompts, of which no change touches another's."""
    folder.mkdir()
    done(folder, "init")
    work_in(folder)
    return folder


def work_in(folder: Path) -> None:
    """Let the two agents work in a new workspace."""
    texts = {name: [_line(name, number) for number in range(_LINES)] for name in (*_NAMES, _DELETED)}
    for name, lines in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(lines))
    done(folder, "record")
    texts[_CREATED] = [_line(_CREATED, number) for number in range(_LINES)]
    places = {name: _places() for name in _NAMES}
    doubles = CHANGES - EDITS  # so many edits make two changes
    with Workspace.open(folder, UnsyncedDisk()) as workspace:
        for at, (prompt, files) in enumerate(_ASKED):
            session, client = ("first", "claude-code") if at < _OF_CODEX else ("second", "codex")
            turn = TurnInfo(session=session, began=time.time_ns() // 1000, prompt=prompt, client=client)
            for name, count in files:
                left = count
                while left:
                    made = min(2 if doubles else 1, left)
                    doubles -= made - 1
                    left -= made
                    with workspace.call(CallInfo(tool="Edit", conversation=session, turn=turn)) as call:
                        if name == _DELETED:
                            call.delete(name)
                        elif name == _CREATED:
                            call.write(name, "".join(texts[name]).encode())
                        else:
                            for number in [next(places[name]) for _ in range(made)]:
                                texts[name][number] = _changed(name, texts[name][number], number)
                            call.write(name, "".join(texts[name]).encode(), operation=Operation.EDIT)
                        call.commit()
