"""Every order of the requests of three stores, with an answer that is lost, decides each unit once.

So it is with decisions that are taken back, and with comments: each is answered once, and all readers agree on it.

The stores run the real code. A store is run again from its beginning with the answers that it has had, up to the
request that it has no answer for yet; so a state is what the bucket holds, and which answers each store has had.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Final

import pytest
from obstore.store import MemoryStore

from objstore import Action, RemoteDecided, RemoteFailed, RemoteRefused, Seq, Status, Unit
from objstore.model.canonical_msgpack import Value, decode, encode
from objstore.upkeep.remote.bucket import Bucket, Listed, ObjectBucket
from objstore.upkeep.remote.decisions import (
    Answer,
    Ledger,
    RemoteComment,
    RemoteDecision,
    Result,
    Withdrawal,
    append,
    decoded,
    read_log,
    settle,
)
from objstore.upkeep.remote.keys import LOG, MAX_NUMBER, Lane, numbered
from tests.support.buckets import CutOff, FailingBucket
from tests.support.faulty_disk import WHOLE

DESK: Final = Lane("d" * 32)
FIRST, SECOND = Unit(Seq(1), 1), Unit(Seq(1), 2)

Request = tuple[str, ...]
Given = tuple[str, object]  # the kind of an answer, and what it says


class Waits(BaseException):
    """The store has made a request that has no answer yet."""

    def __init__(self, request: Request, content: bytes = b"") -> None:
        self.request = request
        self.content = content


class Replayed:
    """A bucket that gives the answers of before, and then waits."""

    url = "memory:///"

    def __init__(self, given: Sequence[Given]) -> None:
        self._given = iter(given)

    def _answer(self, request: Request, content: bytes = b"") -> object:
        found = next(self._given, None)
        if found is None:
            raise Waits(request, content)
        kind, said = found
        if kind == "error":
            assert isinstance(said, Exception)
            raise said
        return said

    def put_new(self, key: str, content: bytes) -> bool:
        return bool(self._answer(("put", key), content))

    def get(self, key: str, most: int) -> bytes:
        said = self._answer(("get", key, str(most)))
        assert isinstance(said, bytes)
        return said

    def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
        said = self._answer(("list", prefix, after))
        assert isinstance(said, tuple)
        yield from said

    def folders(self, prefix: str) -> list[str]:
        raise NotImplementedError(prefix)

    def delete(self, keys: Sequence[str]) -> None:
        raise NotImplementedError(keys)


Store = Callable[[Bucket], object]


def deciding(name: str, action: Action, *units: Unit) -> Store:
    """Return a store that decides on units at once."""
    decision = RemoteDecision(
        lane=DESK,
        action=action,
        units=dict.fromkeys(units, Status.PENDING),
        who=name,
        nonce=name.encode().ljust(32),
    )

    def run(bucket: Bucket) -> object:
        return append(bucket, decision, settle(read_log(bucket, 0)), "desk")

    return run


def taking_back(name: str, action: Action, *units: Unit) -> Store:
    """Return a store that decides on units, and takes that back unless it reads an answer."""
    decide = deciding(name, action, *units)

    def run(bucket: Bucket) -> object:
        number = decide(bucket)
        assert isinstance(number, int)
        ledger = settle(read_log(bucket, 0))
        if number in ledger.open(DESK):
            append(bucket, Withdrawal(lane=DESK, decision=number, who=name, nonce=name.encode().ljust(32)), ledger)
        return number

    return run


def commenting(name: str, *units: Unit) -> Store:
    """Return a store that comments on units."""
    comment = RemoteComment(lane=DESK, units=units, who=name, text="Why?", nonce=name.encode().ljust(32))

    def run(bucket: Bucket) -> object:
        return append(bucket, comment, settle(read_log(bucket, 0)))

    return run


def answering(bucket: Bucket) -> object:
    """Answer what waits, twice: as the store with the files, which carries out what it has read no withdrawal of."""
    ledger = Ledger()
    for turn in range(2):
        for number, encoded in read_log(bucket, ledger.last):
            ledger.take(number, decoded(encoded))
        for number in sorted([*ledger.open(DESK), *ledger.open_comments(DESK)]):
            result = Result.REFUSED if number in ledger.withdrawn else Result.CARRIED
            nonce = f"answer {number} {turn}".encode().ljust(32)
            append(bucket, Answer(lane=DESK, decision=number, result=result, head=1, nonce=nonce), ledger)
    return None


@dataclass(frozen=True)
class State:
    """What the bucket holds, which answers each store has had, and how many may still be lost."""

    held: tuple[tuple[str, bytes], ...]
    given: tuple[tuple[Given, ...], ...]
    losses: int


def answered(held: Sequence[tuple[str, bytes]], waits: Waits) -> tuple[Given, tuple[tuple[str, bytes], ...]]:
    """Return the real answer to a request, and what the bucket holds then."""
    bucket = ObjectBucket("memory:///", MemoryStore())
    for key, content in held:
        bucket.put_new(key, content)
    kind, key, *rest = waits.request
    try:
        match kind:
            case "put":
                said: object = bucket.put_new(key, waits.content)
            case "get":
                said = bucket.get(key, int(rest[0]))
            case _:
                # The time is no part of a state.
                said = tuple(replace_time(each) for each in bucket.listed(key, rest[0]))
    except RemoteFailed as error:
        return ("error", error), tuple(held)
    new = ((key, waits.content),) if kind == "put" and said else ()
    return ("said", said), (*held, *new)


def replace_time(each: Listed) -> Listed:
    """Return what was listed with a time that is always the same."""
    return Listed(key=each.key, size=each.size, changed=datetime(2026, 1, 1, tzinfo=UTC))


def run(store: Store, given: Sequence[Given]) -> object:
    """Run a store with the answers it has had; return its result, its error, or the request it waits for."""
    try:
        return store(Replayed(given))
    except (Waits, RemoteDecided, RemoteFailed) as ending:
        return ending


def explored(stores: Sequence[Store], losses: int) -> Iterator[tuple[State, list[object]]]:
    """Yield every state in which no store waits any more, with what each store has returned or raised."""
    begin = State(held=(), given=((),) * len(stores), losses=losses)
    waiting, seen = [begin], set[object]()
    while waiting:
        state = waiting.pop()
        key = (state.held, tuple(map(repr, state.given)), state.losses)
        if key in seen:
            continue
        seen.add(key)
        endings = [run(store, given) for store, given in zip(stores, state.given, strict=True)]
        if not any(isinstance(ending, Waits) for ending in endings):
            yield state, endings
        for which, ending in enumerate(endings):
            if not isinstance(ending, Waits):
                continue
            answer, held = answered(state.held, ending)
            next_ones = [(answer, held, state.losses)]
            if ending.request[0] == "put" and state.losses:
                lost = ("error", RemoteFailed("memory:///", "no answer"))
                next_ones += [(lost, held, state.losses - 1), (lost, state.held, state.losses - 1)]
            for said, then, left in next_ones:
                given = tuple((*each, said) if at == which else each for at, each in enumerate(state.given))
                waiting.append(replace(state, held=then, given=given, losses=left))


def require_laws(state: State, deciders: Sequence[object]) -> None:
    """Assert that each unit was decided once at a time, and that each store knows what became of its decision."""
    entries = sorted((int(key.rpartition("/")[2]), content) for key, content in state.held)
    assert [number for number, _ in entries] == list(range(1, len(entries) + 1))
    ledger = settle(entries)
    assert ledger.unreadable == 0
    open_units: list[Unit] = [unit for decision in ledger.open(DESK).values() for unit in decision.units]
    assert len(open_units) == len(set(open_units))
    for which, ending in enumerate(deciders):
        own = [number for number, each in ledger.valid.items() if each.who == f"store {which}"]
        assert len(own) <= 1
        match ending:
            case int():
                assert own == [ending]
            case RemoteDecided():
                assert own == []
            case RemoteFailed():
                pass
            case _:
                raise AssertionError(ending)
    assert ledger.void == {}


def require_answers(state: State) -> set[str]:
    """Assert that answers say what readers see, and return what became of withdrawals and comments."""
    entries = sorted((int(key.rpartition("/")[2]), content) for key, content in state.held)
    read = {number: decoded(content) for number, content in entries}
    ledger = settle(entries)
    answered = [each.decision for each in read.values() if isinstance(each, Answer)]
    assert sorted(answered) == sorted(ledger.answers)  # each once
    # A reader that skips what it doesn't know agrees on what counts.
    known = settle((at, content) for at, content in entries if isinstance(read[at], (RemoteDecision, Answer)))
    assert (known.valid, known.void) == (ledger.valid, ledger.void)
    assert known.answers == {at: answer for at, answer in ledger.answers.items() if at in ledger.valid}
    found = set[str]()
    for number, each in read.items():
        match each:
            case RemoteDecision() if number in ledger.answers:
                is_withdrawn = number in ledger.withdrawn
                if ledger.answers[number].result is Result.REFUSED:
                    assert is_withdrawn
                found.add(f"{ledger.answers[number].result.value}{' though withdrawn' * is_withdrawn}")
            case Withdrawal():
                assert (each.decision in ledger.withdrawn) == (number < answer_to(read, each.decision))
                if each.decision not in ledger.withdrawn:
                    found.add("withdrawn too late")
            case RemoteComment():
                assert number in ledger.comments
                found.add("comment answered" if number in ledger.answers else "comment waits")
            case _:
                pass
    return found


def answer_to(read: Mapping[int, object], number: int) -> int:
    """Return the number of the answer to an entry; if there is none, one that is behind all."""
    return min((at for at, each in read.items() if isinstance(each, Answer) and each.decision == number), default=999)


@pytest.mark.parametrize("losses", [0, 1])
def test_two_deciders_of_the_same_two_units_decide_each_once(losses: int) -> None:
    stores = [deciding("store 0", Action.REJECT, FIRST, SECOND), deciding("store 1", Action.ACCEPT, SECOND)]
    found = list(explored(stores, losses))
    assert found
    for state, endings in found:
        require_laws(state, endings)
        if not losses:
            assert sorted(isinstance(each, int) for each in endings) == [False, True]


@pytest.mark.parametrize("losses", [0, 1])
def test_owner_that_answers_meanwhile_changes_nothing_of_that(losses: int) -> None:
    stores = [deciding("store 0", Action.REJECT, FIRST), deciding("store 1", Action.ACCEPT, FIRST, SECOND), answering]
    count = 0
    for state, endings in explored(stores, losses):
        count += 1
        require_laws(state, endings[:2])
    assert count > 10


ALL_FATES: Final = {"carried", "carried though withdrawn", "refused though withdrawn", "withdrawn too late"}


LONG: Final = pytest.mark.skipif(not WHOLE, reason="takes seconds: CAS_CRASH_STEPS=1 runs it")
OTHER: Final = deciding("store 1", Action.ACCEPT, FIRST)


@pytest.mark.parametrize(
    ("others", "losses"),
    [
        ([OTHER], 0),
        ([], 1),
        pytest.param([OTHER], 1, marks=LONG),
    ],
    ids=["two", "lost", "two-lost"],
)
def test_decision_that_is_taken_back_is_answered_once_and_then_made_again(others: list[Store], losses: int) -> None:
    stores = [taking_back("store 0", Action.REJECT, FIRST), *others, answering]
    found = set[str]()
    is_made_again = False
    for state, endings in explored(stores, losses):
        require_laws(state, endings[:-1])
        found |= require_answers(state)
        is_made_again |= [type(each) for each in endings[:-1]] == [int, int]
    assert (found, is_made_again) == (ALL_FATES, bool(others))


def test_decision_that_is_taken_back_is_in_the_way_until_it_is_answered() -> None:
    made = RemoteDecision(lane=DESK, action=Action.REJECT, units={FIRST: Status.PENDING}, who="ann", nonce=bytes(32))
    entries: list[RemoteDecision | Withdrawal] = [
        made,
        Withdrawal(lane=DESK, decision=1, who="ann", nonce=bytes(32)),
        made,
    ]
    assert settle((at, each.encode()) for at, each in enumerate(entries, 1)).void == {3: 1}


def test_comment_is_in_the_log_once_whatever_is_decided_meanwhile() -> None:
    stores = [commenting("ann", FIRST), deciding("store 1", Action.ACCEPT, FIRST), answering]
    found = set[str]()
    for state, (comment, decision, _) in explored(stores, 1):
        require_laws(state, [RemoteFailed("", ""), decision])
        found |= require_answers(state)
        own = [int(key.rpartition("/")[2]) for key, content in state.held if is_comment(content)]
        assert own == [comment] if isinstance(comment, int) else len(own) <= 1
    assert found == {"carried", "comment answered", "comment waits"}


def is_comment(content: bytes) -> bool:
    return isinstance(decoded(content), RemoteComment)


@LONG
def test_comment_and_decision_that_is_taken_back_are_answered_once() -> None:
    stores = [taking_back("store 0", Action.REJECT, FIRST), commenting("ann", FIRST), answering]
    found = set[str]()
    for state, endings in explored(stores, 0):
        require_laws(state, endings[:1])
        found |= require_answers(state)
    assert found == {*ALL_FATES, "comment answered", "comment waits"}


@pytest.mark.parametrize("owners", [[], pytest.param([answering], marks=LONG)], ids=["alone", "with an owner"])
def test_three_deciders_decide_each_unit_once(owners: list[Store]) -> None:
    stores = [
        deciding("store 0", Action.REJECT, FIRST),
        deciding("store 1", Action.ACCEPT, SECOND),
        deciding("store 2", Action.ACCEPT, FIRST, SECOND),
        *owners,
    ]
    count = 0
    for state, endings in explored(stores, 0):
        count += 1
        require_laws(state, endings[:3])
    assert count > 10


def test_decision_that_others_would_void_is_not_put() -> None:
    bucket = ObjectBucket("memory:///", MemoryStore())
    stale = settle([])
    run_first = deciding("store 0", Action.REJECT, FIRST)
    assert run_first(bucket) == 1
    second = RemoteDecision(
        lane=DESK, action=Action.ACCEPT, units={FIRST: Status.PENDING}, who="late", nonce=b"late".ljust(32)
    )
    with pytest.raises(RemoteDecided, match="reject by store 0"):
        append(bucket, second, stale, "desk")
    assert [each.key for each in bucket.listed(LOG)] == [numbered(LOG, 1)]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80", b"x" * 100, Answer(lane=DESK, decision=9, result=Result.CARRIED, head=1, nonce=bytes(32)).encode()],
)
def test_entry_that_is_none_decides_nothing_and_stops_nobody(content: bytes) -> None:
    bucket = ObjectBucket("memory:///", MemoryStore())
    bucket.put_new(numbered(LOG, 1), content)
    run_it = deciding("store 0", Action.REJECT, FIRST)
    assert run_it(bucket) == 2


def test_comment_has_each_unit_once_and_in_order() -> None:
    comment = RemoteComment(lane=DESK, units=(SECOND, FIRST, FIRST), who="ann", text="Why?", nonce=bytes(32))
    read = decoded(comment.encode())
    assert isinstance(read, RemoteComment)
    assert read.units == (FIRST, SECOND)
    fields = decode(comment.encode())
    wrong: list[list[Value]] = [[[1, 2], [1, 1]], [[1, 1], [1, 1]], []]
    for units in wrong:
        assert decoded(encode({**fields, "units": units})) is None


def test_entry_with_the_highest_number_is_said_and_not_passed() -> None:
    bucket = ObjectBucket("memory:///", MemoryStore())
    bucket.put_new(numbered(LOG, MAX_NUMBER), b"")
    with pytest.raises(RemoteRefused, match="highest number"):
        deciding("store 0", Action.REJECT, FIRST)(bucket)


def test_list_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("objstore.upkeep.remote.decisions._MOST_ENTRIES", 1_000)

    class Endless(Replayed):
        def listed(self, prefix: str, after: str = "") -> Iterator[Listed]:
            for number in count(1):
                yield Listed(key=f"{prefix}/{number}{after}", size=1, changed=datetime(2026, 1, 1, tzinfo=UTC))

    with pytest.raises(RemoteRefused, match="no end"):
        read_log(Endless([]), 0)


def test_log_that_is_too_large_to_be_kept_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = FailingBucket(ObjectBucket("memory:///", MemoryStore()))
    for number in range(1, 4):
        bucket.put_new(numbered(LOG, number), b"x" * 1_000)
    monkeypatch.setattr("objstore.upkeep.remote.decisions._MOST_BYTES", 2_999)
    with pytest.raises(RemoteRefused, match="has 3000 bytes"):
        read_log(bucket, 0)
    with pytest.raises(RemoteRefused, match="has 3000 bytes"):
        read_log(bucket, 1, 1_000)
    assert bucket.requests["get"] == 0
    assert [number for number, _ in read_log(bucket, 1)] == [2, 3]


def test_decision_that_no_reader_would_take_is_not_put() -> None:
    bucket = ObjectBucket("memory:///", MemoryStore())
    units = {Unit(Seq(seq), 1): Status.PENDING for seq in range(1, 100_000)}
    decision = RemoteDecision(lane=DESK, action=Action.ACCEPT, units=units, who="ann", nonce=bytes(32))
    with pytest.raises(RemoteFailed, match="too large"):
        append(bucket, decision, settle([]), "desk")
    assert list(bucket.listed("")) == []


@pytest.mark.parametrize("dies_at", range(1, 5))
def test_decision_that_dies_at_any_request_is_made_once(dies_at: int) -> None:
    bucket = FailingBucket(ObjectBucket("memory:///", MemoryStore()))
    bucket.dies_at = dies_at
    with suppress(CutOff):
        deciding("store 0", Action.REJECT, FIRST)(bucket)
    bucket.dies_at = 0
    with suppress(RemoteDecided):
        deciding("store 1", Action.ACCEPT, FIRST)(bucket)
    ledger = settle(read_log(bucket, 0))
    assert (len(ledger.valid), ledger.void) == (1, {})
