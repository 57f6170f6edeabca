"""Test the files of a folder when some of the edits are rejected, as pictures.

A history is a row of steps, apart by `;`:

    a=p q    the agent writes the lines p and q (of one word each) to the file a; a=' writes no line at all
    b: a=p   the same, in conversation b
    a>b      it moves a to b
    -a       it deletes a
    a*       it makes a executable
    x, y     both in one call, as edits of their own
    ~a=p     a person writes to a, without recording it; ~-a: a person deletes it
    !2 3     a reviewer rejects the edits 2 and 3; ^2 accepts 2 again
    !!2      rejects 2 and what needs it
    <        and takes the last decision back; > takes it again

Edits are counted from 1; an unrecorded change counts when it is found. A folder is drawn as its files, an
executable one with a `*`, an empty folder with a `/` at its end. A refusal reads `C: 3 needs 2`, and changes nothing.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from pathlib import Path
from typing import Final

import pytest

from objstore import (
    Action,
    Call,
    CallInfo,
    Conflicted,
    Decided,
    DecisionOutcome,
    Hunk,
    OnExternal,
    Origin,
    Unit,
)
from tests.support.scene import Scene

BINARY: Final = b"\0one\n\0\n"
EVERY_ORDER: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"  # as in `make laws`


def text(words: str) -> bytes:
    return b"" if words == "'" else b"".join(word.encode() + b"\n" for word in words.split())


def picture(scene: Scene) -> str:
    drawn = []
    for path, look in sorted(scene.files().items()):
        if look.kind == stat.S_IFREG:
            words = look.content.decode().split() or ["'"]
            drawn.append(f"{path}{'*' if look.mode & 0o100 else ''}={' '.join(words)}")
        elif not any((scene.root / path).iterdir()):
            drawn.append(f"{path}/")
    return "; ".join(drawn)


def change(call: Call, step: str) -> None:
    match step.partition(">"), step.partition("="):
        case (source, ">", destination), _:
            call.move(source, destination)
        case _, (path, "=", words):
            call.write(path, text(words))
        case _ if step.startswith("-"):
            call.delete(step[1:])
        case _:
            path = step.removesuffix("*")
            call.write(path, call.read(path).bytes, mode=0o755)


def change_externally(root: Path, step: str) -> None:
    path, _, words = step.partition("=")
    if path.startswith("-"):
        (root / path[1:]).unlink()
    else:
        (root / path).write_bytes(text(words))


def picture_after_decision(scene: Scene, action: Action, names: str) -> str:
    """Make a decision that keeps external changes; return the picture or the refusal."""
    before = scene.everything()
    cascade = names.startswith("!")
    outcome = scene.decide(action, *names.lstrip("!").split(), on_external=OnExternal.KEEP, cascade=cascade)
    if isinstance(outcome, Conflicted):
        assert scene.everything() == before
        shown_needs = {f"{c.unit.seq} needs {need.seq}" for c in outcome.conflicts for need in c.needs}
        return "C: " + ", ".join(sorted(shown_needs))
    assert isinstance(outcome, Decided), outcome
    return picture(scene)


def picture_after(scene: Scene, history: str) -> str:
    """Run a history; return the last picture, or the refusal of the last step."""
    shown = ""
    for step in map(str.strip, history.split(";")):
        if step.startswith("~"):
            change_externally(scene.root, step[1:])
        elif step.startswith(("!", "^")):
            shown = picture_after_decision(scene, Action.REJECT if step[0] == "!" else Action.ACCEPT, step[1:])
        elif step in {"<", ">"}:
            stepped: DecisionOutcome = scene.workspace.review.undo() if step == "<" else scene.workspace.review.redo()
            assert isinstance(stepped, Decided)
            shown = ""
        else:
            conversation, _, changes = step.rpartition(": ")
            with scene.workspace.call(CallInfo(tool="test", conversation=conversation or "a")) as call:
                for each in changes.split(", "):
                    change(call, each)
                call.commit()
            shown = ""
    return shown or picture(scene)


# ---- files as a whole

FILES = [
    # creation and deletion
    ("a=p; !1", ""),
    ("a=p; !1; ^1", "a=p"),
    ("a='; !1; ^1", "a='"),
    ("a=p; -a; !2", "a=p"),
    ("a=p; -a; !1", ""),
    ("a=p; -a; !1 2", ""),
    ("a=p; -a; !1 2; ^1", "a=p"),
    # deleted and created again: one lineage
    ("a=p; -a; a=q; !3", ""),
    ("a=p; -a; a=q; !2", "C: 3 needs 2"),
    ("a=p; -a; a=q; !2 3", "a=p"),
    ("a=p; -a; a=q; !1", "a=q"),
    ("a=p; -a; a=p; !2", "a=p"),
    ("a=p; -a; a=q; -a; !4; !3", ""),
    ("a=p; -a; a=q; -a; !2 3 4", "a=p"),
    # replaced as a whole, and in part
    ("a=p q; a=r s; !2", "a=p q"),
    ("a=p q; a=r s; a=r S; !2", "C: 3 needs 2"),
    ("a=p q; a=r s; a=r S; !2 3; ^2", "a=r s"),
    ("a=p q; a='; !2", "a=p q"),
    # permission bits
    ("a=p; a*; !2", "a=p"),
    ("a=p; a*; a=q; !2", "a=q"),
    ("a=p; a*; a=q; !3", "a*=p"),
    ("a=p; a*; -a; !3", "a*=p"),
    ("a=p; a*; -a; !2 3", "a=p"),
    ("a=p; a*; a>b; !3", "a*=p"),
    ("a=p; a>b; b*; !2", "a*=p"),
    # moves, chains of moves, and edits about them
    ("a=p; a>b; !2", "a=p"),
    ("a=p; a>b; !1", "C: 2 needs 1"),
    ("a=p; a>b; !1 2", ""),
    # what says something of a file needs the file, as what changes a line needs the line
    ("a=p; a*; !1", "C: 2 needs 1"),
    ("a=p; a*; a>b; !1", "C: 2 needs 1, 3 needs 1"),
    ("a=p; a>b; b>c; !1", "C: 2 needs 1, 3 needs 1"),
    ("a=p; a>b; -b; !1", "C: 2 needs 1"),
    ("a=p; a>b; !2; a*; !1", "C: 3 needs 1"),
    ("a=p; a>b; !2; !1; ^1 2", "b=p"),
    ("a=p; a>b; !2; !1; ^2", "C: 2 needs 1"),
    ("a=p; -a; a=q; a>b; !3", "C: 4 needs 3"),
    ("a=p; -a; a=q; a>b; !2 3", "b=p"),
    ("a=p; -a; a=p; a>b; !2", "b=p"),
    ("a=p; -a; a=p; a>b; !3", "C: 4 needs 3"),
    ("a=p; -a; !2; a>b; ^2", "C: 3 needs 2"),
    ("a=p; a>b; !2; -a; ^2", "C: 2 needs 3"),
    ("a=p; a>b; !2; -a; !3; -a; ^2", "C: 2 needs 4"),
    ("a=p; a>b; -b; !3; !2; ^3", ""),
    ("~a=p; a=q; a>b; !1", "b=p"),
    ("a=p; a>b; b>c; !2", "c=p"),
    ("a=p; a>b; b>c; !3", "b=p"),
    ("a=p; a>b; b>c; !2 3", "a=p"),
    ("a=p; a>b; b>c; !2 3; ^2", "b=p"),
    ("a=p; a>b; b>c; !2 3; ^3", "c=p"),
    ("a=p; a>b; b>a; !3", "b=p"),
    ("a=p; a>b; b>a; !2", "a=p"),
    ("a=p q r; a=P q r; a>b; b=P q R; !2", "b=p q R"),
    ("a=p q r; a=P q r; a>b; b=P q R; !3", "a=P q R"),
    ("a=p q r; a=P q r; a>b; b=P q R; !4; !2; !3", "a=p q r"),
    ("a=p q r; a=P q r; a>b; b=P q R; !3; ^3", "b=P q R"),
    ("a=p q r; a>b; b=p Q r; b>c; !2 4", "a=p Q r"),
    ("a=p; a>b; -b; !2", ""),
    ("a=p; a>b; -b; !2 3", "a=p"),
    ("a=p; a>b; -b; !3", "b=p"),
    # the last word on whether there is a file holds
    ("a=p; -a; a=q; -a; !3", ""),
    ("a=p; -a; a=q; -a; !2", "C: 3 needs 2, 4 needs 2"),
    ("a=p; -a; a=q; -a; !2 3", "C: 4 needs 2"),
    ("a=p; -a; a=q; -a; !2 3 4", "a=p"),
    ("a=p; -a; a=q; -a; !!2 3", "a=p"),
    ("a=p; -a; a=p; -a; !2 3", ""),
    ("a=p; !1; a=q; -a; !2; ^1", "C: 3 needs 1"),
    # what a live edit deleted does not come back from under it
    ("a=p q; a=P q; a=PP q; b: a=q; !3", "C: 4 needs 3"),
    ("a=p q; a=P q; a=PP q; b: a=q; !2 3", "C: 4 needs 3"),
    ("a=p q; a=P q; a=PP q; b: a=q; !!2", "a=p q"),
    ("a=p q; a=q; a=p q; b: a=q; !2 3", "a=q"),
    ("a=p q; a=P q; a=p q; b: a=q; !2 3", "a=q"),
    # and what one put back does not go
    ("a=o v; a=o v m; a=o v w; b: a=o v m; !2 3", "C: 4 needs 3"),
    ("a=o v; a=o v m; a=o v; b: a=o v m; !2 3", "a=o v m"),
    # names that are used again
    ("a=x; a>b; a=y; !2", "C: 1 needs 3"),
    ("a=x; a>b; a=y; !3", "b=x"),
    ("a=x; a>b; a=y; !2 3", "a=x"),
    ("a=x; a>b; a=y; !1", "C: 2 needs 1"),
    ("a=x; a>b; a=y; !1 2", "a=y"),
    ("a=x; -a; b=y; b>a; !4", "b=y"),
    ("a=x; -a; b=y; b>a; !2", "C: 1 needs 4"),
    ("a=x; -a; b=y; b>a; !2 4", "a=x; b=y"),
    ("a=x; -a; b=y; b>a; !3", "C: 4 needs 3"),
    ("a=x; -a; b=y; b>a; !3 4", ""),
    ("a=x; b=y; a>c; b>a; c>b; !5", "a=y; c=x"),
    ("a=x; b=y; a>c; !3; b>c; !4; ^3 4", "C: 4 needs 3"),
    ("a=x; b=y; a>c; !3; b>c/d; !4; ^3 4", "C: 4 needs 3"),
    ("a=x; a>b; a=y; a>c; a=z; !5", "b=x; c=y"),
    ("a=x; a>b; a=y; a>c; a=z; !4 5", "a=y; b=x"),
    # two files trade places
    ("a=x; b=y; a>t, b>a, t>b; !3 4 5", "a=x; b=y"),
    ("a=x; b=y; a>t, b>a, t>b; !5", "a=y; t=x"),
    ("a=x; b=y; a>t, b>a, t>b; !4", "C: 2 needs 5"),
    ("a=x; b=y; a>t, b>a, t>b; !3 4 5; ^5 4 3", "a=y; b=x"),
    ("a=x; b=y; a>t, b>a, t>b; a=Y; !3 4 5", "a=x; b=Y"),
    ("a=x; b=y; c=z; a>t, b>a, c>b, t>c; !4 5 6 7", "a=x; b=y; c=z"),
    # folders that become empty, or are needed again
    ("d/e/f=x; !1", ""),
    ("d/e/f=x; !1; ^1", "d/e/f=x"),
    ("d/f=x; d/g=y; !1", "d/g=y"),
    ("d/f=x; d/g=y; !1 2", ""),
    ("d/f=x; d/f>e/f; !2", "d/f=x"),
    ("d/f=x; d/f>g; !2; ^2", "g=x"),
    ("d/f=x; d/f>e/g/f; !2; ^2", "e/g/f=x"),
    ("d/f=x; d/g=y; d/f>e/f; d/g>e/g; !3", "d/f=x; e/g=y"),
    ("d/f=x; d/g=y; d/f>e/f; d/g>e/g; !3 4", "d/f=x; d/g=y"),
    ("d/f=x; d/f>g; d/f=y; !2", "C: 1 needs 3"),
    ("d/f=x; d/f>g; d/f=y; !3; !2", "d/f=x"),
    # and of a folder that an edit made nothing stays when the edit goes, whoever emptied it
    ("d/f=x; d/f>e/f; !1 2", ""),
    ("d/f=x y; d/f>e/f; e/f=X y; !1 2 3", ""),
    ("d/f=x y; d/f>e/f; e/f=X y; !1 2 3; ^1 2 3", "e/f=X y"),
    ("d/f=x; d/g=y; d/f>e/f; d/g>e/g; !1 3", "e/g=y"),
    ("d/f=x; -d/f; !1 2", ""),
]

# Chains of moves, swaps, and modes, across edits of the text.
CHAINS = [
    ("a=p q r; a=P q r; a>b; b=P Q r; b>c; c=PP Q r; !2", "C: 6 needs 2"),
    ("a=p q r; a=P q r; a>b; b=P Q r; b>c; c=PP Q r; !2 6", "c=p Q r"),
    ("a=p q r; a=P q r; a>b; b=P Q r; b>c; c=PP Q r; !3 5; !4", "a=PP q r"),
    ("a=p q r; a=P q r; a>b; b=P Q r; b>c; c=PP Q r; !3 5; !4; ^5", "c=PP q r"),
    ("a=p q; a>b; b=P q; b>a; a=P Q; !2 4", "a=P Q"),
    ("a=p q; a>b; b=P q; b>a; a=P Q; !3", "a=p Q"),
    ("a=p q; a>b; b=P q; b>a; a=P Q; !4", "b=P Q"),
    # two files trade places, and are edited before and after
    ("a=x y; b=m n; a>t, b>a, t>b; a=M n; b=X y; !3 4 5", "a=X y; b=M n"),
    ("a=x y; b=m n; a>t, b>a, t>b; a=M n; b=X y; !3 4 5; !6", "a=X y; b=m n"),
    ("a=x y; b=m n; a>t, b>a, t>b; a=M n; a=MM n; !6", "C: 7 needs 6"),
    ("a=x y; b=m n; a>t, b>a, t>b; a=M n; a=MM n; !3 4 5; !6 7", "a=x y; b=m n"),
    ("a=x y; b=m n; a=X y; a>t, b>a, t>b; b=XX y; !3", "C: 7 needs 3"),
    ("a=x y; b=m n; a=X y; a>t, b>a, t>b; b=XX y; !3 7; !4 5 6; ^4 5 6 3 7", "a=m n; b=XX y"),
    ("a=x y; b=m n; c: a=X y; d: b=M n; c: a>t, b>a, t>b; !3; ^3; !4", "a=m n; b=X y"),
    # twice
    ("a=x; b=y; a>t, b>a, t>b; a>u, b>a, u>b; !3 4 5", "a=x; b=y"),
    ("a=x; b=y; a>t, b>a, t>b; a>u, b>a, u>b; !6 7 8", "a=y; b=x"),
    ("a=x; b=y; a>t, b>a, t>b; a>u, b>a, u>b; !3 4 5 6 7 8", "a=x; b=y"),
    # modes
    ("a=p; a*; a=q; a>b; b=r; !2", "b=r"),
    ("a=p; a*; a=q; a>b; b=r; !2; !3", "C: 5 needs 3"),
    ("a=p; a*; a>b; !2; ^2; !3", "a*=p"),
    ("a=p; a*; -a; a=n; !2", "a=n"),
    ("a=p; a*; -a; a=n; !2 3 4", "a=p"),
    ("a=p; a*; -a; a=n; !3 4", "a*=p"),
    ("a=p; a*; -a; a=p; !3", "a=p"),
    ("a=p; a*; -a; a=p; !3; ^3; !4", ""),
    ("a=p q; b: a*; ~a=p Q; !2", "a=p Q"),
    # whoever deletes a file knows who moved it, though whoever made the file that was moved is rejected
    ("a=p; -a; a=n; a>b; !2 3; -b; !5; ^5", ""),
    ("a=p; -a; a=n; a>b; !2 3; -b; !5; !4", "a=p"),
    ("a=p; -a; a=n; a*; !2 3; -a; !5; ^5", ""),
    ("a=p; -a; a=n; a*; !2 3; -a; !4 5; ^5; ^4", ""),
    # the mode of a file that goes with the last of its lines goes too
    ("a=p q; a*; a=P q; !!1", ""),
    ("a=p q; a*; a=P q; !!1; <", "a*=P q"),
    ("a=p q; a*; a=P q; !!1; a=n", "a=n"),
    ("a=p q; a*; a=P q; !!1; a=n; !4", ""),
]


@pytest.mark.parametrize(("history", "expected"), CHAINS, ids=[history for history, _ in CHAINS])
def test_moves_swaps_and_modes_across_edits(scene: Scene, history: str, expected: str) -> None:
    assert picture_after(scene, history) == expected
    assert scene.external() == {}


@pytest.mark.parametrize(("history", "expected"), FILES, ids=[history for history, _ in FILES])
def test_creation_deletion_and_mode_are_decided_for_whole_files(scene: Scene, history: str, expected: str) -> None:
    assert picture_after(scene, history) == expected
    assert scene.external() == {}


# What is there after the steps before the first decision; nothing but these edits may be named below.
TOGGLED = [
    "a=p q r; a=P q r; a>b; b=P q R",
    "a=p; a>b; b>c",
    "a=p; -a; a=q; a*",
    "a=x; b=y; a>t, b>a, t>b",
    "a=x; -a; b=y; b>a",
    "d/e/f=x; d/e/f>d/e/g; d/e/g=y; d/e/g*",
    "a=p q; b: a=P q; c: a=P Q; b: a>b",
]


def orders(edits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield orders of which each set of the edits is the beginning of one; with the profile `long` every order."""
    taken: set[frozenset[int]] = set()
    for order in permutations(edits):
        beginnings = {frozenset(order[: at + 1]) for at in range(len(order))}
        if EVERY_ORDER or not beginnings <= taken:
            yield order
        taken |= beginnings


@pytest.mark.parametrize("history", TOGGLED)
def test_the_folder_depends_on_what_is_live_and_not_on_the_order_of_decisions(scene: Scene, history: str) -> None:
    """Every set of live edits is drawn the same, whichever way leads there; a sample, and with `long` all of them."""
    last = picture_after(scene, history)
    edits = sorted(scene.statuses())
    drawn = {frozenset[int](): last}
    for order in islice(orders(edits), 0, None, 1 if EVERY_ORDER else 2):
        gone: frozenset[int] = frozenset()
        for seq in order:
            shown = picture_after_decision(scene, Action.REJECT, str(seq))
            if not shown.startswith("C:"):
                gone |= {seq}
                assert drawn.setdefault(gone, shown) == shown
        for seq in order[::-1]:
            if seq in gone and not (shown := picture_after_decision(scene, Action.ACCEPT, str(seq))).startswith("C:"):
                gone -= {seq}
                assert drawn.setdefault(gone, shown) == shown
        if gone:
            assert picture_after_decision(scene, Action.ACCEPT, " ".join(map(str, gone))) == last
    assert scene.external() == {}


# ---- several conversations and people on one file

TOGETHER = [
    # each goes on while another is pending, rejected, or back again
    ("a=p q r; b: a=P q r; c: a=P q R; !2", "a=p q R"),
    ("a=p q r; b: a=P q r; c: a=P q R; !3; b: a=P Q r; !2", "a=p Q r"),
    ("a=p q r; b: a=P q r; !2; c: a=p q R; ^2", "a=P q R"),
    ("a=p q r; b: a=P q r; !2; c: a=p q R; b: a=p Q R; ^2", "a=P Q R"),
    ("a=p q r; b: a=P q r; !2; c: a=X q r; ^2", "C: 2 needs 3, 3 needs 2"),
    ("a=p q r; b: a=P q r; !2; c: a=X q r; !3; ^2", "a=P q r"),
    ("a=p q r; b: a=P q r; !2; c: a=X q r; !3; ^2; ^3", "C: 2 needs 3, 3 needs 2"),
    # what one inserted while another's insertion was away is next to it when it returns
    ("a=p q; b: a=p B q; !2; c: a=p q C; ^2", "a=p B q C"),
    ("a=p q; b: a=p B C q; !2; c: a=p q D; ^2; c: a=p B X C q D; !2", "C: 4 needs 2"),
    ("a=p q; b: a=p B q; !2; c: a=p C q; ^2", "C: 3 needs 2"),
    # a deletion that was away: the text inside it has been worked on
    ("a=p x y q; b: a=p q; !2; c: a=p x Y q; ^2", "C: 3 needs 2"),
    ("a=p x y q; b: a=p q; !2; c: a=p x y q C; ^2", "a=p q C"),
    # files come and go meanwhile
    ("a=p q; b: a>b; !2; c: a=p Q; ^2", "b=p Q"),
    ("a=p q; b: a>b; c: b=p Q; !2", "a=p Q"),
    ("a=p q; b: -a; !2; c: a=p Q; ^2", "C: 2 needs 3, 3 needs 2"),
    ("a=p q; b: -a; c: a=n; !2 3; c: a=p Q; ^2", "C: 2 needs 4, 4 needs 2"),
    ("a=p; b: a*; !2; c: a=q; ^2", "a*=q"),
    # undo and redo with edits in between
    ("a=p q r; b: a=P q r; !2; c: a=p q R; <", "a=P q R"),
    ("a=p q r; b: a=P q r; !2; c: a=p q R; <; b: a=P Q R; >", "a=p Q R"),
    ("a=p q r; b: a=P q r; c: a=P q R; !2; !3; <; <; >; >", "a=p q r"),
    # what a person wrote in between is kept, in whichever order it is found
    ("a=p q r; b: a=P q r; ~a=P q R; !2", "a=p q R"),
    ("a=p q r; b: a=P q r; ~a=P q R; c: a=P Q R; !2", "a=p Q R"),
    ("a=p q r; b: a=P q r; ~a=P q R; c: a=P Q R; !4; !2", "a=p q R"),
    ("a=p q r; b: a=P q r; !2; ~a=p q R; ^2", "a=P q R"),
    ("a=p q r; b: a=P q r; ~a=X q r; !2", "C: 3 needs 2"),
    ("a=p q r; b: a=P q r; ~a=X q r; c: a=X q R; !2 3", "a=p q R"),
    ("a=p q r; b: a=P Q R; ~a=P X R; !2", "C: 3 needs 2"),
    ("a=p q r s t; b: a=p Q r S t; ~a=p X r S t; !2:2", "a=p X r s t"),
    ("a=p q r s t; b: a=p Q r S t; ~a=p X r S t; !2:1", "C: 3 needs 2"),
    ("a=p q r; b: a=p B C q r; ~a=p B mine C q r; !2", "C: 3 needs 2"),
    ("a=p q r; b: a=p B C q r; ~a=p B C mine q r; !2", "a=p mine q r"),
    ("a=p q; b: a=P q; ~-a; !2", ""),
    ("a=p q; b: a=P q; ~-a; c: a=n; !2", "a=n"),
    ("a=p q; ~a=p q mine; b: a>b; b: b=P q mine; !3", "a=P q mine"),
    ("a=p q; ~a=p mine q; b: a=P mine q; !1", "C: 2 needs 1, 3 needs 1"),
    # four conversations, decided and taken back in any order
    ("a=p q r s; b: a=P q r s; c: a=P Q r s; d: a=P Q R s; !3; !2; ^3; ^2", "a=P Q R s"),
    ("a=p q r s; b: a=P q r s; c: a=P Q r s; d: a=P Q R s; !2 3 4; ^3", "a=p Q r s"),
    ("a=p q r s; b: a=P q r s; c: a=PP q r s; d: a=PPP q r s; !4; !3; d: a=P q R s; ^3", "a=PP q R s"),
    ("a=p q r s; b: a=P q r s; c: a=PP q r s; d: a=PPP q r s; !4; !3; d: a=P q R s; ^3; ^4", "a=PPP q R s"),
    ("a=p q; b: a=p B q; c: a=p B C q; !2; d: a=p D C q; ^2", "C: 4 needs 2"),
    ("a=p q; b: a=p B q; c: a=p B C q; !2; d: a=p C D q; ^2", "a=p B C D q"),
    ("a=p q; b: a=p B q; c: a=p C B q; !2; d: a=p C q E; ^2; !3", "a=p B q E"),
    ("a=p q; b: a=p B q; !2; c: a=p q C; b: a=p q C D; !3; ^2", "a=p B q D"),
    ("a=p q r s t; b: a=p X Y t; c: a=p X Z t; !2; !3; !2", "a=p q r s t"),
    ("a=p q r s t; b: a=p t; c: a=p N t; !2; !3; !2; c: a=p q N r s t; ^2", "C: 2 needs 4, 4 needs 2"),
    ("a='; b: a=p; c: a=p q; !2", "a=q"),
    ("a='; b: a=p; c: a=p q; !2 3; ^3", "a=q"),
    ("a=p; b: a='; c: a=n; !2", "C: 3 needs 2"),
    ("a=p; b: a='; c: a=n; !2 3", "a=p"),
    # moves that were away while others went on
    ("a=p q; b: a>b; c: b=p Q; !2; c: a=P Q; ^2", "b=P Q"),
    ("a=p q; b: a>b; c: b=p Q; !2; b: a>c; ^2", "c=p Q"),
    ("a=p q; b: a>b; c: b=p Q; !2; b: a>c; ^2; !4", "b=p Q"),
    ("a=p q; b: a>b; !2; c: b=new; ^2", "C: 2 needs 3"),
    ("a=p q; b: a>b; !2; c: b=new; ^2; !3; ^2", "b=p q"),
    # deletions that were away, or are gone round
    ("a=p q; b: -a; !2; c: a=p Q; !3; ^2", ""),
    ("a=p q; b: -a; c: a=n m; b: a=n M; !2", "C: 3 needs 2"),
    ("a=p q; b: -a; c: a=n m; b: a=n M; !4; !3; !2", "a=p q"),
    ("a=p q; b: -a; c: a=p q; b: a=p Q; !2", "C: 4 needs 2"),
    ("a=p q; b: -a; c: a=p q; b: a=p Q; !4; !3; !2", "a=p q"),
    # and people as well
    ("a=p q r; ~a=p q R; b: a>b; ~b=P q R; !3", "a=P q R"),
    ("a=p q r; b: a>b; ~b=p Q r; c: b>c; !2", "c=p Q r"),
    ("a=p q r; b: a>b; ~b=p Q r; c: b>c; !4 2", "a=p Q r"),
    ("a=p q; b: a=P q; ~a=P q mine; c: -a; !4", "a=P q mine"),
    ("a=p q; b: a=P q; ~a=P q mine; c: -a; !2", ""),
]


@pytest.mark.parametrize(("history", "expected"), TOGETHER, ids=[history for history, _ in TOGETHER])
def test_several_conversations_and_people_at_once(scene: Scene, history: str, expected: str) -> None:
    assert picture_after(scene, history) == expected
    assert scene.external() == {} or expected.startswith("C:")


# ---- no lines at all


def test_last_live_binary_state_is_shown_completely(scene: Scene) -> None:
    states = [b"\0\n" + bytes([number]) * 5 + b"\n" for number in range(4)]
    one, two, three, four = (scene.write("a", state) for state in states)
    outcome = scene.decide(Action.REJECT, three)
    assert isinstance(outcome, Conflicted)
    assert [(c.unit, c.needs) for c in outcome.conflicts] == [(Unit(four, 1), (Unit(three, 1),))]
    scene.reject(four)
    assert scene.text("a") == states[2]
    scene.reject(three)
    assert scene.text("a") == states[1]
    scene.accept(three)
    scene.accept(four)
    assert scene.text("a") == states[3]
    scene.reject(one, two, three, four)
    assert scene.text("a") is None
    assert [view.edit.origin for view in scene.workspace.history.edits()] == [Origin.AGENT] * 4


def test_binary_content_is_never_mixed_with_lines_written_in_between(scene: Scene) -> None:
    """If both were texts, both could be live: the lines are right next to what was replaced."""
    scene.write("a", b"p\n")
    binary = scene.write("a", BINARY)
    scene.reject(binary)
    line = scene.write("a", b"p\nq\n")
    (conflict,) = scene.refused(Action.ACCEPT, binary)
    assert (conflict.unit, conflict.needs) == (Unit(line, 1), (Unit(binary, 1),))
    assert (conflict.line, conflict.removed, conflict.inserted) == (0, b"", b"")
    outcome = scene.decide(Action.ACCEPT, binary)
    assert isinstance(outcome, Conflicted)
    assert (outcome.accept_first, outcome.reject_first) == ((), (Unit(line, 1),))
    scene.reject(line)
    scene.accept(binary)
    assert scene.text("a") == BINARY
    for named, way_out in (([line], (Unit(binary, 1),)), ([binary, line], ())):
        outcome = scene.decide(Action.ACCEPT, *named)
        assert isinstance(outcome, Conflicted)
        assert (outcome.accept_first, outcome.reject_first) == ((), way_out)
    assert scene.text("a") == BINARY


def test_lines_added_to_a_text_that_replaced_binary_content_need_that_text(scene: Scene) -> None:
    scene.write("a", BINARY)
    text = scene.write("a", b"p\n")
    line = scene.write("a", b"p\nq\n")
    (conflict,) = scene.refused(Action.REJECT, text)
    assert (conflict.unit, conflict.needs) == (Unit(line, 1), (Unit(text, 1),))
    assert scene.reject(text, cascade=True).cascaded == (Unit(line, 1),)
    assert scene.text("a") == BINARY
    scene.accept(text, line)
    assert scene.text("a") == b"p\nq\n"


def test_an_edit_of_known_lines_of_a_binary_file_is_decided_as_one_of_a_text(scene: Scene) -> None:
    scene.write("a", BINARY)
    one = scene.write("a", BINARY + b"more\n", hunks=[Hunk(2, 0, 2, 1)])
    scene.write("a", b"\0ONE\n\0\nmore\n", hunks=[Hunk(0, 1, 0, 1)])
    scene.reject(one)
    assert scene.text("a") == b"\0ONE\n\0\n"
    scene.accept(one)
    assert scene.text("a") == b"\0ONE\n\0\nmore\n"
