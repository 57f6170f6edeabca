"""Open a listening socket at a loopback address, which only programs on this machine can reach."""

import ipaddress
import socket

__all__ = ["NotLocal", "listening"]


class NotLocal(Exception):
    """The address is not a loopback address, or can't be used."""


def listening(address: str) -> socket.socket:
    """Return a socket that listens at `address` (HOST:PORT; port 0: any that is free). Raises NotLocal."""
    host, port = _local(address)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise NotLocal(f"can't serve at {address}: {error.strerror}") from error
    return listener


def _local(address: str) -> tuple[str, int]:
    """Return the host and port of a loopback address. Raises NotLocal."""
    host, _, digits = address.rpartition(":")
    host = host.strip("[]")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        is_local, port = ipaddress.ip_address(host).is_loopback, int(digits)
    except ValueError:
        raise NotLocal(f"not HOST:PORT: {address}") from None
    if not is_local:
        raise NotLocal(f"{host} is not an address of this machine alone; put what encrypts in front, at 127.0.0.1")
    if not 0 <= port < 1 << 16:
        raise NotLocal(f"not a port: {port}")
    return host, port
