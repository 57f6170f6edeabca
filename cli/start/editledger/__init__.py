"""Start the command `cas` and the server `editledger` from our own packages, wherever they are started.

`cli`, `objstore` and `mcptools` are names that a user's project may have too, and `PYTHONPATH=.` or `python -m` puts
that project first in the search for modules. So the scripts begin here, under a name that is ours alone, and leave the
user's folders out of the search before anything else is imported. `cas` starts the command, `__main__` the server. The
package is installed next to the three others; in the source tree it is in a folder of its own.

Until then only modules that are in every Python already may be imported: a project may have a `types.py` too.
"""

import os
import sys

__all__ = ["isolate"]


def isolate() -> None:
    """Leave the user's folders out of the search for modules: the current one, the script's, those of PYTHONPATH.

    Where PYTHONPATH is what finds this package, as after `pip install --target`, its folders stay, as the last ones.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs 4 ms
    if not os.path.isdir(os.path.join(home, "cli")):  # noqa: PTH112, PTH118 - as above
        home = os.path.dirname(os.path.dirname(home))  # noqa: PTH120 - as above; the source tree
    given = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    try:
        named = [os.path.abspath(path) for path in given.split(os.pathsep)] if given else []  # noqa: PTH100 - as above
    except FileNotFoundError:  # the current folder is gone, so nothing is found in it
        named = [path for path in given.split(os.pathsep) if os.path.isabs(path)]  # noqa: PTH117 - as above
    # The first place is that of the script, or the current folder.
    found = [path for path in sys.path[0 if sys.flags.safe_path else 1 :] if path and path not in named]
    if home not in found:  # behind the standard library, but before another installation
        library = os.path.dirname(os.__file__)  # noqa: PTH120 - as above
        found.insert(found.index(library) + 1 if library in found else len(found), home)
    sys.path[:] = [*found, *(named if home in named else [])]
