"""Record codec: what is encoded decodes again, in one form only, and nothing else is accepted as a record."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgpack
import pytest
from hypothesis import given, strategies as st

from objstore.model.basic_types import Action, CommentState, DocumentId, FileState, Operation, Seq, Status, Unit
from objstore.model.canonical_msgpack import decode, encode
from objstore.model.ids import BlobId, RecordId
from objstore.model.record_codec import decode_record, encode_record, written_by
from objstore.model.records import (
    Anchor,
    Comment,
    Decision,
    Edit,
    Mark,
    Record,
    SettingChange,
    Turn,
    Void,
    WrittenFile,
)
from objstore.model.replay_records import ReplayEdit, replay_edit, replay_fields
from objstore.text.hunks import Hunk
from objstore.values.errors import RecordInvalid
from tests.support import strategies as draw

STATE = FileState(blob=BlobId(b"\x11" * 32), mode=0o644)
OTHER = FileState(blob=BlobId(b"\x22" * 32), mode=0o755)
EDIT = Edit(
    seq=Seq(7),
    document=DocumentId(3),
    time=1_700_000_000_000_000,
    conversation="conv_1_ab",
    call=2,
    ordinal=1,
    operation=Operation.EDIT,
    path=b"src/a.py",
    before=STATE,
    after=OTHER,
    tool="edit_file_diff",
)
DECISION = Decision(
    number=1,
    time=5,
    action=Action.REJECT,
    verdicts=((Unit(Seq(7), 0), Status.REJECTED),),
    written=(WrittenFile(document=DocumentId(3), path_before=b"a", before=STATE, path_after=b"b", after=OTHER),),
    who="somebody",
)
VOID = Void(time=5, edits=(Seq(7),), decision=1, reason="the disk said no")
TURN = Turn(number=1, time=5, session="s", conversation="c")
COMMENT = Comment(
    number=3,
    time=5,
    who="somebody",
    document=DocumentId(3),
    path=b"src/a.py",
    first=Anchor(7, 1, 0),
    last=Anchor(0, 0, 9),
    lines=(4, 5),
    text="why?",
)
MARK = Mark(time=5, who="somebody", comments=(1, 3), state=CommentState.SENT)
SETTING = SettingChange(time=5, who="somebody", name="review.external")
PLAIN: list[Record] = [EDIT, DECISION, VOID, TURN, COMMENT, MARK, SETTING]


@given(draw.records, st.none() | draw.record_ids)
def test_decoding_inverts_encoding(record: Record, previous: RecordId | None) -> None:
    assert decode_record(encode_record(record, previous)) == (record, previous)


@given(draw.records, st.none() | draw.record_ids)
def test_written_files_of_a_decision_can_be_read_without_its_verdicts(
    record: Record, previous: RecordId | None
) -> None:
    encoded = encode_record(record, previous)
    if isinstance(record, Decision):
        assert written_by(encoded) == record.written
    else:
        with pytest.raises(RecordInvalid):
            written_by(encoded)


@given(edit=draw.edits(), previous=st.none() | draw.record_ids, follows=st.booleans())
def test_a_replay_sees_the_fields_of_the_edit_record(*, edit: Edit, previous: RecordId | None, follows: bool) -> None:
    known = edit.before if follows else STATE
    past = replay_edit(replay_fields(encode_record(edit, previous)), known)
    assert past == ReplayEdit(*(getattr(edit, name) for name in ReplayEdit._fields))
    assert follows is False or past.before is edit.before


Node: TypeAlias = dict[Any, Any] | list[Any]

FOREIGN: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from(["x" * 65_537, b"x" * 65_537, b"\x11" * 31, b"\x11" * 32, b"..", msgpack.ExtType(5, b"x")]),
    st.builds(list),
    st.dictionaries(st.text(max_size=3) | st.binary(max_size=3) | st.integers(0, 3), st.none(), max_size=2),
)
"""Values that a record holds somewhere, or nowhere."""


def nodes_of(node: Node) -> list[Node]:
    """Return the maps and arrays of a decoded record, itself first."""
    below = node.values() if isinstance(node, dict) else node
    return [node, *(found for item in below if isinstance(item, dict | list) for found in nodes_of(item))]


def altered(fields: Node, foreign: object) -> Iterator[Node]:
    """Yield the fields with one change in one of their maps or arrays: a key, a value, or the number of items."""
    for at, node in enumerate(nodes_of(fields)):
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        for key in keys:
            changed = deepcopy(fields)
            nodes_of(changed)[at][key] = foreign
            yield changed
            changed = deepcopy(fields)
            del nodes_of(changed)[at][key]
            yield changed
            names: tuple[Any, ...] = (repr(key).encode(), repr(key), 7, True) if isinstance(node, dict) else ()
            for name in names:
                changed = deepcopy(fields)
                inner = nodes_of(changed)[at]
                inner[name] = inner.pop(key)
                yield changed
        changed = deepcopy(fields)
        inner = nodes_of(changed)[at]
        if isinstance(inner, dict):
            inner[b"more"] = foreign
        else:
            inner.append(foreign)
        yield changed


MAPPED: Final = draw.edits().map(lambda edit: replace(edit, notes={"agent": "a", **edit.notes}))
"""Edits with a map in them, which few that are drawn have."""


@given(draw.records | MAPPED, st.none() | draw.record_ids, FOREIGN)
def test_altered_bytes_are_refused_or_the_encoding_of_a_record(
    record: Record, previous: RecordId | None, foreign: object
) -> None:
    for fields in altered(decode(encode_record(record, previous)), foreign):
        encoded = msgpack.packb(fields, use_bin_type=True)
        try:
            read, before = decode_record(encoded)
        except RecordInvalid:
            continue
        assert encode_record(read, before) == encoded


@pytest.mark.parametrize(
    ("record", "misspelt"),
    [(EDIT, {"notes": {b"k": "v"}}), (DECISION, {"written": [{"document": 1, b"x": 2, "y": 3}]}), (VOID, {b"x": 1})],
    ids=["notes", "what was written", "the record itself"],
)
def test_a_map_with_a_non_string_key_is_refused(record: Record, misspelt: dict[str, Any]) -> None:
    fields = decode(encode_record(record, None)) | misspelt
    with pytest.raises(RecordInvalid):
        decode_record(msgpack.packb(fields, use_bin_type=True))


@given(draw.records, st.none() | draw.record_ids, st.data())
def test_a_record_with_other_bytes_is_refused_or_another_record(
    record: Record, previous: RecordId | None, data: st.DataObject
) -> None:
    encoded = bytearray(encode_record(record, previous))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(encoded) - 1))
        match data.draw(st.sampled_from(["flip", "drop", "insert"])):
            case "flip":
                encoded[place] ^= data.draw(st.integers(1, 255))
            case "drop" if len(encoded) > 1:
                del encoded[place]
            case _:
                encoded.insert(place, data.draw(st.integers(0, 255)))
    try:
        read, before = decode_record(bytes(encoded))
    except RecordInvalid:
        return
    assert encode_record(read, before) == bytes(encoded)


@given(draw.records)
def test_a_map_in_any_other_order_of_keys_is_refused(record: Record) -> None:
    fields = msgpack.unpackb(encode_record(record, None))
    backwards = {name: fields[name] for name in sorted(fields, reverse=True)}
    with pytest.raises(RecordInvalid):
        decode_record(msgpack.packb(backwards))


# ---- fields that are wrong, one at a time


def encode_with(record: Record, *absent: str, **changed: Any) -> bytes:  # noqa: ANN401 - any value may be wrong
    fields: dict[str, Any] = dict(decode(encode_record(record, None)))
    fields |= changed
    for name in absent:
        del fields[name]
    return encode(fields)


@pytest.mark.parametrize("record", PLAIN, ids=lambda record: type(record).__name__)
def test_every_required_field_of_a_record_is_needed(record: Record) -> None:
    for name in decode(encode_record(record, None)):
        if name != "written":
            with pytest.raises(RecordInvalid):
                decode_record(encode_with(record, name))


@pytest.mark.parametrize("record", PLAIN, ids=lambda record: type(record).__name__)
def test_an_unknown_field_is_refused(record: Record) -> None:
    with pytest.raises(RecordInvalid, match="unknown field"):
        decode_record(encode_with(record, zebra=1))


@pytest.mark.parametrize("wrong", [-1, 2**63, True, "1", b"1", [1], {"a": 1}], ids=repr)
@pytest.mark.parametrize("name", ["seq", "document", "time", "call", "ordinal"])
def test_boolean_in_place_of_a_number_is_refused(name: str, wrong: object) -> None:
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(EDIT, **{name: wrong}))


STATED_DEFAULTS: list[tuple[Record, dict[str, Any]]] = [
    (EDIT, {"hunks": []}),
    (EDIT, {"folders": 0}),
    (EDIT, {"newline": False}),
    (EDIT, {"lines": [0, 0]}),
    (EDIT, {"lines": []}),
    (EDIT, {"origin": "agent"}),
    (EDIT, {"status": "pending"}),
    (EDIT, {"notes": {}}),
    (DECISION, {"written": []}),
    (DECISION, {"reason": ""}),
    (DECISION, {"takes_back": 0}),
    (EDIT, {"turn": 0}),
    (DECISION, {"commit": ""}),
    (DECISION, {"conversation": ""}),
    (TURN, {"client": ""}),
    (TURN, {"model": ""}),
    (TURN, {"prompt": ""}),
    (COMMENT, {"units": []}),
    (COMMENT, {"answers": 0}),
    (COMMENT, {"conversation": ""}),
    (MARK, {"conversation": ""}),
    (SETTING, {"before": ""}),
    (SETTING, {"after": ""}),
]


@pytest.mark.parametrize(
    ("record", "stated"),
    STATED_DEFAULTS,
    ids=[f"{name}={value}" for _, d in STATED_DEFAULTS for name, value in d.items()],
)
def test_an_explicit_default_is_refused(record: Record, stated: dict[str, Any]) -> None:
    absent = [name for name in stated if name in decode(encode_record(record, None))]
    assert decode_record(encode_with(record, *absent))
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(record, **stated))


WRONG_OTHERS: dict[str, tuple[Record, dict[str, Any]]] = {
    "an edit in turn -1": (EDIT, {"turn": -1}),
    "a commit that is no hash": (DECISION, {"commit": "HEAD"}),
    "a commit in capitals": (DECISION, {"commit": "ABCDEF"}),
    "a commit that is too long": (DECISION, {"commit": "a" * 65}),
    "turn 0": (TURN, {"number": 0}),
    "a prompt that is too long": (TURN, {"prompt": "x" * 65_537}),
    "comment 0": (COMMENT, {"number": 0}),
    "a comment that answers itself": (COMMENT, {"answers": 3}),
    "a line without an offset": (COMMENT, {"first": [7, 1]}),
    "no line": (COMMENT, {"last": []}),
    "a negative line": (COMMENT, {"first": [7, 1, -1]}),
    "lines that descend": (COMMENT, {"lines": [5, 4]}),
    "one line number": (COMMENT, {"lines": [5]}),
    "units that descend": (COMMENT, {"units": [[7, 1], [7, 0]]}),
    "a unit twice": (COMMENT, {"units": [[7, 1], [7, 1]]}),
    "half a unit": (COMMENT, {"units": [[7]]}),
    "a path that climbs": (COMMENT, {"path": b"../a"}),
    "a mark of no comment": (MARK, {"comments": []}),
    "marks that descend": (MARK, {"comments": [3, 1]}),
    "a mark of comment 0": (MARK, {"comments": [0, 1]}),
    "an unknown state": (MARK, {"state": "lost"}),
    "a setting that is a number": (SETTING, {"after": 1}),
}


@pytest.mark.parametrize(("record", "changed"), WRONG_OTHERS.values(), ids=WRONG_OTHERS.keys())
def test_a_record_of_version_2_with_an_impossible_field_is_refused(record: Record, changed: dict[str, Any]) -> None:
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(record, **changed))


WRONG_EDITS: dict[str, dict[str, Any]] = {
    "a path that begins at the root": {"path": b"/etc/passwd"},
    "a path that climbs": {"path": b"a/../b"},
    "a path with a dot": {"path": b"./a"},
    "a path that ends in a slash": {"path": b"a/"},
    "a path with two slashes": {"path": b"a//b"},
    "a path with a NUL": {"path": b"a\0b"},
    "an empty path": {"path": b""},
    "a path without an end": {"path": b"a" * 65_537},
    "a path that is text": {"path": "a"},
    "a source that climbs": {"operation": "move", "source": b"../a"},
    "a move from nowhere": {"operation": "move"},
    "an edit from somewhere": {"source": b"b"},
    "an unknown operation": {"operation": "rename"},
    "an unknown status": {"status": "maybe"},
    "an unknown origin": {"origin": "moon"},
    "a blob that is too short": {"before": [b"\x11" * 31, 0o644]},
    "a state without a mode": {"before": [b"\x11" * 32]},
    "a mode with more than permissions": {"before": [b"\x11" * 32, 0o10000]},
    "a mode that is a truth": {"before": [b"\x11" * 32, True]},
    "a create of what exists": {"operation": "create"},
    "a delete of what stays": {"operation": "delete"},
    "half a hunk": {"hunks": [1, 2]},
    "a hunk that changes nothing": {"hunks": [1, 0, 1, 0]},
    "hunks that overlap": {"hunks": [0, 4, 0, 4, 2, 1, 2, 1]},
    "hunks that descend": {"hunks": [9, 1, 9, 1, 2, 1, 2, 1]},
    "a hunk at a negative line": {"hunks": [-1, 1, 0, 1]},
    "one count of lines": {"lines": [1]},
    "three counts of lines": {"lines": [1, 2, 3]},
    "an amendment by a tool": {"amends": 1},
    "an amendment of itself": {"amends": 7, "origin": "person"},
    "an amendment of edit 0": {"amends": 0, "origin": "person"},
    "markers of decision 0": {"marks": [0, [], []], "origin": "person"},
    "markers of a truth": {"marks": [True, [], []], "origin": "person"},
    "markers of nothing": {"marks": [], "origin": "person"},
    "half a hunk between markers": {"marks": [1, [[1]], []], "origin": "person"},
    "a hunk between markers that was nothing before": {"marks": [1, [], [[1, 1]]], "origin": "person"},
    "markers by a tool": {"marks": [1, [], []]},
    "more folders made than there are": {"folders": 2},
    "a document from the future": {"document": 8},
    "edit 0": {"seq": 0},
    "a note that is a number": {"notes": {"model": 1}},
    "notes without names": {"notes": ["model"]},
    "a text without an end": {"tool": "x" * 65_537},
    "a previous record of a wrong length": {"previous": b"\x11" * 31},
    "an unknown kind": {"kind": "rumour"},
}


@pytest.mark.parametrize("changed", WRONG_EDITS.values(), ids=WRONG_EDITS.keys())
def test_an_edit_with_an_impossible_field_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(EDIT, **changed))


def test_a_create_or_delete_has_no_hunks() -> None:
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(EDIT, "before", operation="create", hunks=[0, 0, 0, 1]))


WRONG_DECISIONS: dict[str, dict[str, Any]] = {
    "a verdict on nothing": {"verdicts": [[7, 0]]},
    "a verdict that is true": {"verdicts": [[True, 0, "rejected"]]},
    "an unknown verdict": {"verdicts": [[7, 0, "hung"]]},
    "a verdict on a negative hunk": {"verdicts": [[7, -1, "rejected"]]},
    "an unknown action": {"action": "shrug"},
    "decision 0": {"number": 0},
    "a path before without a state": {"written": [{"document": 1, "path_before": b"a"}]},
    "a state after without a path": {"written": [{"document": 1, "after": [b"\x11" * 32, 1]}]},
    "a path that climbs": {"written": [{"document": 1, "path_after": b"..", "after": [b"\x11" * 32, 1]}]},
    "a field too many": {"written": [{"document": 1, "colour": 1}]},
    "a file that is a number": {"written": [1]},
}


@pytest.mark.parametrize("changed", WRONG_DECISIONS.values(), ids=WRONG_DECISIONS.keys())
def test_a_decision_with_an_impossible_field_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(RecordInvalid):
        decode_record(encode_with(DECISION, **changed))


# ---- what must never be written


UNREADABLE: dict[str, Record] = {
    "a text without an end": replace(EDIT, notes={"prompt": "x" * 65_537}),
    "a reason without an end": replace(DECISION, reason="x" * 65_537),
    "a text with a lone surrogate": replace(EDIT, conversation="\ud800"),
    "a path that climbs": replace(EDIT, path=b"../a"),
    "a number that is too large": replace(EDIT, time=2**63),
    "a number that has no encoding": replace(EDIT, time=2**64),
    "a negative number": replace(VOID, decision=-1),
    "a create of what exists": replace(EDIT, operation=Operation.CREATE),
}


@pytest.mark.parametrize("record", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_record_that_could_not_be_read_is_not_written(record: Record) -> None:
    with pytest.raises(RecordInvalid):
        encode_record(record, None)


WILD_NUMBERS = st.sampled_from([-1, 0, 1, 7, 2**63 - 1, 2**63, True, "7", b"7"])
WILD_TEXTS = st.sampled_from(["", "x" * 65_536, "x" * 65_537, "\ud800", b"x", 7])
WILD_STATES = st.one_of(
    st.none(),
    st.builds(
        FileState,
        blob=st.sampled_from([b"\x11" * 32, b"\x11" * 31, "x" * 32]),
        mode=st.sampled_from([-1, 0, 0o7777, 0o10000]),
    ),
)
WILD_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "seq": WILD_NUMBERS,
    "document": WILD_NUMBERS,
    "call": WILD_NUMBERS,
    "folders": WILD_NUMBERS,
    "added": WILD_NUMBERS,
    "turn": WILD_NUMBERS,
    "amends": st.one_of(st.none(), WILD_NUMBERS),
    "conversation": WILD_TEXTS,
    "tool": WILD_TEXTS,
    "notes": st.dictionaries(WILD_TEXTS, WILD_TEXTS, max_size=2),
    "path": st.sampled_from([b"a", b"", b"../a", b"a//b", b"a\0", b"a" * 65_536, b"a" * 65_537, "a"]),
    "before": WILD_STATES,
    "after": WILD_STATES,
    "hunks": st.lists(st.tuples(*[WILD_NUMBERS] * 4).map(lambda four: Hunk(*four)), max_size=2).map(tuple),
}


@given(st.sampled_from(list(WILD_FIELDS)).flatmap(lambda name: st.tuples(st.just(name), WILD_FIELDS[name])))
def test_an_edit_is_refused_or_read_as_it_was_written(changed: tuple[str, Any]) -> None:
    edit = replace(EDIT, **dict([changed]))
    try:
        encoded = encode_record(edit, None)
    except (RecordInvalid, TypeError):  # a TypeError is the caller's mistake, and nothing is written either
        return
    assert decode_record(encoded)[0] == edit


@pytest.mark.parametrize("record", [replace(EDIT, notes=MappingProxyType({"model": "m"}))])
def test_notes_may_be_any_mapping(record: Edit) -> None:
    read, _ = decode_record(encode_record(record, None))
    assert isinstance(read, Edit)
    assert dict(read.notes) == dict(record.notes)


def test_texts_are_measured_in_characters_and_paths_in_bytes() -> None:
    longest = replace(EDIT, tool="\U0001f600" * 65_536, path=b"a" * 65_536)
    assert decode_record(encode_record(longest, None))[0] == longest
