"""Object stores as processes on loopback, each with an empty bucket: SeaweedFS, Ceph's gateway, and Azurite.

SeaweedFS comes by pip, Ceph from the distribution (`ceph-mon ceph-osd radosgw`), and Azurite by npm. Whoever uses one
runs in its environment, as a person would: keys and addresses are in no URL.
"""

import base64
import hashlib
import hmac
import os
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Final

from obstore import sign
from obstore.store import S3Store

from tests.support.object_server import has_server, running_server

__all__ = ["BUCKET_SERVERS", "BucketServer", "azurite", "ceph_gateway", "missing_server", "seaweedfs"]

BUCKET: Final = "editledger"
KEY: Final = "test-key"
SECRET: Final = "test-secret"  # noqa: S105 -- of a server on loopback that lives as long as a test

_AZURITE: Final = Path(
    os.environ.get("EDITLEDGER_NPM", Path(__file__).parents[2] / "build/npm"), "node_modules/.bin/azurite-blob"
)

ACCOUNT: Final = "devstoreaccount1"
ACCOUNT_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, as its documentation says."""

_SECONDS: Final = 60.0

_ENDPOINTS: Final = {"s3": "AWS_ENDPOINT_URL", "az": "AZURITE_BLOB_STORAGE_URL"}
"""By scheme the variable that holds a server's address."""

_CEPH_CONFIGURATION: Final = """[global]
fsid = {cluster}
mon host = v2:127.0.0.1:{port}
ms bind msgr1 = false
ms mon cluster mode = crc
ms mon service mode = crc
ms mon client mode = crc
auth cluster required = none
auth service required = none
auth client required = none
keyring = {folder}/keyring
admin socket =
run dir = {folder}
log file = {folder}/$name.log
mon data = {folder}/mon
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
osd data = {folder}/osd
osd objectstore = memstore
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
rgw rados pool pg num min = 4
memstore device bytes = 4294967296
public addr = 127.0.0.1
cluster addr = 127.0.0.1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketServer:
    """An object store that runs, with an empty bucket."""

    name: str
    url: str  # of the bucket, as `cas remote add` takes it
    environment: Mapping[str, str]  # what a program needs in its environment

    @property
    def endpoint(self) -> str:
        """Return the address at which it listens."""
        return self.environment[_ENDPOINTS[self.url[:2]]]

    def at(self, endpoint: str) -> dict[str, str]:
        """Return the environment of a program that reaches it by another address."""
        return {**self.environment, _ENDPOINTS[self.url[:2]]: endpoint}

    @property
    def keys(self) -> tuple[str, str]:
        """Return the key and the secret of a server that speaks S3."""
        return self.environment["AWS_ACCESS_KEY_ID"], self.environment["AWS_SECRET_ACCESS_KEY"]

    @property
    def secret_name(self) -> str:
        """Return the name of the variable that holds the secret key."""
        return next(name for name in self.environment if name.endswith(("SECRET_ACCESS_KEY", "ACCOUNT_KEY")))


@contextmanager
def seaweedfs(folder: Path) -> Iterator[BucketServer]:
    """Run SeaweedFS with its data in `folder`."""
    with running_server(folder / "data") as server:
        yield BucketServer(name="seaweedfs", url=f"{server.url}/prefix", environment=server.settings())


@contextmanager
def ceph_gateway(folder: Path) -> Iterator[BucketServer]:
    """Run Ceph's gateway with one monitor and one store in memory; `folder` gets its files."""
    cluster, disk = str(uuid.uuid4()), str(uuid.uuid4())
    port, gateway = _free_port(), _free_port()
    configuration = folder / "ceph.conf"
    configuration.write_text(_CEPH_CONFIGURATION.format(cluster=cluster, port=port, folder=folder))
    given = ("-c", str(configuration))

    def run(program: str, *arguments: str) -> None:
        subprocess.run([program, *given, *arguments], cwd=folder, check=True, capture_output=True, timeout=_SECONDS)

    (folder / "mon").mkdir()
    (folder / "osd").mkdir()
    run("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{port}]", "--fsid", cluster, "monmap")
    run("ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
    with _running(folder, "ceph-mon", *given, "-i", "a", "-f"):
        run("ceph", "osd", "new", disk)
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        with _running(folder, "ceph-osd", *given, "-i", "0", "-f"):
            keys = (f"--access-key={KEY}", f"--secret-key={SECRET}")
            run("radosgw-admin", "user", "create", "--uid=test", "--display-name=test", *keys)
            serve = ("-n", "client.rgw", "-f", "--rgw-frontends", f"beast endpoint=127.0.0.1:{gateway}")
            with _running(folder, "radosgw", *given, *serve):
                yield _with_bucket(f"http://127.0.0.1:{gateway}", KEY, SECRET)


@contextmanager
def azurite(folder: Path) -> Iterator[BucketServer]:
    """Run Azurite in memory, with a container; `folder` gets its output."""
    port = _free_port()
    serve = ("--blobPort", str(port), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck")
    with _running(folder, str(_AZURITE), *serve):
        _patiently(lambda: _create_container(port))
        yield BucketServer(
            name="azurite",
            url=f"az://{BUCKET}/prefix",
            environment={
                "AZURE_STORAGE_USE_EMULATOR": "true",
                "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
                "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
                "AZURE_ALLOW_HTTP": "true",
            },
        )


def _with_bucket(endpoint: str, key: str, secret: str) -> BucketServer:
    """Create a bucket in Ceph's gateway, as soon as it answers."""
    store = S3Store(
        BUCKET,
        endpoint=endpoint,
        access_key_id=key,
        secret_access_key=secret,
        region="us-east-1",
        client_options={"allow_http": True},
    )

    def create() -> None:
        made = urllib.request.Request(sign(store, "PUT", "", timedelta(minutes=5)), method="PUT", data=b"")  # noqa: S310 -- loopback
        with urllib.request.urlopen(made, timeout=_SECONDS):  # noqa: S310 -- loopback
            pass

    _patiently(create)
    return BucketServer(
        name="ceph",
        url=f"s3://{BUCKET}/prefix",
        environment={
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        },
    )


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _create_container(port: int) -> None:
    """Create the container, with a request that is signed by the account's key."""
    now = format_datetime(datetime.now(UTC), usegmt=True)
    headers = {"x-ms-date": now, "x-ms-version": "2021-12-02"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items())]
    signed = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}", "restype:container"])
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"http://127.0.0.1:{port}/{ACCOUNT}/{BUCKET}?restype=container"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=_SECONDS):
        pass


def _patiently(act: Callable[[], None]) -> None:
    """Try until a server that starts can answer."""
    until = time.monotonic() + _SECONDS
    while True:
        try:
            return act()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@contextmanager
def _running(folder: Path, program: str, *arguments: str) -> Iterator[None]:
    """Run a server, and end it with every process of its group."""
    with (folder / f"{Path(program).name}.out").open("wb") as output:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


BUCKET_SERVERS: Final[dict[str, Callable[[Path], AbstractContextManager[BucketServer]]]] = {
    "seaweedfs": seaweedfs,
    "ceph": ceph_gateway,
    "azurite": azurite,
}
"""By name what runs a server in an empty folder."""


def missing_server(name: str) -> str:
    """Return why a server is not run; "": it is. EDITLEDGER_REQUIRES names those that have to be."""
    if name in os.environ.get("EDITLEDGER_REQUIRES", "").split():
        return ""
    if name == "ceph":
        return "`make remote-ceph` runs it"
    if name == "seaweedfs":
        return "" if has_server() else "SeaweedFS is not installed"
    return "" if _AZURITE.exists() else f"{_AZURITE} is not installed"
