"""Remember which hunks a reviewer has skipped, from one review to the next.

They are the reviewer's own and not part of the history, so they are saved in the user's state folder, one file for each
workspace.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["SkippedHunks"]

_MOST_BYTES: Final = 4 << 20


class SkippedHunks:
    """The skipped hunks, by the id of their edit."""

    def __init__(self, root: str) -> None:
        """Load the skipped hunks of the workspace at `root`; a file that can't be parsed counts as empty."""
        named = os.environ.get("XDG_STATE_HOME")
        state = Path(named) if named else Path("~/.local/state").expanduser()
        name = sha256(os.fsencode(root)).hexdigest()[:32]
        self._path: Final = state / "editledger" / "review" / f"{name}.json"
        self._skipped = self._taken_up()

    def is_skipped(self, edit: bytes, hunk: int) -> bool:
        """Return whether the hunk was skipped."""
        return hunk in self._skipped.get(edit.hex(), ())

    def skip(self, edit: bytes, hunks: set[int]) -> None:
        """Note skipped hunks. Raises OSError if they can't be saved."""
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
