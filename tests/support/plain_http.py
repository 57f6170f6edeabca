"""Plain HTTP on loopback: what makes a client of httpx2 cheap."""

import ssl
from typing import Final

__all__ = ["NO_CERTIFICATES"]

NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What a client is to verify hosts with; without it, each client reads all authorities' certificates, which takes
longer than a hundred requests."""
