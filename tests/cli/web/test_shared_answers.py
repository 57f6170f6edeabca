"""What several pages ask for at the same time is computed once, and never older than the request."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from starlette.responses import Response

from cli.web.shared_answers import Asked, SharedAnswers

QUEUE: Final[Asked] = ("/api/queue", ())
FILE: Final[Asked] = ("/api/file", (("document", "1"),))


class Store:
    """A state with a version, and answers that wait until they may end."""

    def __init__(self) -> None:
        self.version = "one"
        self.looks = threading.Semaphore(0)
        self.computed: list[str] = []
        self.may_end = threading.Event()
        self.begins = threading.Semaphore(0)

    def look(self) -> str:
        """Return the version."""
        self.looks.release()
        return self.version

    def compute(self) -> Response:
        """Return the version that is there at the beginning."""
        self.computed.append(self.version)
        answer = Response(self.version)
        self.begins.release()
        assert self.may_end.wait(30)
        return answer


def run(act: Callable[[Store, SharedAnswers], Awaitable[None]]) -> Store:
    """Run a coroutine with a store, and return the store."""
    store = Store()

    async def main() -> None:
        await act(store, SharedAnswers(store.look))

    asyncio.run(main())
    return store


async def looked(store: Store, times: int) -> None:
    """Wait until the version was looked at so often: once for each computation, and for each who asks meanwhile."""
    for _ in range(times):
        assert await asyncio.to_thread(store.looks.acquire, timeout=30)


async def begun(store: Store) -> None:
    """Wait until a computation has begun."""
    assert await asyncio.to_thread(store.begins.acquire, timeout=30)


def test_all_who_ask_while_the_store_is_the_same_get_one_computation() -> None:
    async def act(store: Store, shared: SharedAnswers) -> None:
        asked = [asyncio.create_task(shared.answer(QUEUE, store.compute)) for _ in range(20)]
        await begun(store)
        asked += [asyncio.create_task(shared.answer(QUEUE, store.compute)) for _ in range(20)]
        await looked(store, 1 + 20)
        store.may_end.set()
        assert {bytes(answer.body) for answer in await asyncio.gather(*asked)} == {b"one"}

    assert run(act).computed == ["one"]


def test_who_asks_after_a_change_gets_what_was_computed_after_it() -> None:
    async def act(store: Store, shared: SharedAnswers) -> None:
        early = asyncio.create_task(shared.answer(QUEUE, store.compute))
        await begun(store)
        store.version = "two"
        late = [asyncio.create_task(shared.answer(QUEUE, store.compute)) for _ in range(20)]
        await looked(store, 1 + 20)
        store.may_end.set()
        assert (await early).body == b"one"
        assert {bytes(answer.body) for answer in await asyncio.gather(*late)} == {b"two"}

    assert run(act).computed == ["one", "two"]


def test_different_requests_are_computed_apart_and_an_error_reaches_all_who_asked() -> None:
    async def act(store: Store, shared: SharedAnswers) -> None:
        def fail() -> Response:
            store.computed.append("failed")
            raise OSError("no")

        store.may_end.set()
        asked = [
            shared.answer(FILE, fail),
            shared.answer(FILE, fail),
            shared.answer(QUEUE, store.compute),
        ]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in found] == [OSError, OSError, Response]
        with pytest.raises(OSError, match="no"):
            await shared.answer(FILE, fail)

    assert sorted(run(act).computed) == ["failed", "failed", "one"]


def test_a_page_that_goes_away_takes_the_answer_from_no_other() -> None:
    async def act(store: Store, shared: SharedAnswers) -> None:
        gone, stays = (asyncio.create_task(shared.answer(QUEUE, store.compute)) for _ in range(2))
        await begun(store)
        gone.cancel()
        store.may_end.set()
        assert (await stays).body == b"one"

    assert run(act).computed == ["one"]
