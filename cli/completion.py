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
    import click

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

OPTIONS: Final = {"--conversation": "conversation", "--file": "path", "--tool": "tool"}
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
    "DIR": "folder",
    "FOLDER": "folder",
    "STORE": "folder",
    "FILE": "file",
    "TIME": "moment",
    "NUMBER": "number",
    "OTHER": "number",
}
"""What the words mean that stand for arguments, and for values of options, in the help."""

NUMBERED: Final = {"snapshot": ("show", "diff", "restore", "delete"), "pin": ("remove",)}
"""Commands whose own commands take the number of one first."""

NUMBERED_AT: Final = 2
"""How many words stand before that number."""

MOMENTS: Final = {"today": "since midnight", "yesterday": "the day before", "1h": "an hour ago", "1d": "", "1w": ""}
"""Examples of moments, and what they mean where that doesn't go without saying."""

TOOLS_IN: Final = 256
"""Newest edits whose tools are offered."""

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
        words, closing = line.split(), ""
    # A space that is quoted belongs to the word.
    escaping = len(line[:-1]) - len(line[:-1].rstrip("\\"))
    at_new_word = not line or (line[-1].isspace() and not closing and not escaping % 2)
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
    asks_where = words[-1:] == ["-C"]
    words = _placed(words[:-1] if asks_where else words)
    if asks_where or (word.startswith("-C") and word != "-C"):
        start = "" if asks_where else "-C"
        yield from ((start + name, about) for name, about in _on_disk(word.removeprefix(start), only_folders=True))
        return
    option, is_joined, value = word.partition("=")
    if "--" in words:
        yield from _of_arguments(words, word)
    elif is_joined and option in OPTIONS:
        yield from ((f"{option}={name}", about) for name, about in _names((OPTIONS[option],), value))
    elif words and words[-1] in OPTIONS and not word.startswith("-"):
        yield from _names((OPTIONS[words[-1]],), word)
    elif words and words[0] in ARGUMENTS and not word.startswith("-") and not words[-1].startswith("-"):
        yield from _unlike_options(_names(ARGUMENTS[words[0]], word))
    elif len(words) == NUMBERED_AT and words[1] in NUMBERED.get(words[0], ()) and not word.startswith("-"):
        yield from _names((words[0],), word)
    else:
        yield from _of_commands(words, word)


def _of_arguments(words: list[str], word: str) -> Iterator[tuple[str, str | None]]:
    """Yield what may stand behind `--`, where nothing is an option any more."""
    if words[0] in ARGUMENTS:
        return _names(ARGUMENTS[words[0]], word)
    return _of_commands(words, word)


def _unlike_options(found: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str | None]]:
    """Yield the names that are no option where they stand: of the others a path can be spelt so, and no other can."""
    for name, about in found:
        if not name.startswith("-"):
            yield name, about
        elif about is None:
            yield f"./{name}", about


def _placed(words: list[str]) -> list[str]:
    """Go where `-C DIR` says, and return the other words, without the colour that may stand before a command, too."""
    rest = []
    given = iter(words)
    for word in given:
        if word == "-C":
            os.chdir(os.path.expanduser(next(given, os.curdir)))  # noqa: PTH111 -- pathlib costs 4 ms of start-up
        elif word.startswith("-C"):
            os.chdir(os.path.expanduser(word.removeprefix("-C")))  # noqa: PTH111 -- as above
        elif word == "--color" and next(given, None) is not None:
            continue
        else:
            rest.append(word)
    return rest


def _names(kinds: Iterable[str], word: str) -> Iterator[tuple[str, str | None]]:
    start = os.environ.get("CAS_WORKSPACE") or os.curdir
    if not os.path.isdir(start):  # noqa: PTH112 -- as above
        return
    with objstore.Workspace.find(start) as workspace:
        for kind in kinds:
            if kind == "path":
                below = partial(workspace.names_like, objstore.NameKind.PATH, limit=LIMIT)
                yield from _paths(workspace.root, word, below)
            elif kind == "tool":
                newest = workspace.edits(objstore.EditFilter(newest_first=True, limit=TOOLS_IN))
                tools = dict.fromkeys(view.edit.tool for view in newest)
                yield from ((tool, "") for tool in tools if tool and tool.startswith(word))
            else:
                yield from workspace.names_like(objstore.NameKind(kind), word, LIMIT)


def _on_disk(word: str, *, only_folders: bool) -> Iterator[tuple[str, None]]:
    """Yield what stands on disk, spelt from the current folder; of a home, what the shell itself finds is better."""
    if word.startswith("~"):
        return
    typed, slash, last = word.rpartition("/")
    with os.scandir(typed + slash or os.curdir) as entries:
        found = sorted((entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(last))
    for name, is_folder in found:
        is_meant = last or not name.startswith(".")
        if is_meant and (is_folder or not only_folders):
            yield f"{typed}{slash}{name}{'/' * is_folder}", None


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
    rest = words[1:] if words[:1] == ["help"] else list(words)
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
    is_behind = "--" in rest  # what follows is no option
    asked = next((option for option in options if last in option.opts and not option.is_flag), None)
    if asked is not None and not is_behind:
        start = f"{joined}=" if mark else ""
        yield from ((start + name, about) for name, about in _values(asked, context, [], value))
    elif word.startswith("-") and not is_behind:
        for option in options:
            about = (option.help or "").partition(". ")[0].rstrip(".")
            yield from ((name, about) for name in option.opts if name.startswith(word))
    elif isinstance(command, click.Group):
        for name in command.list_commands(context):
            if name.startswith(word):
                found = command.get_command(context, name)
                yield name, "" if found is None else found.get_short_help_str(60)
    else:
        given = _given(options, rest)
        at = len(given)
        for argument in command.get_params(context):
            if isinstance(argument, click.Argument):
                if argument.nargs < 0 or at < argument.nargs:
                    values = _values(argument, context, given, word)
                    yield from values if is_behind else _unlike_options(values)
                    return
                at -= argument.nargs


def _given(options: "Iterable[click.Option]", words: Iterable[str]) -> list[str]:
    """Return those of the words behind a command that are arguments."""
    taking = {name for option in options if not option.is_flag for name in option.opts}
    rest, found = iter(words), list[str]()
    for word in rest:
        if word == "--":
            return [*found, *rest]
        if word in taking:
            next(rest, None)
        elif not word.startswith("-") or word == "-":
            found.append(word)
    return found


def _values(
    parameter: "click.Parameter", context: "click.Context", given: list[str], word: str
) -> Iterator[tuple[str, str | None]]:
    """Yield what may be a value of an option or an argument, behind the arguments that were given."""
    import click

    group = context.parent.info_name if context.parent is not None else None
    if isinstance(parameter.type, click.Choice):
        yield from ((str(choice), "") for choice in parameter.type.choices if str(choice).startswith(word))
    elif group == "config":
        yield from _settings(given, word)
    else:
        is_argument = isinstance(parameter, click.Argument)
        kinds = kinds_of(parameter.make_metavar(context) if is_argument else parameter.metavar or "")
        if "moment" in kinds:
            yield from (found for found in MOMENTS.items() if found[0].startswith(word))
        elif "folder" in kinds or "file" in kinds:
            yield from _on_disk(word, only_folders="file" not in kinds)
        else:
            yield from _names([group or kind if kind == "number" else kind for kind in kinds], word)


def _settings(given: list[str], word: str) -> Iterator[tuple[str, str]]:
    """Yield the settings; behind the name of one, what it may be set to."""
    for found in objstore.Configuration().all():
        setting = found.setting
        if not given and setting.name.startswith(word):
            yield setting.name, setting.meaning
        elif given == [setting.name]:
            limitless = setting.kind.without_limit
            others = (limitless,) if limitless else ("on", "off")
            values = dict.fromkeys(others, "") | {setting.default: "the default"}
            yield from ((name, about) for name, about in values.items() if name.startswith(word))
