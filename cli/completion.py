"""Completion: what may stand where the cursor is. A shell asks at every press of the tab key, so it must be quick.

What a shell runs is `cas --complete SHELL LINE`, with the command line up to the cursor, and reads a candidate a line:
the word, and behind a tab what it is. Names of edits, conversations and files come from the store without click being
loaded; names of commands and options come from the commands themselves.

A name may be one that an agent or a bundle gave, and hold what a shell would run: none may come to stand on a command
line but quoted. zsh and fish quote what they insert, bash only the names of files, so for bash the others come quoted.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import objstore  # before `-C` goes elsewhere; what is in it is loaded when it is asked for

if TYPE_CHECKING:
    from objstore import NameFound

__all__ = ["ARGUMENTS", "KINDS", "OPTIONS", "complete", "kinds_of"]

LIMIT: Final = 200

ARGUMENTS: Final = {
    "show": ("edit", "conversation"),
    "accept": ("edit",),
    "reject": ("edit",),
    "reset": ("edit",),
    "review": ("edit", "conversation"),
    "amend": ("edit",),
    "export": ("edit", "conversation"),
    "diff": ("path",),
    "cat": ("path",),
    "restore": ("path",),
    "verify": ("path",),
    "blame": ("path",),
    "ls": ("path",),
}
"""What the arguments of commands name, for those that name something in the store. A test holds it against them."""

OPTIONS: Final = {"--conversation": "conversation", "--file": "path"}
"""Options of any command whose value names something in the store."""

KINDS: Final = {
    "EDIT": "edit",
    "HUNK": "edit",
    "CONVERSATION": "conversation",
    "ID": "conversation",
    "PATH": "path",
    "STATE": "path",  # it begins with one
    "PATH@EDIT": "path",
    "A": "path",
    "B": "path",
}
"""What the words mean that stand for arguments in the help."""

BREAKS: Final = " \t\n\"'@><=;|&(:"
"""Characters at which bash begins a new word, unless they are quoted, where it does not say others."""

PREFIXES: Final = "$@"
"""Those of them with which the new word begins."""

PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")
"""Characters of ASCII that mean nothing to bash."""


def complete(arguments: list[str]) -> int:
    """Print what may stand at the end of a command line, and return 0; 1 where it can't be told."""
    if len(arguments) not in {2, 3}:  # shell, line, and of bash its breaks
        return 1
    shell, line, breaks = (*arguments, BREAKS)[:3]
    try:
        words, word = _split(line)
        candidates = _candidates(words, word)
        _print(_for_bash(candidates, *_cut(line, breaks)) if shell == "bash" else candidates)
    except Exception:  # noqa: BLE001 -- a shell at a key press has no place for an error; status 1 tells that there was one
        return 1
    return 0


def _print(found: Iterable[tuple[str, str | None]]) -> None:
    """Print the candidates."""
    lines = []
    for name, about in found:
        # A name that holds a line feed or an escape code can't be typed so anyway.
        if name.isprintable():
            told = about if about and about.isprintable() else ""
            lines.append(f"{name}\t{told}" if told else name)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _for_bash(found: Iterable[tuple[str, str | None]], cut: int, quote: str) -> Iterator[tuple[str, str | None]]:
    """Yield what bash puts behind the `cut` characters that it leaves as they are, in the quote that is open.

    What has something said of it, if only "-", is quoted here. With a file among them, bash quotes all of them.
    """
    candidates = list(found)
    has_files = any(about is None for _, about in candidates)
    for name, about in candidates:
        if has_files:
            yield name[cut:], None
        else:
            yield _quoted(name[cut:], quote), about if about and about.isprintable() else "-"


def _quoted(name: str, quote: str) -> str:
    """Return a name as it is typed in bash behind the quote that is open ("": none is)."""
    if quote == "'":
        return name.replace("'", "'\\''")
    if quote:
        # An exclamation mark calls up a line typed before, and a backslash before it would stay.
        return "".join("\"'!'\"" if c == "!" else f"\\{c}" if c in '$`"\\' else c for c in name)
    return "".join(c if c in PLAIN or not c.isascii() else f"\\{c}" for c in name)


def kinds_of(metavar: str) -> tuple[str, ...]:
    """Return what an argument names, as the word for it in the help says: `[EDIT|HUNK]...`."""
    words = metavar.translate(str.maketrans("[]|.", "    ")).split()
    return tuple(dict.fromkeys(KINDS[word] for word in words if word in KINDS))


# ---- the command line


def _split(line: str) -> tuple[list[str], str]:
    """Return the words before the one at the cursor, without the program's name, and that one."""
    if (len(line) - len(line.rstrip("\\"))) % 2:
        # What several names have in common can end before the character that a backslash quotes in each.
        line = line[:-1]
    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
            break
        except ValueError:
            continue
    else:
        words = line.split()
    at_new_word = not line or (line[-1].isspace() and not line.endswith("\\ "))
    word = "" if at_new_word or len(words) < 2 else words.pop()  # noqa: PLR2004 -- the program and one more
    return words[1:], word


def _cut(line: str, breaks: str) -> tuple[int, str]:
    """Return how many characters of the last word, unquoted, bash leaves as they are: it replaces what is behind them.

    That is what stands behind the last break that is not quoted, or behind the quote that is open. And which that is.
    """
    behind, kept, quote, is_escaped = 0, 0, "", False
    for mark in line:
        if is_escaped or (quote and mark != quote and (mark != "\\" or quote == "'")):
            behind, is_escaped = behind + 1, False
        elif mark == "\\":
            is_escaped = True
        elif mark == quote:
            quote = ""
        elif mark in "'\"":
            quote = mark
            kept, behind = kept + behind, 0
        elif mark.isspace():
            kept = behind = 0
        elif mark in breaks:
            belongs = mark in PREFIXES
            kept, behind = kept + behind + (not belongs), int(belongs)
        else:
            behind += 1
    return kept, quote


def _candidates(words: list[str], word: str) -> Iterator[tuple[str, str | None]]:
    """Yield what may stand there, and what it is, which of a file is None."""
    words = _placed(words)
    option, is_joined, value = word.partition("=")
    if is_joined and option in OPTIONS:
        yield from ((f"{option}={name}", about) for name, about in _names((OPTIONS[option],), value))
    elif words and words[-1] in OPTIONS and not word.startswith("-"):
        yield from _names((OPTIONS[words[-1]],), word)
    elif words and words[0] in ARGUMENTS and not word.startswith("-") and not words[-1].startswith("-"):
        yield from _names(ARGUMENTS[words[0]], word)
    else:
        yield from _of_commands(words, word)


def _placed(words: list[str]) -> list[str]:
    """Go where `-C DIR` says, and return the other words, without the colour that may stand before a command, too."""
    rest = []
    given = iter(words)
    for word in given:
        if word == "-C":
            os.chdir(os.path.expanduser(next(given, os.curdir)))  # noqa: PTH111 -- pathlib costs 4 ms of start-up
        elif word == "--color" and next(given, None) is not None:
            continue
        else:
            rest.append(word)
    return rest


def _names(kinds: Iterable[str], word: str) -> Iterator[tuple[str, str | None]]:
    with objstore.Workspace.find(os.environ.get("CAS_WORKSPACE") or os.curdir) as workspace:
        for kind in kinds:
            if kind == "path":
                below = partial(workspace.names_like, objstore.NameKind.PATH, limit=LIMIT)
                yield from _paths(workspace.root, word, below)
            else:
                yield from workspace.names_like(objstore.NameKind(kind), word, LIMIT)


def _paths(root: str, word: str, below: "Callable[[str], list[NameFound]]") -> Iterator[tuple[str, None]]:
    """Yield recorded files as they are spelt from the current folder, up to the next folder below what is typed."""
    here = os.path.relpath(os.path.realpath(os.curdir), root)
    if here.startswith(os.pardir):
        here = os.curdir  # from outside, a path begins at the root
    typed = word.rpartition("/")[0] or ("/" if word.startswith("/") else "")
    folder = os.path.normpath(os.path.join(here, typed))  # noqa: PTH118 -- names below the root, and pathlib costs time
    if folder.startswith((os.pardir, "/")):
        folder = os.path.relpath(os.path.realpath(typed), root)
    if folder.startswith(os.pardir):
        return
    last = word.rpartition("/")[2]
    prefix = ("" if folder == os.curdir else f"{folder}/") + last
    seen: dict[str, None] = {}
    for path, _ in below(prefix):
        rest = path[len(prefix) - len(last) :]
        name, is_folder, _ = rest.partition("/")
        seen.setdefault((f"{typed}/" if typed and typed != "/" else typed) + name + is_folder, None)
    yield from seen.items()


def _of_commands(words: list[str], word: str) -> Iterator[tuple[str, str | None]]:
    """Yield what the commands themselves know: their names, their options, the choices of these."""
    import click

    from cli.main import cas

    command: click.Command = cas
    context = click.Context(cas, info_name="cas")
    rest = list(words)
    while isinstance(command, click.Group):
        name = next((word for word in rest if not word.startswith("-")), None)
        inner = None if name is None else command.get_command(context, name)
        if inner is None or name is None:
            break
        rest = rest[rest.index(name) + 1 :]
        command = inner
        context = click.Context(inner, info_name=name, parent=context)
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    joined, mark, value = word.partition("=")
    last, value = (joined, value) if mark else (rest[-1] if rest else "", word)
    asked = next((option for option in options if last in option.opts and not option.is_flag), None)
    if asked is not None:
        choices = asked.type.choices if isinstance(asked.type, click.Choice) else ()
        start = f"{joined}=" if mark else ""
        yield from ((f"{start}{choice}", "") for choice in choices if str(choice).startswith(value))
    elif word.startswith("-"):
        for option in options:
            about = (option.help or "").partition(". ")[0].rstrip(".")
            yield from ((name, about) for name in option.opts if name.startswith(word))
    elif isinstance(command, click.Group):
        for name in command.list_commands(context):
            if name.startswith(word):
                found = command.get_command(context, name)
                yield name, "" if found is None else found.get_short_help_str(60)
    else:
        arguments = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Argument)]
        yield from _names(dict.fromkeys(kind for a in arguments for kind in kinds_of(a.metavar or "")), word)
