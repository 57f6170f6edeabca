"""Test paths that another process swaps, replaces or writes while they are resolved or read."""

import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from objstore.disk.fs.confined_path import look_at, real_path
from objstore.values.errors import FileChanged, PathError
from tests.support.path_sandbox import PathSandbox


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Repeat an action in another thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def taking_turns() -> Iterator[None]:
    """Let other threads run between any two steps of one."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


ROUNDS = 2000


def trading(sandbox: PathSandbox) -> Callable[[], None]:
    """Return a function that replaces a folder by a link that leads out, and then restores it."""
    sandbox.link("link", "../elsewhere")
    folder, link, parked = sandbox.ws / "folder", sandbox.ws / "link", sandbox.ws / "parked"

    def swap() -> None:
        folder.rename(parked)
        link.rename(folder)
        folder.rename(link)
        parked.rename(folder)

    return swap


def test_a_folder_swapped_for_a_link_between_check_and_use_leads_nowhere(sandbox: PathSandbox) -> None:
    (sandbox.ws / "folder" / "a.txt").write_bytes(b"inside\n")
    outcomes = set()
    with meanwhile(trading(sandbox)):
        for _ in range(ROUNDS):
            try:
                outcomes.add(sandbox.read("folder/a.txt"))
            except PathError as error:
                outcomes.add(type(error).__name__.encode())
            with suppress(PathError), sandbox.tree.locate("folder/a.txt", changing=True) as resolved:
                found = look_at(resolved)
                assert found is None or found.st_size == len(b"inside\n")
    assert outcomes <= {b"inside\n", b"PathOutside", b"FileMissing", b"PathInvalid", b"FileChanged"}


def test_a_path_is_resolved_or_refused_while_links_change(sandbox: PathSandbox) -> None:
    outcomes = set()
    with taking_turns(), meanwhile(trading(sandbox)):
        for _ in range(2 * ROUNDS):
            try:
                outcomes.add(real_path(f"{sandbox.ws}/folder/a.txt"))
            except FileChanged:
                outcomes.add("")
    assert outcomes <= {f"{sandbox.ws}/folder/a.txt", f"{sandbox.ws.parent}/elsewhere/a.txt", ""}


def test_a_file_swapped_for_a_link_between_check_and_use_leads_nowhere(sandbox: PathSandbox) -> None:
    sandbox.link("link", "../a.txt")
    file, link, parked = sandbox.ws / "a.txt", sandbox.ws / "link", sandbox.ws / "parked"

    def swap() -> None:
        file.rename(parked)
        link.rename(file)
        file.rename(link)
        parked.rename(file)

    with meanwhile(swap):
        for follow in (True, False) * (ROUNDS // 2):
            with suppress(PathError):
                assert sandbox.read("a.txt", follow=follow) == b"a\n"


def test_a_file_that_is_replaced_while_it_is_read_is_never_a_mixture(sandbox: PathSandbox) -> None:
    versions = [bytes([letter]) * 300_000 for letter in b"xy"]
    (sandbox.ws / "big").write_bytes(versions[0])
    turn = iter(range(10**9))

    def replace() -> None:
        (sandbox.ws / "new").write_bytes(versions[next(turn) % 2])
        (sandbox.ws / "new").rename(sandbox.ws / "big")

    # A file that is replaced at every attempt to read it is refused: how often depends on how the threads take turns.
    outcomes = set()
    with meanwhile(replace):
        for attempt in range(100 * ROUNDS):
            try:
                outcomes.add(sandbox.read("big"))
            except FileChanged:
                outcomes.add(b"refused")
            if attempt >= ROUNDS // 10 and outcomes >= set(versions):
                break
    assert outcomes >= set(versions)
    assert outcomes <= {*versions, b"refused"}


def test_a_file_that_grows_while_it_is_read_is_never_a_mixture(sandbox: PathSandbox) -> None:
    # Linux shows what is appended across the edge of a page in two steps, and then a half of it is what the
    # file was: only a line that no edge cuts is there whole or not at all.
    line = b"0123456789abcde\n"
    assert mmap.PAGESIZE % len(line) == 0
    path = sandbox.ws / "log"
    path.write_bytes(b"")

    def grow() -> None:
        with path.open("ab") as file:
            file.write(line)

    with meanwhile(grow):
        for _ in range(ROUNDS // 4):
            with suppress(PathError):
                content = sandbox.read("log")
                assert content == line * (len(content) // len(line))
