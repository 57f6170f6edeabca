"""Define the settings: their names, kinds, defaults and meanings, and what a text or a TOML value means."""

import re
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from objstore.disk.config.path_patterns import PathPatterns, expanded
from objstore.disk.config.setting_sources import variable_of
from objstore.model.basic_types import MAX_INT
from objstore.values.fastclass import value

__all__ = [
    "SETTINGS",
    "Setting",
    "SettingKind",
    "SettingValue",
    "limit_of",
    "spelling_of",
    "stored_value",
    "value_of",
]

SettingValue: TypeAlias = int | bool | str | tuple[str, ...] | None
"""Seconds of an age, bytes of a size, whether a switch is on, a word, or patterns. None: no limit."""

_UNITS_OF_TIME: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNITS_OF_SIZE: Final = {
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}
_SIZE_FACTORS: Final = {unit.lower(): factor for unit, factor in _UNITS_OF_SIZE.items()}
_SWITCHES: Final = {"on": True, "true": True, "yes": True, "1": True} | {
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}
# Patterns are compiled where they are used: most commands load this module and need none of them.
_SPACES: Final = r"(?<!\\)\s+"
"""What separates patterns. A space in a pattern has a backslash in front."""

_NUMBER: Final = r"(?P<number>[0-9]{1,30}(?:\.[0-9]{1,9})?) ?(?P<unit>[A-Za-z]*)"


class SettingKind(StrEnum):
    """The kind of value that a setting has."""

    AGE = "age"
    SIZE = "size"
    SWITCH = "switch"
    CHOICE = "choice"  # one of a few words
    PATTERNS = "patterns"  # of paths, as in .gitignore
    NAMES = "names"  # patterns of names
    COMMAND = "command"  # a line for a shell

    @property
    def unit(self) -> str:
        """Return the unit of a value of this kind; "" if it has none."""
        return {SettingKind.AGE: "seconds", SettingKind.SIZE: "bytes"}.get(self, "")

    @property
    def without_limit(self) -> str:
        """Return the word that means no limit, or no patterns; "" if there is none."""
        words = {SettingKind.AGE: "never", SettingKind.SIZE: "unlimited"}
        with_none = {SettingKind.PATTERNS, SettingKind.NAMES, SettingKind.COMMAND}
        return words.get(self, "none" if self in with_none else "")


@value
class Setting:
    """One setting."""

    name: str  # table and key, joined by "."
    kind: SettingKind
    default: str  # as a person would write it
    meaning: str
    choices: tuple[str, ...] = ()  # the words of a choice
    is_policy: bool = False  # whether it says what is recorded or needs a review: its changes are recorded
    is_personal: bool = False  # whether only the person's own file can set it, for a workspace or for all

    @property
    def how(self) -> str:
        """Return a description, for a person, of how to write a value."""
        match self.kind:
            case SettingKind.AGE:
                return "a number and a unit (s, min, h, d, w), as in 30d, or never"
            case SettingKind.SIZE:
                return "a number and a unit (B, kB, MB, GB, TB, or KiB, MiB, GiB, TiB), as in 2GB, or unlimited"
            case SettingKind.SWITCH:
                return "on or off"
            case SettingKind.CHOICE:
                return " or ".join(self.choices)
            case SettingKind.PATTERNS:
                return "patterns as in .gitignore, separated by spaces, as in 'docs/** *.md !docs/api.md', or none"
            case SettingKind.COMMAND:
                return "a command for /bin/sh, as in 'make test', or none"
            case SettingKind.NAMES:
                return "names or paths with * and ?, separated by spaces, as in 'default *.secret !test.pem', or none"

    @property
    def variable(self) -> str:
        """Return the name of its environment variable."""
        return variable_of(self.name)


SETTINGS: Final = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            Setting(
                name="retention.older_than",
                kind=SettingKind.AGE,
                default="never",
                meaning="The age from which fully decided history may expire.",
            ),
            Setting(
                name="retention.max_size",
                kind=SettingKind.SIZE,
                default="2GB",
                meaning="The size of the store above which the oldest decided history expires, whatever its age.",
            ),
            Setting(
                name="gc.background",
                kind=SettingKind.SWITCH,
                default="on",
                meaning="Whether the server enforces the two limits while it runs.",
            ),
            Setting(
                name="gc.every",
                kind=SettingKind.AGE,
                default="1min",
                meaning="How often the server checks whether the store is over a limit.",
            ),
            Setting(
                name="record.ignored",
                kind=SettingKind.SWITCH,
                default="off",
                meaning="Whether scans and snapshots also take files that git ignores.",
                is_policy=True,
            ),
            Setting(
                name="record.secrets",
                kind=SettingKind.NAMES,
                default="default",
                meaning="Names of files that scans and snapshots never take, because they usually hold secrets.",
                is_policy=True,
            ),
            Setting(
                name="record.exclude",
                kind=SettingKind.NAMES,
                default="none",
                meaning="Other names and paths that scans and snapshots never take; a purge adds what it removes.",
                is_policy=True,
            ),
            Setting(
                name="try.links",
                kind=SettingKind.NAMES,
                default="none",
                meaning="Ignored names, such as .venv, that scratch copies link to; a command can write through links.",
            ),
            Setting(
                name="tools.denied",
                kind=SettingKind.PATTERNS,
                default="none",
                meaning="Files that no tool of the server may change.",
            ),
            Setting(
                name="review.external",
                kind=SettingKind.CHOICE,
                default="accepted",
                meaning="Whether changes that no agent can have made are accepted, or pending until you review them.",
                choices=("accepted", "pending"),
                is_policy=True,
            ),
            Setting(
                name="review.formatting",
                kind=SettingKind.CHOICE,
                default="pending",
                meaning="Whether a formatter's change of an agent's edit is pending, or accepted at once.",
                choices=("pending", "accepted"),
                is_policy=True,
            ),
            Setting(
                name="review.send",
                kind=SettingKind.CHOICE,
                default="automatic",
                meaning="Whether agents get rejections and comments by themselves, if you say so, or when you send.",
                choices=("automatic", "ask", "manual"),
            ),
            Setting(
                name="review.running",
                kind=SettingKind.CHOICE,
                default="ask",
                meaning="Whether a rejection on the page asks, is made at once, or waits while an agent is at work.",
                choices=("ask", "now", "wait"),
            ),
            Setting(
                name="git.commit",
                kind=SettingKind.CHOICE,
                default="accept",
                meaning="Whether your own git commits accept the pending edits that they contain.",
                choices=("accept", "keep"),
                is_policy=True,
            ),
            Setting(
                name="review.accept",
                kind=SettingKind.PATTERNS,
                default="none",
                meaning="Files whose edits by agents are accepted when they are recorded.",
                is_policy=True,
            ),
            Setting(
                name="review.always",
                kind=SettingKind.PATTERNS,
                default="none",
                meaning="Files whose edits only a decision that names them accepts: no policy, no commit and no --all.",
                is_policy=True,
            ),
            Setting(
                name="review.by_agents",
                kind=SettingKind.CHOICE,
                default="refuse",
                meaning="Whether a decision inside an agent's shell is refused, or made and marked.",
                choices=("refuse", "mark"),
                is_policy=True,
            ),
            Setting(
                name="review.names",
                kind=SettingKind.SWITCH,
                default="on",
                meaning="Whether decisions and dry runs say which names they leave undefined in sources.",
            ),
            Setting(
                name="review.check",
                kind=SettingKind.COMMAND,
                default="none",
                meaning="A command that must succeed on a copy of what an accept, reject or rewind would leave.",
                is_personal=True,
            ),
            Setting(
                name="review.check_limit",
                kind=SettingKind.AGE,
                default="10min",
                meaning="How long a check may run before it counts as failed.",
            ),
            Setting(
                name="review.in_chat",
                kind=SettingKind.SWITCH,
                default="off",
                meaning="Whether you can decide on edits in the review that a chat program shows.",
                is_policy=True,
            ),
        )
    }
)
"""Every setting by name, in the order in which they are listed."""


def value_of(setting: Setting, given: object) -> SettingValue:
    """Return the value that `given`, a text or a TOML value, means. Raises ValueError that describes valid values."""
    kind = setting.kind
    match kind, given:
        case SettingKind.CHOICE, str(text) if text.strip().lower() in setting.choices:
            return text.strip().lower()
        case SettingKind.SWITCH, bool(switch):
            return switch
        case SettingKind.SWITCH, str(text) if text.strip().lower() in _SWITCHES:
            return _SWITCHES[text.strip().lower()]
        case ((SettingKind.PATTERNS | SettingKind.NAMES), str() | list()):
            return _patterns(setting, given)
        case SettingKind.SIZE, int(number) if not isinstance(number, bool) and 0 <= number <= MAX_INT:
            return number
        case ((SettingKind.AGE | SettingKind.SIZE | SettingKind.COMMAND), str(text)) if (
            text.strip().lower() == kind.without_limit
        ):
            return None
        case SettingKind.COMMAND, str(text) if text.strip() and "\0" not in text:
            return text.strip()
        case ((SettingKind.AGE | SettingKind.SIZE), str(text)):
            return _measured(kind, setting.how, text.strip())
    raise ValueError(setting.how)


def limit_of(name: str, given: object) -> int | None:
    """Return the limit that `given` means for the setting of this name (None: no limit). Raises as `value_of`."""
    value = value_of(SETTINGS[name], given)
    if isinstance(value, str | tuple):
        raise TypeError(f"{name} is no limit")
    return value


def stored_value(setting: Setting, spelling: str) -> str | bool | list[str]:
    """Return what a settings file stores for this text. Raises ValueError where `value_of` does."""
    value = value_of(setting, spelling)
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | str) else spelling.strip()


def spelling_of(given: object) -> str:
    """Return the text that means a value from a settings file."""
    if isinstance(given, list | tuple):
        return " ".join(str(each).replace(" ", "\\ ") for each in given) or SettingKind.PATTERNS.without_limit
    return ("on" if given else "off") if isinstance(given, bool) else str(given)


def _patterns(setting: Setting, given: object) -> tuple[str, ...]:
    """Return the patterns in a text or a list. Raises ValueError that describes valid patterns."""
    if isinstance(given, str):
        given = [each.replace("\\ ", " ") for each in re.split(_SPACES, given.strip()) if each]
        given = [] if given == [SettingKind.PATTERNS.without_limit] else given
    patterns = tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
    if not isinstance(given, list) or len(patterns) < len(given):
        raise ValueError(setting.how)
    try:
        PathPatterns(expanded(patterns) if setting.kind is SettingKind.NAMES else patterns)
    except ValueError as error:
        raise ValueError(f"{setting.how}; {error}") from None
    return patterns


def _measured(kind: SettingKind, how: str, text: str) -> int:
    written = re.fullmatch(_NUMBER, text)
    units = _UNITS_OF_TIME if kind is SettingKind.AGE else _SIZE_FACTORS
    if written is None or written["unit"].lower() not in units:
        raise ValueError(how)
    whole, _, part = written["number"].partition(".")
    # In whole numbers: above 2^53 bytes, floats would make different sizes equal.
    value: int = int(whole + part) * units[written["unit"].lower()] // int("1" + "0" * len(part))
    if value > MAX_INT:
        raise ValueError(f"at most {MAX_INT} {kind.unit}, or {kind.without_limit}")
    return value
