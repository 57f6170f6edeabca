"""Export the store or its history, and import the history of another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.workspace.role import Role, uses_index

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from objstore.model.basic_types import Progress, Seq
    from objstore.upkeep.transfer.mcpdiff_export import McpdiffExport
    from objstore.upkeep.transfer.mcpdiff_import import McpdiffImport


__all__ = ["Transfer"]


class Transfer(Role):
    """Export the store or its history, and import the history of another tool."""

    @uses_index
    def export_bundle(self, path: str, progress: Progress | None = None) -> int:
        """Write everything recorded into a new file, for `import_bundle` elsewhere; return its size in bytes.

        Raises FileExists, PathReserved, NotBundled, StoreDamaged and what the disk raises.
        """
        from objstore.upkeep.transfer.import_export import export_bundle

        return export_bundle(self._journal, path, progress)

    @uses_index
    def send_bundle(self, take: Callable[[bytes], None], progress: Progress | None = None) -> None:
        """Pass everything recorded to `take`, piece by piece, in the format of `export_bundle`.

        Raises NotBundled and StoreDamaged.
        """
        from objstore.upkeep.transfer.import_export import send_bundle

        send_bundle(self._journal, take, progress)

    @uses_index
    def send_mcpdiff_history(self, seqs: Sequence[Seq], take: Callable[[str, Iterable[bytes]], None]) -> McpdiffExport:
        """Pass the edits to `take` as the files of mcpdiff's history: logs, diffs and checkpoints.

        `take` gets each file's name, relative to the folder of the history, and its bytes in pieces; the logs come
        last. Raises NoSuchName, PathInvalid if a path is not UTF-8, BlobMissing, BlobDamaged, and what `take` raises.
        """
        from objstore.upkeep.transfer.mcpdiff_export import send_mcpdiff_history

        return send_mcpdiff_history(self._journal, seqs, take)

    def import_mcpdiff_history(
        self, history: str, *, origin: str | None = None, partly: bool = False, dry_run: bool = False
    ) -> McpdiffImport:
        """Record the edits in mcpdiff's history in the folder `history` for this workspace's files; no file is written.

        `origin`: the workspace's path when that history was written (None: its current path). `partly`: import what can
        be imported even if something can't. Its decisions count, so only a person imports it. What is on disk besides
        is the person's, unless an agent's tool runs, which may have made it. Raises AgentDecides, FileMissing,
        HistoryBroken, and what Call.commit raises.
        """
        from objstore.review.calls.open_calls import OpenCalls
        from objstore.review.claim import leave_unattributed
        from objstore.upkeep.transfer.mcpdiff_import import import_mcpdiff_history
        from objstore.values.clock import now

        if not dry_run:
            self.require_person()
        began, is_agent_at_work = now(), bool(OpenCalls(self._journal).calls())
        found = import_mcpdiff_history(self._journal, history, origin=origin, partly=partly, dry_run=dry_run)
        if found.is_recorded and found.external and is_agent_at_work:
            leave_unattributed(self._journal, began, "", "an agent's tool ran during an import")
        return found
