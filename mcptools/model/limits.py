"""Limits: what tools and the server take, give and look at, at most, and what that is if nobody says otherwise."""

from dataclasses import dataclass

__all__ = ["ServerLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What tools and the server take, give and look at, at most."""

    max_file_bytes: int = 10 << 20  # of a file that is read or edited
    max_answer: int = 80_000  # characters of an answer: some 25,000 tokens, where clients begin to cut
    max_walked: int = 100_000  # names that a search or a tree looks at
    max_seconds: float = 10.0  # that a search goes on for
    min_free_space: int = 100 << 20  # bytes that have to be free where a patch or a backup is written
    binary_check_bytes: int = 8192  # of a file that are looked at to tell whether it is binary
    non_text_threshold: float = 0.3  # part of those bytes that may be no text in a text file
    max_connections: int = 256  # over HTTP, at once; no more than half of the files that the process may open
    request_seconds: int = 30  # that a request over HTTP has to arrive whole
    idle_seconds: int = 5  # that a connection stays open between two requests
