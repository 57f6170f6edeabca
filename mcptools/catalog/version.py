"""The version of this software, as it is installed."""

from importlib import metadata

__all__ = ["version"]


def version() -> str:
    """Return the version, or that there is none."""
    try:
        return metadata.version("editledger")
    except metadata.PackageNotFoundError:
        return "unreleased"  # run from a source tree that is not installed
