"""Complete words in the shell with click, and quote each name for the shell: it may hold code that would run.

A shell runs `cas` with `_CAS_COMPLETE` at each press of the tab key. `cli.search.candidates` finds the values.
Names with control characters are not offered: they can't be typed, and would break the lines that the shell reads.

zsh and fish quote what they insert, so click's scripts for them are used as they are. bash inserts words unchanged, and
click's script for it expands patterns in them. So bash has its own script here, which reads each line whole and gets
words that are already quoted.
"""

import os
from typing import TYPE_CHECKING, Any, ClassVar, Final

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

if TYPE_CHECKING:
    import click

__all__ = ["SHELLS", "VARIABLE", "complete", "script"]

VARIABLE: Final = "_CAS_COMPLETE"
"""Environment variable with which a shell asks for completions; click derives its name from the program's."""

_PROGRAM: Final = "cas"
_END: Final = "\ue000"
"""Mark of the end of a command line: a private character, which belongs to the last word whatever quote is open."""

_BREAKS: Final = " \t\n\"'@><=;|&(:"
"""Characters at which bash begins a new word unless they are quoted, used if COMP_WORDBREAKS is not set."""

_PREFIXES: Final = "$@"
"""Those of `_BREAKS` that belong to the new word."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-")
"""ASCII characters without a special meaning to bash."""

_BASH: Final = r"""%(complete_func)s() {
    local found line
    found=$(COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \
        %(complete_var)s=bash_complete "$1" 2>/dev/null) || return 1
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            # These words are quoted already: they may hold what bash would run. bash before 4 has no compopt.
            plain,*/) compopt -o nospace 2>/dev/null; COMPREPLY+=("${line#*,}") ;;
            plain,*) COMPREPLY+=("${line#*,}") ;;
            dir,*) compopt -o dirnames 2>/dev/null ;;
            file,*) compopt -o default 2>/dev/null ;;
        esac
    done <<< "$found"
    return 0
}
complete -o default -F %(complete_func)s %(prog_name)s
"""


class _Quiet(ShellComplete):
    """Completion for any shell: no error reaches the prompt, and only names that can be typed are offered."""

    def complete(self) -> str:
        """Return the lines for the shell; an empty text if the command line can't be completed."""
        try:
            return super().complete()
        except Exception:  # noqa: BLE001 -- a shell at a key press has no place for an error
            return ""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the possible completions. The value of `--option=value` is offered with its option: it is one word."""
        option, is_joined, _ = incomplete.partition("=")
        start = f"{option}=" if is_joined and option.startswith("-") and "--" not in args else ""
        found = [item for item in super().get_completions(args, incomplete) if self.can_be_offered(item.value)]
        for item in found:
            item.value = f"{start}{item.value}"
            item.help = item.help if item.help and item.help.isprintable() else None
        return found

    def can_be_offered(self, value: str) -> bool:
        """Return whether a value can be typed and reaches the shell whole."""
        return value.isprintable()


class _Bash(_Quiet, BashComplete):
    """Completion for bash, which replaces only what follows the last break or open quote of a word."""

    source_template: ClassVar[str] = _BASH

    def source(self) -> str:
        """Return the script. It runs in every version of bash; click's own asks for the version."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the word at it, which bash would split at its breaks."""
        line = os.environ["COMP_WORDS"]
        if (len(line) - len(line.rstrip("\\"))) % 2:
            # bash may have inserted the common part of several names, and that can end with the backslash of a quote.
            line = line[:-1]
        *words, word = split_arg_string(line + _END)
        return words[1:], word.removesuffix(_END)

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the line for the part of a word that bash replaces, quoted."""
        if item.type != "plain":
            return super().format_completion(item)
        cut, quote = _cut(os.environ["COMP_WORDS"], os.environ.get("COMP_WORDBREAKS", _BREAKS))
        return f"{item.type},{_quoted(item.value[cut:], quote)}"


class _Zsh(_Quiet, ZshComplete):
    """Completion for zsh."""

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the lines for a word. Words with a backslash get no description: zsh would remove the backslash."""
        if "\\" in item.value:
            item.help = None
        return super().format_completion(item)


class _Fish(_Quiet, FishComplete):
    """Completion for fish."""

    def can_be_offered(self, value: str) -> bool:
        """Return whether a value reaches fish whole: click's script cuts it at a comma."""
        return super().can_be_offered(value) and "," not in value


SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
"""The supported shells."""


def script(program: "click.Command", shell: str) -> str:
    """Return the script that a shell must run to complete `cas`."""
    return SHELLS[shell](program, {}, _PROGRAM, VARIABLE).source()


def complete(program: "click.Command", instruction: str) -> int:
    """Answer the request of a shell in VARIABLE (such as `bash_complete`) and return the exit status."""
    from click.shell_completion import add_completion_class, shell_complete

    for shell, of_shell in SHELLS.items():
        add_completion_class(of_shell, shell)
    return shell_complete(program, {}, _PROGRAM, VARIABLE, instruction)


def _quoted(name: str, quote: str) -> str:
    """Return a name as it is typed in bash after the open quote ("": no quote is open)."""
    if quote == "'":
        return name.replace("'", "'\\''")
    if quote:
        # An exclamation mark would recall an earlier command line, and a backslash before it would remain.
        return "".join("\"'!'\"" if c == "!" else f"\\{c}" if c in '$`"\\' else c for c in name)
    return "".join(c if c in _PLAIN or not c.isascii() else f"\\{c}" for c in name)


def _cut(line: str, breaks: str) -> tuple[int, str]:
    """Return how many characters of the last word, unquoted, bash keeps, and which quote is open ("": none).

    bash replaces what follows the last break that is not quoted, or the open quote.
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
            belongs = mark in _PREFIXES
            kept, behind = kept + behind + (not belongs), int(belongs)
        else:
            behind += 1
    return kept, quote
