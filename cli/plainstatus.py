"""A plain `cas status`, which prompts and watchers ask for again and again: it does not wait for click."""

import os

__all__ = ["plain_status"]


def plain_status(arguments: list[str]) -> int | None:
    """Run `cas status` where nothing else is asked for, and return its exit status.

    None: it is for the whole command, which meets the same again, to say what is wrong, or what else was asked for.
    """
    match arguments:
        case ["status"]:
            start = os.environ.get("CAS_WORKSPACE") or os.curdir
        case ["-C", place, "status"]:
            start = place
        case _:
            return None
    if start != os.curdir and not os.path.isdir(start):  # noqa: PTH112 -- pathlib costs start-up
        return None
    try:
        from cli.overview import status_text
        from cli.terminal import flush, screen_for, write
        from objstore import Workspace

        with Workspace.find(os.path.abspath(start)) as workspace:  # noqa: PTH100 -- as above
            report = workspace.status()
        write(status_text(report, screen_for("auto")))
        flush()
    except Exception:  # noqa: BLE001 -- nothing was changed, and the whole command tells every error in its own way
        return None
    except KeyboardInterrupt:
        from cli.main import EXIT_INTERRUPTED

        return EXIT_INTERRUPTED
    return 0
