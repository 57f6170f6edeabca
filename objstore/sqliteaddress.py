"""SQLite addresses: how a database file is named where SQLite is to open it in a certain way, and never make it."""

__all__ = ["address_of"]


def address_of(path: str, query: str) -> str:
    """Return the URI of the database at `path`, to be opened as `query` says, such as `mode=ro`.

    Only what would end the path is escaped: `urllib` can't spell a path that is not UTF-8, and takes longer to import.
    """
    return f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?{query}"
