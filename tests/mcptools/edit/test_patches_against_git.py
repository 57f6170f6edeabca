"""Compare with git: patches of `git diff` can be applied and reverted, and `git apply` gives the same results."""

import os
import subprocess
import tempfile
from pathlib import Path
from shutil import which

from hypothesis import assume, given, settings, strategies as st

from mcptools.edit.file_text import file_text
from mcptools.edit.patch_parser import parse_patches
from mcptools.edit.unified_diff import Applied, apply_patch
from mcptools.tools.patching import applied, part_for
from objstore import unified_diff

# Without git on PATH there is no comparison, and the laws are checked for our own tools alone.
GIT = which("git")

lines = st.sampled_from(["a", "b", "", " x", "-x", "+x", "\ttab", "é", "--- a", "@@", "c", "d"])
texts = st.builds(
    lambda parts, tail: ("".join(f"{part}\n" for part in parts) + tail).encode(),
    st.lists(lines, min_size=1, max_size=25),
    st.one_of(st.just(""), lines),
)


def git(folder: Path, *arguments: str, patch: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    assert GIT is not None
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run([GIT, *arguments], cwd=folder, env=environment, input=patch, capture_output=True, check=False)


def diff_of_git(folder: Path, old: bytes, new: bytes) -> bytes:
    """Return git's diff of two texts, or ours without git."""
    if GIT is None:
        return unified_diff(old, new, path_before="old", path_after="new")
    (folder / "old").write_bytes(old)
    (folder / "new").write_bytes(new)
    return git(folder, "diff", "--no-index", "--no-color", "old", "new").stdout


def applied_by_git(folder: Path, content: bytes, patch: bytes) -> bytes | None:
    """Return the result of `git apply`; None if it refuses, or without git."""
    if GIT is None:
        return None
    (folder / "f").write_bytes(content)
    done = git(folder, "apply", "--whitespace=nowarn", "--unsafe-paths", "-p1", patch=patch)
    return (folder / "f").read_bytes() if done.returncode == 0 else None


@settings(max_examples=30)
@given(texts, texts)
def test_diff_of_git_is_applied_and_reverted(old: bytes, new: bytes) -> None:
    assume(old != new)
    with tempfile.TemporaryDirectory() as folder:
        patch = diff_of_git(Path(folder), old, new)
    part = part_for(parse_patches(patch.decode()), "/ws/f")
    assert applied(file_text(old), part).content == new
    assert applied(file_text(new), part.reverse).content == old


@settings(max_examples=30)
@given(texts, texts, texts)
def test_git_apply_gives_the_same_result_or_refuses(old: bytes, new: bytes, other: bytes) -> None:
    assume(old != new)
    patch = unified_diff(old, new, path_before="a/f", path_after="b/f")
    part = part_for(parse_patches(patch.decode()), "/ws/f")
    for content in (old, other, b"above\n" + old):
        outcome = apply_patch(content, part)
        assert content != old or isinstance(outcome, Applied)
        if isinstance(outcome, Applied):
            with tempfile.TemporaryDirectory() as folder:
                result_of_git = applied_by_git(Path(folder), content, patch)
            assert result_of_git in {None, outcome.content}
            assert content != old or GIT is None or result_of_git == new
