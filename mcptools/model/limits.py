"""Define the limits of the tools and the server, with their defaults."""

from dataclasses import dataclass

__all__ = ["ServerLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of the tools and the server."""

    max_file_bytes: int = 10 << 20  # size of a file that is read or edited
    max_answer: int = 80_000  # characters of an answer: some 25,000 tokens, where clients begin to cut
    max_walked: int = 100_000  # names that a search or a tree visits
    max_seconds: float = 10.0  # duration of a search
    min_free_space: int = 100 << 20  # bytes that must be free where a patch or a backup is written
    binary_check_bytes: int = 8192  # bytes of a file that are checked to see whether it is binary
    non_text_threshold: float = 0.3  # share of those bytes that may be non-text in a text file
    max_connections: int = 256  # concurrent HTTP connections; at most half of the files that the process may open
    request_seconds: int = 30  # time in which an HTTP request must arrive completely
    idle_seconds: int = 5  # time for which a connection stays open between two requests
