"""Name the objects of a bucket, and tell which names are ours: a bucket may hold anything.

| key | holds |
|---|---|
| `stores/LANE/objects/HASH` | a piece of a segment, named by its BLAKE3 |
| `stores/LANE/heads/K` | what a store was after its K-th push |
| `stores/LANE/garbage/K` | what no head named at the K-th collection |
| `log/K` | the K-th decision, or answer to one, of all stores of the bucket |
"""

import re
from typing import Final, NewType

from objstore.model.ids import HASH_SIZE
from objstore.storage.log.frames import StoreId

__all__ = [
    "LOG",
    "MAX_NUMBER",
    "STORES",
    "Lane",
    "garbage_folder",
    "head_folder",
    "is_lane",
    "lane_of",
    "new_lane",
    "number_in",
    "numbered",
    "object_folder",
    "object_key",
    "piece_in",
    "store_of",
]

Lane = NewType("Lane", str)
"""The folder below `stores/` that one store alone writes to: the store's id, and a suffix if it is a second one."""

STORES: Final = "stores"
LOG: Final = "log"

_DIGITS: Final = 12
MAX_NUMBER: Final = 10**_DIGITS - 1
_LANE: Final = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{8})?")
_NUMBER: Final = re.compile(rf"[0-9]{{{_DIGITS}}}")
_HASH: Final = re.compile(rf"[0-9a-f]{{{2 * HASH_SIZE}}}")


def lane_of(store: StoreId) -> Lane:
    """Return the first lane of a store."""
    return Lane(store.hex())


def new_lane(store: StoreId, random: bytes) -> Lane:
    """Return a further lane of a store, for a copy of it; `random`: 4 bytes."""
    return Lane(f"{store.hex()}-{random.hex()}")


def is_lane(name: str) -> bool:
    """Return whether a folder's name is a lane's."""
    return _LANE.fullmatch(name) is not None


def store_of(lane: Lane) -> StoreId:
    """Return the id of the store that a lane is of."""
    return StoreId(bytes.fromhex(lane[:32]))


def object_folder(lane: Lane) -> str:
    """Return the folder of a lane's pieces."""
    return f"{STORES}/{lane}/objects"


def head_folder(lane: Lane) -> str:
    """Return the folder of a lane's heads."""
    return f"{STORES}/{lane}/heads"


def garbage_folder(lane: Lane) -> str:
    """Return the folder of what a lane's collections found."""
    return f"{STORES}/{lane}/garbage"


def object_key(lane: Lane, name: bytes) -> str:
    """Return the key of a piece."""
    return f"{object_folder(lane)}/{name.hex()}"


def numbered(folder: str, number: int) -> str:
    """Return the key of a numbered object; keys ascend with the numbers."""
    return f"{folder}/{number:0{_DIGITS}d}"


def number_in(folder: str, key: str) -> int | None:
    """Return the number in the key of a numbered object of a folder, from 1 (None: it is none)."""
    name = key.removeprefix(f"{folder}/")
    is_one = key.startswith(f"{folder}/") and _NUMBER.fullmatch(name) is not None
    return int(name) or None if is_one else None


def piece_in(lane: Lane, key: str) -> bytes | None:
    """Return the hash in the key of a piece (None: it is none)."""
    folder = object_folder(lane)
    name = key.removeprefix(f"{folder}/")
    return bytes.fromhex(name) if key.startswith(f"{folder}/") and _HASH.fullmatch(name) else None
