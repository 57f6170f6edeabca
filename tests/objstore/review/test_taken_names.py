"""Reused paths: rejecting the first file at a path conflicts with the file that has the path now."""

from objstore import Action, Conflicted
from tests.support.scene import Scene


def test_rejection_that_needs_a_path_taken_by_another_file_is_a_path_conflict(scene: Scene) -> None:
    """Create x, move y to z, create a new y: without the first two, the old y and the new one would have one name."""
    scene.write("y", b"old\n")
    scene.accept(1)
    created = scene.write("x", b"x\n")
    moved = scene.move("y", "z")
    new = scene.write("y", b"new\n")
    tried = scene.decide(Action.REJECT, created, moved, dry_run=True)
    conflicts = scene.refused(Action.REJECT, created, moved)
    assert isinstance(tried, Conflicted)
    assert tried.conflicts == conflicts
    assert {int(unit.seq) for conflict in conflicts for unit in (conflict.unit, *conflict.needs)} & {moved, new}
    scene.reject(created, moved, new)
    assert (scene.text("x"), scene.text("y"), scene.text("z")) == (None, b"old\n", None)
