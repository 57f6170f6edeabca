"""Configuration: where settings are written down, and which of those places counts.

A setting is looked for in the workspace's `.cas/config.toml`, then in the person's own `config.toml`, then in the
environment; the first place that has it counts, and where none has, its default holds. What lies next to the history
comes first, because retention takes history away for good: a variable that some shell still has must not.
"""

import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self, TypeAlias

from objstore.config.settings import (
    OBSOLETE,
    SETTINGS,
    RetentionLimits,
    Setting,
    SettingValue,
    is_anything_set,
    settings_files,
    stored_value,
    value_of,
)
from objstore.errors import NoSuchSetting, PermissionRefused, SettingInvalid, SettingsUnreadable
from objstore.fastclass import value
from objstore.fs.disk import Disk, read_all

__all__ = ["Configuration", "ConfiguredValue", "limits_of"]

_Table: TypeAlias = dict[str, Any]

_MOST_BYTES: Final = 1 << 20
_LOOK: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@value
class ConfiguredValue:
    """A setting, and what it is set to by whom."""

    setting: Setting
    value: SettingValue
    spelling: str  # as it was written
    origin: str  # path of a file, name of a variable, or "": the default holds


class Configuration:
    """The settings that hold for a workspace, or for a person where no workspace is."""

    def __init__(self, root: str | None = None) -> None:
        """Take the root of a workspace (None: only what holds everywhere). Nothing is read yet."""
        self._disk: Final = Disk()
        self._root: Final = root

    @classmethod
    def find(cls, start: str) -> Self:
        """Return those of the nearest workspace at or above `start`; its store is not opened. Raises NotAWorkspace."""
        from objstore.fs.confined_path import find_root

        return cls(find_root(start))

    @property
    def files(self) -> tuple[str, ...]:
        """Return the paths of the files that are looked into, the first that counts first."""
        return settings_files(self._root)

    # ---- asking

    def all(self) -> list[ConfiguredValue]:
        """Return every setting. Raises what `get` raises, and NoSuchSetting for a name in a file that means nothing."""
        found = [(path, self._read(path)) for path in self.files]
        for path, table in found:
            for name in _names(table):
                if name not in SETTINGS and name not in OBSOLETE:
                    raise NoSuchSetting(name, path, _nearest(name))
        return [_given(setting, found) for setting in SETTINGS.values()]

    def get(self, name: str) -> ConfiguredValue:
        """Return one setting, whatever else the files have: a word that means nothing ends nobody's work but its own.

        Raises NoSuchSetting, SettingInvalid, SettingsUnreadable.
        """
        setting = SETTINGS.get(name)
        if setting is None:
            raise NoSuchSetting(name, "", _nearest(name))
        return _given(setting, [(path, self._read(path)) for path in self.files])

    # ---- changing

    def set(self, name: str, spelling: str, *, own: bool = False) -> None:
        """Write a setting into the workspace's file, or (`own`) into the person's, and leave the rest of it as it is.

        Raises NoSuchSetting, SettingInvalid, SettingsUnreadable, and what writing raises.
        """
        from objstore.config.toml_edit import with_toml

        setting = SETTINGS.get(name)
        if setting is None:
            raise NoSuchSetting(name, "", _nearest(name))
        try:
            stored = stored_value(setting.kind, spelling)
        except ValueError as error:
            raise SettingInvalid(name, spelling, "", str(error)) from None
        with self._changing(own=own) as (path, folder):
            text = self._text(path)
            try:
                table, _, key = name.rpartition(".")
                changed = with_toml(text, [table], {key: stored})
            except ValueError as error:
                raise SettingsUnreadable(path, str(error)) from error
            self._replace(path, folder, changed)

    def unset(self, name: str, *, own: bool = False) -> bool:
        """Take a setting out of the workspace's file, or (`own`) out of the person's; return whether it was there.

        A name that means nothing is taken out too; raises NoSuchSetting where it is not there, and SettingsUnreadable
        and what writing raises.
        """
        if name in SETTINGS and not self._text(self.files[-1 if own else 0]):
            return False  # no folder has to be made, nor be there, for that
        from objstore.config.toml_edit import without_toml

        with self._changing(own=own) as (path, folder):
            text = self._text(path)
            try:
                changed = without_toml(text, name.rsplit(".", 1))
            except ValueError as error:
                raise SettingsUnreadable(path, str(error)) from error
            if changed == text and name not in SETTINGS:
                raise NoSuchSetting(name, "", _nearest(name))
            if changed == text:
                return False
            self._replace(path, folder, changed)
            return True

    # ---- inside

    def _read(self, path: str) -> _Table:
        text = self._text(path)
        if not text:
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except ValueError as error:
            raise SettingsUnreadable(path, f"it is not valid TOML: {error}") from error

    def _text(self, path: str) -> str:
        """Return what the file holds ("": there is none). Raises SettingsUnreadable."""
        # A person's own file may be a link into some folder of theirs; nobody has reason to link the store's.
        flags = _LOOK | (os.O_NOFOLLOW if path != self.files[-1] else 0)
        try:
            fd = os.open(path, flags)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            raise SettingsUnreadable(path, error.strerror or str(error)) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                raise SettingsUnreadable(path, "it is not a regular file, or it is too large")
            return read_all(fd, found.st_size).decode()
        except UnicodeDecodeError as error:
            raise SettingsUnreadable(path, "it is not UTF-8") from error
        finally:
            os.close(fd)

    @contextmanager
    def _changing(self, *, own: bool) -> Iterator[tuple[str, int]]:
        """Hold the file's folder, so that of two changes at once neither is lost; give its path and the open folder."""
        own = own or self._root is None
        path = os.path.realpath(self.files[-1]) if own else self.files[0]
        folder = os.path.dirname(path)
        try:
            if own:
                os.makedirs(folder, 0o700, exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if own else os.O_NOFOLLOW))
        except PermissionError as error:
            raise PermissionRefused(folder) from error
        except OSError as error:
            raise SettingsUnreadable(path, error.strerror or str(error)) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield path, fd
        finally:
            os.close(fd)

    def _replace(self, path: str, folder: int, text: str) -> None:
        staged = self._disk.stage(folder, text.encode(), None, 0o600, path)
        fd = os.open(staged, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
        try:
            self._disk.sync(fd, path)
        finally:
            os.close(fd)
        self._disk.replace(folder, staged, folder, os.path.basename(path))
        self._disk.sync_directory(os.path.dirname(path))


def limits_of(root: str) -> RetentionLimits:
    """Return the limits that settings give the store of a workspace. Raises what Configuration.all raises."""
    if not is_anything_set(root):
        return RetentionLimits()
    values = {given.setting.name: given.value for given in Configuration(root).all()}
    return RetentionLimits(older_than=values["retention.older_than"], max_size=values["retention.max_size"])


def _given(setting: Setting, found: list[tuple[str, _Table]]) -> ConfiguredValue:
    table, _, key = setting.name.rpartition(".")
    for path, document in found:
        inner = document.get(table, {})
        if isinstance(inner, dict) and key in inner:
            return _valued(setting, inner[key], path)
    spelling = os.environ.get(setting.variable, "")
    if spelling:
        return _valued(setting, spelling, setting.variable)
    return _valued(setting, setting.default, "")


def _valued(setting: Setting, given: object, origin: str) -> ConfiguredValue:
    spelling = ("on" if given else "off") if isinstance(given, bool) else str(given)
    try:
        value = value_of(setting.kind, given)
    except ValueError as error:
        raise SettingInvalid(setting.name, spelling, origin, str(error)) from None
    return ConfiguredValue(setting=setting, value=value, spelling=spelling, origin=origin)


def _names(table: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that a file gives values to."""
    for key, held in table.items():
        if isinstance(held, dict):
            yield from (f"{key}.{inner}" for inner in held)
        else:
            yield key


def _nearest(name: str) -> str:
    """Return the setting whose name is nearest ("": none is near)."""
    from difflib import get_close_matches

    near = get_close_matches(name, SETTINGS, 1)
    if near:
        return near[0]
    return next((known for known in SETTINGS if known.rpartition(".")[2] == name.rpartition(".")[2]), "")
