"""The bookmark: which hunks a reviewer has put off, kept from one pass to the next.

It is the reviewer's own and no part of the history, so it lies in the person's state folder, one file a workspace.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["SkippedHunks"]

_MOST_BYTES: Final = 4 << 20


class SkippedHunks:
    """The hunks that were put off, by the id of their edit."""

    def __init__(self, root: str) -> None:
        """Take up what was kept for the workspace at `root`; what can't be understood counts as nothing."""
        named = os.environ.get("XDG_STATE_HOME")
        state = Path(named) if named else Path("~/.local/state").expanduser()
        name = sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Final = state / "editledger" / "review" / f"{name}.json"
        self._skipped = self._taken_up()

    def is_skipped(self, edit: bytes, hunk: int) -> bool:
        """Return whether the hunk was put off."""
        return hunk in self._skipped.get(edit.hex(), ())

    def skip(self, edit: bytes, hunks: set[int]) -> None:
        """Put hunks off. Raises OSError where that can't be kept."""
        self._skipped.setdefault(edit.hex(), set()).update(hunks)
        self._keep()

    def decided(self, edit: bytes, hunks: set[int]) -> None:
        """Forget hunks. Raises OSError as `skip` does."""
        kept = self._skipped.get(edit.hex(), set())
        if not kept.isdisjoint(hunks):
            kept -= hunks
            self._keep()

    # ---- inside

    def _taken_up(self) -> dict[str, set[int]]:
        try:
            if self._path.stat().st_size > _MOST_BYTES:
                return {}
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        skipped = kept.get("skipped") if isinstance(kept, dict) else None
        if not isinstance(skipped, dict):
            return {}
        return {
            edit: {hunk for hunk in hunks if isinstance(hunk, int)}
            for edit, hunks in skipped.items()
            if isinstance(hunks, list)
        }

    def _keep(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = {"skipped": {edit: sorted(hunks) for edit, hunks in sorted(self._skipped.items()) if hunks}}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(kept))
        fresh.replace(self._path)
