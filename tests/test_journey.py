"""Test that the walks of an edit and of a rejection can be printed."""

from tests.support.journey import walks


def test_both_walks_begin_at_the_surface_and_end_in_the_log() -> None:
    edited, rejected = (list(walk.modules) for walk in walks())
    assert edited[0].startswith("mcptools.tools.")
    assert {"objstore.weave.document", "objstore.review.planning.planner"} <= set(rejected)
    for modules in (edited, rejected):
        assert {"objstore.storage.log.frames", "objstore.disk.file_changes.apply"} <= set(modules)
