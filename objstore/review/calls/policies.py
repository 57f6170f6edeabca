"""Apply the review policies: which edits need no review or always one, and who changed these settings.

The settings of a workspace are in a file that an agent with a shell can write. So `review.accept` and `review.in_chat`
in that file count only as `cas config` set them, which the journal records; a change in another way is reported and
allows nothing.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Final

from objstore.disk.config.config_files import Configuration, ConfiguredValue
from objstore.disk.config.path_patterns import NO_PATTERNS, PathPatterns
from objstore.disk.config.setting_sources import is_file_written, settings_files
from objstore.disk.config.settings import SETTINGS, value_of
from objstore.model.basic_types import Origin
from objstore.model.records import SettingChange
from objstore.storage.store.object_store import Store
from objstore.storage.store.write_batch import now
from objstore.storage.transaction.journal import Journal
from objstore.storage.transaction.space_reserve import with_reserve
from objstore.values.errors import CasError

__all__ = ["Policies", "changed_outside", "changes", "record_as_written", "record_change"]

_ACCEPT: Final = "review.accept"
_ALWAYS: Final = "review.always"
_IN_CHAT: Final = "review.in_chat"
_BY_AGENTS: Final = "review.by_agents"


class Policies:
    """The review settings of a workspace at one moment."""

    def __init__(self, root: str, store: Store) -> None:
        """Take the root of a workspace and its store; settings are read when they are first needed."""
        self._root: Final = root
        self._store: Final = store

    @cached_property
    def accept(self) -> PathPatterns:
        """The files whose edits are accepted when they are recorded; none if the settings can't be read."""
        own, *_ = files = settings_files(self._root)
        try:
            given = Configuration(self._root).get(_ACCEPT)
        except CasError:
            return NO_PATTERNS
        # Programs of an agent may have any variables, so these accept nothing.
        if given.origin not in files or (given.origin == own and not _is_recorded(self._store, given)):
            return NO_PATTERNS
        return PathPatterns(_value(given))

    @cached_property
    def always(self) -> PathPatterns:
        """The files that need a decision by name: those in the settings now, and as `cas config` set them last."""
        patterns = _recorded_patterns(self._store, _ALWAYS)
        if is_file_written(self._root) or SETTINGS[_ALWAYS].variable in os.environ:
            with suppress(CasError):
                patterns += _value(Configuration(self._root).get(_ALWAYS))
        return PathPatterns(patterns)

    @cached_property
    def in_chat(self) -> bool:
        """Whether a person may decide in the review that a chat program shows; false if the settings can't be read.

        Only the workspace's own file counts: a directory that is served may contain the user's settings.
        """
        own, *_ = settings_files(self._root)
        try:
            given = Configuration(self._root).get(_IN_CHAT)
        except CasError:
            return False
        return given.value is True and given.origin == own and _is_recorded(self._store, given)

    @property
    def marks_agents(self) -> bool:
        """Whether decisions inside an agent's shell are made, and marked; else they are refused."""
        own, *_ = files = settings_files(self._root)
        try:
            given = Configuration(self._root).get(_BY_AGENTS)
        except CasError:
            return False
        # As for `accept`: neither a variable nor a file that an agent may have written allows anything.
        is_set = given.origin in files and (given.origin != own or _is_recorded(self._store, given))
        return is_set and given.value == "mark"

    def accepts(self, origin: Origin, *paths: bytes | None) -> bool:
        """Return whether an edit of these paths is accepted when it is recorded (None: it has no second path)."""
        if not self.accept or origin not in {Origin.AGENT, Origin.FORMATTER}:
            return False
        named = [os.fsdecode(path) for path in paths if path is not None]
        return all(self.accept.names_file(path) and not self.always.names_file(path) for path in named)

    def needs_review(self, path: str) -> bool:
        """Return whether only a decision that names the file accepts its edits."""
        return self.always.names_file(path)


def record_change(journal: Journal, name: str, before: str, after: str, *, who: str) -> None:
    """Record that a person changed a policy. Texts: "" means not set. Raises what Journal.commit raises."""

    def recorded() -> None:
        with journal.writing(may_use_reserve=True) as batch:
            decider = journal.decider
            batch.record(
                SettingChange(
                    time=now(),
                    who=who,
                    name=name,
                    before=before,
                    after=after,
                    via=decider.via,
                    agent=decider.agent,
                )
            )
            journal.commit(batch, ())

    with_reserve(journal, recorded)


def record_as_written(journal: Journal, name: str, *, who: str) -> None:
    """Record how a policy is written in the workspace's file now, if it was recorded otherwise. Raises as above."""
    with journal.reading() as store:
        before = _newest(store, name)
    given = Configuration(journal.tree.root).get(name)
    after = given.spelling if given.origin == settings_files(journal.tree.root)[0] else ""
    if before != after:
        record_change(journal, name, before, after, who=who)


def changes(store: Store, name: str = "") -> list[SettingChange]:
    """Return the recorded changes of a policy ("": of all), oldest first."""
    found = [store.record(row.place)[0] for row in store.index.settings.changes(name)]
    return [record for record in found if isinstance(record, SettingChange)]


def changed_outside(root: str, store: Store) -> Iterator[str]:
    """Yield the names of the policies whose value in the workspace's file is not the one that was recorded."""
    own = settings_files(root)[0]
    newest = {record.name: record.after for record in changes(store)}
    if not newest and not os.path.lexists(own):
        return
    configuration = Configuration(root)
    for setting in SETTINGS.values():
        if setting.is_policy:
            try:
                given = configuration.get(setting.name)
            except CasError:
                continue  # `cas config` says what is wrong with the file
            if (given.spelling if given.origin == own else "") != newest.get(setting.name, ""):
                yield setting.name


def _value(given: ConfiguredValue) -> tuple[str, ...]:
    return given.value if isinstance(given.value, tuple) else ()


def _is_recorded(store: Store, given: ConfiguredValue) -> bool:
    return _newest(store, given.setting.name) == given.spelling


def _newest(store: Store, name: str) -> str:
    """Return the value that was recorded last ("": not set)."""
    return next((record.after for record in reversed(changes(store, name))), "")


def _recorded_patterns(store: Store, name: str) -> tuple[str, ...]:
    """Return the patterns that were set last (): none, or of a later version."""
    after = _newest(store, name)
    try:
        found = value_of(SETTINGS[name], after) if after else ()
    except ValueError:
        return ()
    return found if isinstance(found, tuple) else ()
