"""Policies accept edits of agents when they are recorded, or keep anything but a named decision from accepting them."""

import os

import pytest

from objstore import CallInfo, Configuration, Origin, Status
from tests.support.scene import TEN, Scene, writes


def set_policy(scene: Scene, name: str, value: str) -> None:
    """Set a policy as `cas config` does."""
    Configuration(str(scene.root)).set(name, value)
    scene.workspace.review.record_policy(name, "", value, who="ann")


def status(scene: Scene, path: str) -> tuple[Status, str]:
    """Return the status of the newest edit of a path, and its note of a policy."""
    (view,) = [view for view in scene.workspace.history.edits() if os.fsdecode(view.edit.path) == path][-1:]
    return view.status, view.edit.notes.get("policy", "")


def test_an_agents_edit_of_a_matching_file_is_accepted_when_it_is_recorded(scene: Scene) -> None:
    set_policy(scene, "review.accept", "docs/** *.md")
    scene.write("docs/a", TEN)
    scene.write("b.md", TEN)
    scene.write("c.py", TEN)
    assert status(scene, "docs/a") == status(scene, "b.md") == (Status.ACCEPTED, "review.accept")
    assert status(scene, "c.py") == (Status.PENDING, "")
    scene.move("b.md", "b.py")
    assert status(scene, "b.py") == (Status.PENDING, "")
    scene.reject(1)
    assert scene.text("docs/a") is None


def test_review_always_wins_over_review_accept(scene: Scene) -> None:
    set_policy(scene, "review.accept", "docs/**")
    set_policy(scene, "review.always", "docs/api.md")
    scene.write("docs/api.md", TEN)
    assert status(scene, "docs/api.md") == (Status.PENDING, "")


def test_what_may_be_an_agents_is_never_accepted_by_a_policy(scene: Scene) -> None:
    set_policy(scene, "review.accept", "**")
    with scene.workspace.call(CallInfo(tool="", conversation="x", origin=Origin.UNATTRIBUTED)) as call:
        call.write("a", TEN)
        call.commit()
    assert status(scene, "a") == (Status.PENDING, "")


def test_a_policy_that_cas_config_did_not_set_is_reported_and_accepts_nothing(scene: Scene) -> None:
    Configuration(str(scene.root)).set("review.accept", "**")
    scene.write("a", TEN)
    assert status(scene, "a") == (Status.PENDING, "")
    assert scene.workspace.review.status().policies == ("review.accept",)
    set_policy(scene, "review.accept", "**")
    assert scene.workspace.review.status().policies == ()
    scene.write("b", TEN)
    assert status(scene, "b") == (Status.ACCEPTED, "review.accept")


def test_a_variable_accepts_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAS_REVIEW_ACCEPT", "**")
    monkeypatch.setenv("CAS_REVIEW_ALWAYS", "z")
    scene.write("a", TEN)
    assert status(scene, "a") == (Status.PENDING, "")


def test_review_always_holds_even_if_its_line_vanishes_from_the_file(scene: Scene) -> None:
    set_policy(scene, "review.always", "ci/**")
    Configuration(str(scene.root)).unset("review.always")
    assert scene.workspace.review.policies().needs_review("ci/a")
    assert scene.workspace.review.status().policies == ("review.always",)


def test_unreadable_settings_accept_nothing(scene: Scene) -> None:
    set_policy(scene, "review.accept", "**")
    (scene.root / ".cas" / "config.toml").write_text("[review\n")
    scene.call(writes("a", TEN))
    assert status(scene, "a") == (Status.PENDING, "")


def test_deciding_in_the_chat_is_allowed_only_as_cas_config_set_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def is_allowed() -> bool:
        return scene.workspace.review.policies().in_chat

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("own")))
    assert not is_allowed()
    monkeypatch.setenv("CAS_REVIEW_IN_CHAT", "on")
    assert not is_allowed()
    Configuration(str(scene.root)).set("review.in_chat", "on", own=True)
    assert not is_allowed()
    Configuration(str(scene.root)).set("review.in_chat", "on")
    assert not is_allowed()
    assert scene.workspace.review.status().policies == ("review.in_chat",)
    set_policy(scene, "review.in_chat", "on")
    assert is_allowed()
    Configuration(str(scene.root)).set("review.in_chat", "off")
    assert not is_allowed()
    (scene.root / ".cas" / "config.toml").write_text("[review\n")
    assert not is_allowed()
