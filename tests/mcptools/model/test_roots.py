"""Roots of a client as paths, and what remains of the directories within them."""

import os
from pathlib import Path
from urllib.parse import quote

from mcptools.model.roots import intersected, root_paths


def test_only_addresses_of_local_directories_become_roots(tmp_path: Path) -> None:
    odd = tmp_path / "a b%20?#é"
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    (tmp_path / "file").touch()
    local = [odd.as_uri(), f"file://localhost{quote(str(odd))}", (tmp_path / "link").as_uri()]
    assert root_paths(local, {}) == (os.path.realpath(odd),)
    elsewhere = [
        "https://example.com/",
        "file://host/tmp",
        "file:tmp",
        "file:///a%00b",
        "file:///tmp?x",
        "x",
        "//[",
        "",
    ]
    assert root_paths([*elsewhere, (tmp_path / "file").as_uri(), (tmp_path / "none").as_uri()], {}) == ()


def test_intersection_of_directories_and_roots_lies_within_both() -> None:
    assert intersected(["/a", "/b"], ["/a/x", "/c"]) == {"/a/x": "/a"}
    assert intersected(["/a", "/a/x"], ["/a/x/y"]) == {"/a/x/y": "/a/x"}
    assert intersected(["/a"], ["/", "/a/x"]) == {"/a": "/a", "/a/x": "/a"}
    assert intersected(["/a"], ["/ab", "/b"]) == {}
