"""Estimate quickly how short a blob would become, alone or as a delta against one base or another.

The estimates serve only to compare bases. Compressors that are prepared for a base are kept for a while, because many
new files may resemble the same one.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import zstandard

from objstore.storage.log.blob_codec import Base

if TYPE_CHECKING:
    from objstore.model.ids import BlobId

__all__ = ["CompressionTrials"]

_LEVEL: Final = -10
"""zstd's level. It finds similarities as well as slower levels do; how short the rest becomes is about the same for all
bases."""

_LEAST_WINDOW: Final = 18
_MOST_WINDOW: Final = 23
"""Bits of zstd's window, which has to reach from the blob's end back to the beginning of the base."""

_LEAST_TABLE: Final = 14
_FEWER: Final = 3
"""The fewest bits of zstd's hash table, and by how many bits it may be smaller than the base: if it were smaller still,
it would leave out the beginning of the base. A table that is larger than necessary takes long to copy."""

_HEADER: Final = 48
_DELTA: Final = 96
"""Bytes of a blob's frame before the data, without and with a base."""

_KEPT: Final = 16
_KEPT_BYTES: Final = 4 << 20
"""The number of bases, and their bytes, for which prepared compressors are kept."""


class CompressionTrials:
    """Estimate the encoded sizes of blobs."""

    def __init__(self) -> None:
        self._alone: Final = zstandard.ZstdCompressor(compression_params=_parameters(_LEAST_WINDOW, _LEAST_TABLE))
        self._prepared: Final[OrderedDict[tuple[BlobId, int], tuple[zstandard.ZstdCompressor, int]]] = OrderedDict()
        self._bytes = 0  # of the bases of all prepared compressors

    def alone(self, content: bytes) -> int:
        """Return about how many bytes a blob takes as a keyframe."""
        return _HEADER + len(self._alone.compress(content))

    def against(self, content: bytes, base: Base) -> int:
        """Return about how many bytes a blob takes as a delta against `base`."""
        needed = (len(base.content) + len(content)).bit_length()
        compressor = self._compressor(base, max(_LEAST_WINDOW, min(needed, _MOST_WINDOW)))
        return _DELTA + len(compressor.compress(content))

    def _compressor(self, base: Base, bits: int) -> zstandard.ZstdCompressor:
        key = base.id, bits
        found = self._prepared.pop(key, None)
        if found is None:
            table = max(_LEAST_TABLE, len(base.content).bit_length() - _FEWER)
            parameters = _parameters(bits, table)
            dictionary = zstandard.ZstdCompressionDict(base.content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            dictionary.precompute_compress(compression_params=parameters)
            found = zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary), len(base.content)
            self._bytes += found[1]
            while self._prepared and (len(self._prepared) >= _KEPT or self._bytes > _KEPT_BYTES):
                _, (_, size) = self._prepared.popitem(last=False)
                self._bytes -= size
        self._prepared[key] = found
        return found[0]


def _parameters(window_bits: int, table_bits: int) -> zstandard.ZstdCompressionParameters:
    return zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=window_bits, hash_log=table_bits)
