"""Hold the bytes of a folder's ignore files. A status compares them, and mostly needs no rule that they hold."""

from typing import Final

from objstore.values.fastclass import NamedTuple

__all__ = ["NO_TEXTS", "IgnoreTexts"]


class IgnoreTexts(NamedTuple):
    """The ignore files of one folder: `own` overrides `git`, which overrides `exclude`, and that `user`."""

    git: bytes  # of .gitignore
    own: bytes  # of .casignore
    exclude: bytes = b""  # of the repository's info/exclude, at its top
    user: bytes = b""  # of the user's ignore file (core.excludesFile), there too


NO_TEXTS: Final = IgnoreTexts(b"", b"")
