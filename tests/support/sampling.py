"""Samples of what a test may try: `make test` tries every value at least once, `make crash` every combination."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from tests.support.faulty_disk import WHOLE

__all__ = ["sampled_product"]


def sampled_product(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return combinations of one value of each sequence, for `pytest.mark.parametrize`.

    Each value is in at least one of them. All combinations are returned for `CAS_CRASH_STEPS=1`, as in `make crash`.
    """
    if WHOLE:
        return list(product(*values))
    return [tuple(each[at % len(each)] for each in values) for at in range(max(map(len, values)))]
