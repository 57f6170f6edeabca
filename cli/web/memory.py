"""Give memory back to the system: a server runs for days, and one busy moment must not decide how much it holds.

Python finds objects that refer to each other only now and then, and the C library keeps what each thread has freed.
"""

import ctypes
import gc
from contextlib import suppress

__all__ = ["give_back", "leave_program_out"]


def leave_program_out() -> None:
    """Leave the objects that exist now, of which the program consists, out of all collections: these are faster then.

    To be called before the first request, because what it leaves out is never freed. From then on Python decides when
    to collect: it does so more often, because the objects of requests alone count.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Free what nothing refers to any more, and return whole free pages to the system; it takes some 20 ms."""
    gc.collect()
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
