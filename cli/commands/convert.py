"""The command `cas store convert`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cli.app.invocation import Invocation, command, json_option
from cli.screen.progress import CHECKING, Progress
from cli.screen.terminal import Screen, shown_name, write, write_json
from objstore import counted

if TYPE_CHECKING:
    from objstore import Converted, Json

__all__ = ["convert"]

_INTERRUPTED: Final = "Interrupted: the store is as it was, or converted as a whole. Run the command again to finish."


@command("convert")
@json_option
def convert(*, as_json: bool) -> None:
    """Convert a store that an early version wrote to the present format.

    The new store is written next to the earlier one, checked as `cas fsck` does, and swapped in as a whole. The earlier
    one stays in .cas until you remove it. Close agents and servers of this project first.
    """
    from objstore import convert_store

    invocation = Invocation.current()
    with Progress(CHECKING, interrupted=_INTERRUPTED) as progress:
        done = convert_store(invocation.start(), progress.report)
    if as_json:
        write_json([_shape(done)])
    else:
        write(_text(done, invocation.screen()))


def _shape(done: "Converted | None") -> "dict[str, Json]":
    if done is None:
        return {"converted": False}
    return {
        "converted": True,
        "kept": done.kept,
        "records": done.records,
        "blobs": done.blobs,
        "inserted": [*done.inserted],
        "remotes": [*done.remotes],
    }


def _text(done: "Converted | None", screen: Screen) -> Iterator[bytes]:
    if done is None:
        yield screen.line("The store has the present format: there is nothing to convert.")
        return
    counts = f"{counted(done.records, 'record')} and {counted(done.blobs, 'blob')}"
    yield screen.line(f"Converted the store, and checked all of it: {counts}.")
    kept = shown_name(done.kept)
    yield screen.line(f"The earlier store is in {kept}. Once you don't need it any more:  rm -r {kept}")
    if done.inserted:
        numbers = " ".join(map(str, done.inserted))
        named, them = (
            (f"edit {numbers} records", "it") if len(done.inserted) == 1 else (f"edits {numbers} record", "them")
        )
        yield screen.line(
            f"Note: {named} what decisions of an early version wrote besides their verdicts. Edits after {them} have "
            "higher numbers than before."
        )
    for name in done.remotes:
        yield screen.line(
            f"Note: the next `cas push {name}` sends the whole store, next to what was pushed of the earlier one."
        )
