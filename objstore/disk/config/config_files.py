"""Read settings from their files and the environment, and change them.

A setting is looked up in the workspace's `.cas/config.toml`, then in the user's own `config.toml`, then in the
environment; the first that has it wins, and otherwise its default applies. The file next to the history comes first
because retention removes history for good: a variable left over in some shell must not cause that.

A personal setting, such as a command to run, is only in the user's own file: what comes with a folder must not name a
program. There, the table `workspaces` has those of one workspace, by its path.
"""

import fcntl
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, TypeAlias

from objstore.disk.config.path_patterns import PathPatterns
from objstore.disk.config.setting_sources import RetentionLimits, is_anything_set, settings_files, variable_of
from objstore.disk.config.settings import SETTINGS, Setting, SettingValue, spelling_of, stored_value, value_of
from objstore.disk.fs.disk import Disk, read_all
from objstore.values.errors import PermissionRefused
from objstore.values.fastclass import value
from objstore.values.request_errors import NoSuchSetting, SettingInvalid, SettingsUnreadable

__all__ = ["Configuration", "ConfiguredValue", "denied_paths", "limits_of"]

_Table: TypeAlias = dict[str, Any]

_WORKSPACES: Final = "workspaces"
"""The table of the user's own file with the personal settings of single workspaces."""

_MAX_BYTES: Final = 1 << 20
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@value
class ConfiguredValue:
    """A setting, its value, and where the value comes from."""

    setting: Setting
    value: SettingValue
    spelling: str  # the text that the user wrote
    origin: str  # path of a file, name of a variable, or "": the default applies


class Configuration:
    """The settings of a workspace, or of a user outside any workspace."""

    def __init__(self, root: str | None = None) -> None:
        """Set the root of a workspace (None: use only the user's settings). Nothing is read yet."""
        self._disk: Final = Disk()
        self._root: Final = root

    @classmethod
    def find(cls, start: str) -> Self:
        """Return the settings of the nearest workspace at or above `start` without opening its store.

        Raises NotAWorkspace.
        """
        from objstore.disk.fs.confined_path import find_root

        return cls(find_root(start))

    @property
    def files(self) -> tuple[str, ...]:
        """Return the paths of the settings files, in order of precedence."""
        return settings_files(self._root)

    # ---- asking

    def all(self) -> list[ConfiguredValue]:
        """Return every setting. Raises what `get` raises, and NoSuchSetting for an unknown name in a file."""
        found = [(path, self._read(path)) for path in self.files]
        for path, table in found:
            for name in _names(table):
                if name not in SETTINGS:
                    raise NoSuchSetting(name, path, _nearest(name))
        return [self._configured(setting, found) for setting in SETTINGS.values()]

    def get(self, name: str) -> ConfiguredValue:
        """Return one setting. Unknown names elsewhere in the files are ignored, so that they stop no other command.

        Raises NoSuchSetting, SettingInvalid, SettingsUnreadable.
        """
        return self.several(name)[0]

    def several(self, *names: str) -> list[ConfiguredValue]:
        """Return some settings, with the files read once. Raises what `get` raises."""
        settings = [_setting_named(name) for name in names]
        found = [(path, self._read(path)) for path in self.files]
        return [self._configured(setting, found) for setting in settings]

    @staticmethod
    def knows_policy(name: str) -> bool:
        """Return whether a setting with this name exists and says what needs a review."""
        return name in SETTINGS and SETTINGS[name].is_policy

    # ---- changing

    def set(self, name: str, spelling: str, *, own: bool = False) -> None:
        """Write a setting to the workspace's file, or (`own`) to the user's, and keep the rest of the file as it is.

        Raises NoSuchSetting, SettingInvalid, SettingsUnreadable, and what writing raises.
        """
        from objstore.disk.config.toml_edit import with_toml

        setting = _setting_named(name)
        try:
            stored = stored_value(setting, spelling)
        except ValueError as error:
            raise SettingInvalid(name, spelling, "", str(error)) from None
        with self._locked_folder(own=own or setting.is_personal) as (path, folder):
            text = self._text(path)
            try:
                *table, key = self._place_of(setting, own=own)
                changed = with_toml(text, table, {key: stored})
            except ValueError as error:
                raise SettingsUnreadable(path, str(error)) from error
            self._replace(path, folder, changed)

    def add(self, name: str, patterns: Sequence[str]) -> None:
        """Add patterns to those of a setting, in the workspace's file. Raises as `set`."""
        given = self.get(name).value
        held = given if isinstance(given, tuple) else ()
        self.set(name, spelling_of(tuple(dict.fromkeys([*held, *patterns]))))

    def unset(self, name: str, *, own: bool = False) -> bool:
        """Remove a setting from the workspace's file, or (`own`) from the user's; return whether the file had it.

        An unknown name is removed too. Raises NoSuchSetting if the file doesn't have that name; SettingsUnreadable, and
        what writing raises.
        """
        setting = SETTINGS.get(name)
        in_own = own or (setting is not None and setting.is_personal)
        if setting is not None and not self._text(self.files[-1 if in_own else 0]):
            return False  # the file is missing or empty: don't create its folder
        from objstore.disk.config.toml_edit import without_toml

        place = name.rsplit(".", 1) if setting is None else self._place_of(setting, own=own)
        with self._locked_folder(own=in_own) as (path, folder):
            text = self._text(path)
            try:
                changed = without_toml(text, place)
            except ValueError as error:
                raise SettingsUnreadable(path, str(error)) from error
            if changed == text and setting is None:
                raise NoSuchSetting(name, "", _nearest(name))
            if changed == text:
                return False
            self._replace(path, folder, changed)
            return True

    # ---- inside

    def _place_of(self, setting: Setting, *, own: bool) -> list[str]:
        """Return the tables and the key of a setting in its file; `own`: as it holds for all workspaces."""
        if setting.is_personal and not own and self._root is not None:
            return [_WORKSPACES, os.path.realpath(self._root), setting.name]
        return setting.name.rsplit(".", 1)

    def _configured(self, setting: Setting, found: list[tuple[str, _Table]]) -> ConfiguredValue:
        if not setting.is_personal:
            return _configured(setting, found)
        path, document = found[-1]
        for place in (self._place_of(setting, own=False), self._place_of(setting, own=True)):
            given: object = document
            for name in place:
                given = given.get(name) if isinstance(given, dict) else None
            if given is not None:
                return _validated(setting, given, path)
        return _validated(setting, setting.default, "")

    def _read(self, path: str) -> _Table:
        text = self._text(path)
        if not text:
            return {}
        import tomllib

        try:
            return tomllib.loads(text)
        except ValueError as error:
            raise SettingsUnreadable(path, f"it is not TOML: {error}") from error

    def _text(self, path: str) -> str:
        """Return the content of a settings file ("": no such file). Raises SettingsUnreadable."""
        # The user's own file may be a link, as to a folder of dotfiles; no one has a reason to link the store's.
        flags = _READ_FLAGS | (os.O_NOFOLLOW if path != self.files[-1] else 0)
        try:
            fd = os.open(path, flags)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            raise SettingsUnreadable(path, error.strerror or str(error)) from error
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
                raise SettingsUnreadable(path, "it is not a regular file of at most 1 MiB")
            return read_all(fd, found.st_size).decode()
        except UnicodeDecodeError as error:
            raise SettingsUnreadable(path, "it is not UTF-8") from error
        finally:
            os.close(fd)

    @contextmanager
    def _locked_folder(self, *, own: bool) -> Iterator[tuple[str, int]]:
        """Lock the file's folder, so that no concurrent change is lost; yield the file's path and the open folder."""
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
    """Return the retention limits that apply to the store of a workspace. Raises what Configuration.all raises."""
    if not is_anything_set(root):
        return RetentionLimits()
    values = {given.setting.name: given.value for given in Configuration(root).all()}
    older_than, max_size = values["retention.older_than"], values["retention.max_size"]
    return RetentionLimits(
        older_than=older_than if isinstance(older_than, int) else None,
        max_size=max_size if isinstance(max_size, int) else None,
    )


def denied_paths(root: str) -> PathPatterns:
    """Return which files of a workspace no tool may change. Raises what Configuration.get raises."""
    name = "tools.denied"
    if not is_anything_set(root) and variable_of(name) not in os.environ:
        return PathPatterns()
    given = Configuration(root).get(name).value
    return PathPatterns(given if isinstance(given, tuple) else ())


def _setting_named(name: str) -> Setting:
    """Return the setting with a name. Raises NoSuchSetting."""
    setting = SETTINGS.get(name)
    if setting is None:
        raise NoSuchSetting(name, "", _nearest(name))
    return setting


def _configured(setting: Setting, found: list[tuple[str, _Table]]) -> ConfiguredValue:
    table, _, key = setting.name.rpartition(".")
    for path, document in found:
        inner = document.get(table, {})
        if isinstance(inner, dict) and key in inner:
            return _validated(setting, inner[key], path)
    variable = variable_of(setting.name)
    spelling = os.environ.get(variable, "")
    if spelling:
        return _validated(setting, spelling, variable)
    return _validated(setting, setting.default, "")


def _validated(setting: Setting, given: object, origin: str) -> ConfiguredValue:
    spelling = spelling_of(given)
    try:
        value = value_of(setting, given)
    except ValueError as error:
        raise SettingInvalid(setting.name, spelling, origin, str(error)) from None
    return ConfiguredValue(setting=setting, value=value, spelling=spelling, origin=origin)


def _names(table: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that a file sets."""
    for key, held in table.items():
        if key == _WORKSPACES:
            continue
        if isinstance(held, dict):
            yield from (f"{key}.{inner}" for inner in held)
        else:
            yield key


def _nearest(name: str) -> str:
    """Return the setting with the most similar name ("": none is similar)."""
    from difflib import get_close_matches

    near = get_close_matches(name, SETTINGS, 1)
    if near:
        return near[0]
    return next((known for known in SETTINGS if known.rpartition(".")[2] == name.rpartition(".")[2]), "")
