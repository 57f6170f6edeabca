"""The parts of the model of random histories: files, lineages, decisions, and changes to be made."""

from collections.abc import Callable
from dataclasses import dataclass, field

from objstore import Call, EditView, FileExists, FileMissing, Hunk, Operation, Status, Unit, split_lines

__all__ = ["Document", "ExpectedDecision", "ExpectedFile", "ModelStep"]


@dataclass(frozen=True)
class ExpectedFile:
    """The file that is at a path."""

    content: bytes
    mode: int


@dataclass
class Document:
    """What the model knows of one lineage."""

    base_path: str
    base: ExpectedFile | None
    path: str
    recorded: ExpectedFile | None  # as the journal last says
    edits: list[EditView] = field(default_factory=list)
    straight: bool = True  # every edit was recorded while all before it were live
    recorded_at: dict[int, int] = field(default_factory=dict)  # which event of the history each edit was
    flipped_at: dict[int, int] = field(default_factory=dict)  # the last event that took it out of the text or back

    def units(self) -> list[Unit]:
        return [Unit(view.seq, hunk) for view in self.edits for hunk in range(len(view.units))]

    def span(self) -> tuple[int, int]:
        """Return the first and the last edit (0: there is none)."""
        return (self.edits[0].seq, self.edits[-1].seq) if self.edits else (0, 0)

    def eligible(self, is_free: Callable[[EditView], bool]) -> list[EditView]:
        """Return the edits that may expire: free, and not taken out or back after the next one was recorded."""
        longest = 0
        for count in range(1, len(self.edits) + 1):
            if not is_free(self.edits[count - 1]):
                break
            following = self.recorded_at[self.edits[count].seq] if count < len(self.edits) else None
            last = max(self.flipped_at.get(view.seq, 0) for view in self.edits[:count])
            if following is None or last < following:
                longest = count
        return self.edits[:longest]


@dataclass(frozen=True)
class ExpectedDecision:
    """A decision that was made."""

    number: int
    before: dict[Unit, Status]  # what was said, before it, of the units that it changed
    after: dict[Unit, Status]


class ModelStep:
    """One change in a call: what is asked for, and what the model expects."""

    def __init__(
        self, kind: str, path: str, other: str, content: bytes, mode: int | None, cut: tuple[int, int]
    ) -> None:
        self.kind = kind
        self.path = path
        self.other = other
        self.content = content
        self.mode = mode
        self.cut = cut

    def __repr__(self) -> str:
        return f"{self.kind} {self.path} {self.other} {self.content!r} {self.mode} {self.cut}"

    def apply(self, call: Call, files: dict[str, ExpectedFile]) -> None:
        """Do it, and do it to the model's files."""
        now = files.get(self.path)
        assert call.exists(self.path) is (now is not None)
        match self.kind:
            case "write":
                call.write(self.path, self.content, mode=self.mode)
                mode = self.mode if self.mode is not None else 0o644 if now is None else now.mode
                files[self.path] = ExpectedFile(self.content, mode)
            case "edit" if now is not None:
                # Lines from `cut` on give way to others, and the tool says exactly which.
                old = split_lines(now.content)
                start = min(self.cut[0], len(old))
                count = min(self.cut[1], len(old) - start)
                new = split_lines(self.content)
                if new and not new[-1].endswith(b"\n") and start + count < len(old):
                    new[-1] += b"\n"
                if new and start == len(old) and old and not old[-1].endswith(b"\n"):
                    return
                after = b"".join([*old[:start], *new, *old[start + count :]])
                hunks = [Hunk(start, count, start, len(new))] if new or count else []
                call.write(self.path, after, hunks=hunks, operation=Operation.EDIT)
                files[self.path] = ExpectedFile(after, now.mode)
            case "delete":
                self.expect(FileMissing, now is None, lambda: call.delete(self.path))
                files.pop(self.path, None)
            case "move":
                taken = self.other in files
                error = FileMissing if now is None else FileExists
                self.expect(error, now is None or taken, lambda: call.move(self.path, self.other))
                if now is not None and not taken:
                    files[self.other] = files.pop(self.path)
            case _:
                pass  # looking was all

    @staticmethod
    def expect(error: type[Exception], wanted: bool, change: Callable[[], None]) -> None:  # noqa: FBT001 - what is expected, with the error that shows it
        try:
            change()
        except error:
            assert wanted
        else:
            assert not wanted
