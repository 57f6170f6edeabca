"""A real object server on loopback for tests: SeaweedFS, started for a module of tests and ended after it."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from obstore.store import from_url

from objstore import RemoteFailed
from objstore.upkeep.remote.bucket import ObjectBucket

__all__ = ["ObjectServer", "has_server", "running_server"]

KEY, SECRET = "tests", "only-on-loopback"
SECONDS: Final = 60.0
"""How long it may take to start."""

_PORTS: Final = 4
_GRPC: Final = 10_000
"""How far the port of its own protocol is above each port."""


@dataclass(frozen=True)
class ObjectServer:
    """A running server with one bucket."""

    endpoint: str
    bucket: str = "shared"

    @property
    def url(self) -> str:
        """Return the URL of the bucket."""
        return f"s3://{self.bucket}"

    def settings(self, *, secret: str = SECRET, endpoint: str = "") -> dict[str, str]:
        """Return the environment with which it is reached."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }


def _program() -> str | None:
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


def has_server() -> bool:
    """Return whether the server is installed."""
    return _program() is not None


@contextmanager
def running_server(folder: Path, *, megabytes: int = 64) -> Iterator[ObjectServer]:
    """Run the server with its data in a folder, in at most 20 volumes of so many `megabytes`, and end it."""
    program = _program()
    assert program is not None
    folder.mkdir()
    master, volume, filer, s3 = _free_ports()
    identity = {"name": KEY, "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    command = [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}"]
    command += ["-s3", f"-s3.port={s3}", f"-s3.config={config}"]
    # The catalogs have ports of their own, so only one server of a machine could run with them.
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-volume.max=20", f"-master.volumeSizeLimitMB={megabytes}"]
    server = ObjectServer(endpoint=f"http://127.0.0.1:{s3}")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(server, f"http://127.0.0.1:{filer}", process, folder / "log")
        yield server
    finally:
        process.kill()  # it takes 10 s to end by itself, and nothing of it is kept
        process.wait()


def _free_ports() -> list[int]:
    """Return ports that are free, and whose counterparts are too."""
    found: set[int] = set()
    while len(found) < _PORTS:
        port = 20_000 + secrets.randbelow(20_000)  # which no seed of a test repeats in another process
        with socket.socket() as one, socket.socket() as other, suppress(OSError):
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + _GRPC))
            if not {port - _GRPC, port, port + _GRPC} & found:
                found.add(port)
    return [*found]


def _wait(server: ObjectServer, filer: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the bucket exists, and an object can be put."""
    ends = time.monotonic() + SECONDS
    before = dict(os.environ)
    os.environ |= server.settings()
    try:
        while not _is_ready(server, filer):
            assert process.poll() is None, log.read_text(errors="replace")[-4000:]
            assert time.monotonic() < ends, log.read_text(errors="replace")[-4000:]
            time.sleep(0.2)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _is_ready(server: ObjectServer, filer: str) -> bool:
    try:
        made = urllib.request.Request(f"{filer}/buckets/{server.bucket}/", method="POST")  # noqa: S310 - our own server
        with suppress(urllib.error.HTTPError):  # it is there
            urllib.request.urlopen(made, timeout=2).close()  # noqa: S310 - as above
        impatient = from_url(server.url, retry_config={"max_retries": 0}, client_options={"allow_http": True})
        bucket = ObjectBucket(server.url, impatient)
        bucket.put_new("ready", b"yes")
        bucket.delete(["ready"])
    except (OSError, RemoteFailed):
        return False
    return True
