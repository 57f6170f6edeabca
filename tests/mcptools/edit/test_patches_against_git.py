"""Compare with git: patches of `git diff` can be applied and reverted, and `git apply` gives the same results."""

import os
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from shutil import which

from hypothesis import assume, given, settings, strategies as st

from mcptools.edit.file_text import file_text
from mcptools.edit.patch_parser import parse_patches
from mcptools.edit.unified_diff import Applied, apply_patch
from mcptools.tools.patching import applied, part_for
from objstore import unified_diff
from tests.support.patch_replay import carried_out

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
    part = part_for(parse_patches(patch.decode()), "/ws/f", lambda _: False)
    assert applied(file_text(old), part).content == new
    assert applied(file_text(new), part.reverse).content == old


@settings(max_examples=30)
@given(texts, texts, texts)
def test_git_apply_gives_the_same_result_or_refuses(old: bytes, new: bytes, other: bytes) -> None:
    assume(old != new)
    patch = unified_diff(old, new, path_before="a/f", path_after="b/f")
    part = part_for(parse_patches(patch.decode()), "/ws/f", lambda _: False)
    for content in (old, other, b"above\n" + old):
        outcome = apply_patch(content, part)
        assert content != old or isinstance(outcome, Applied)
        if isinstance(outcome, Applied):
            with tempfile.TemporaryDirectory() as folder:
                result_of_git = applied_by_git(Path(folder), content, patch)
            assert result_of_git in {None, outcome.content}
            assert content != old or GIT is None or result_of_git == new


def written(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder hold these files and no others, but for what begins with a dot."""
    for path in folder.glob("[!.]*"):
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


@st.composite
def chains(draw: st.DrawFn) -> list[dict[str, bytes]]:
    """Draw states of some files: first they are moved, swapped, copied, made and deleted too, then only changed."""
    fresh = (f"new {number}" for number in range(1000))

    def changed(content: bytes, line: st.SearchStrategy[int]) -> bytes:
        found = content.decode().splitlines()
        for _ in range(draw(st.integers(0, 2))):
            found[draw(line) % len(found)] = next(fresh)
        return "".join(f"{each}\n" for each in found).encode()

    names = ["a", "b", "c"]
    line = st.integers(0, 19)
    first = {name: "".join(f"{name} {at}\n" for at in range(20)).encode() for name in names}
    sources = draw(st.permutations(names))
    second = {
        name: changed(first[source], line)
        for name, source in zip(draw(st.permutations(["a", "b", "d"])), sources, strict=True)
    }
    if draw(st.booleans()):
        second.pop(draw(st.sampled_from(sorted(second))))
    if draw(st.booleans()):
        second["made"] = "".join(f"{next(fresh)}\n" for _ in range(3)).encode()
    states = [first, second]
    for _ in range(draw(st.integers(0, 2))):
        states.append({name: changed(content, line) for name, content in states[-1].items()})
    return states


@settings(max_examples=25)
@given(chains())
def test_parts_that_build_on_each_other_give_what_git_and_patch_give(states: list[dict[str, bytes]]) -> None:
    """Parts in order, of files that earlier parts move, copy, create and change."""
    assume(GIT is not None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git(folder, "init", "-q")
        commits = []
        for files in states:
            written(folder, files)
            git(folder, "add", "-A")
            identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
            assert git(folder, *identity, "commit", "-q", "--allow-empty", "-m", "x").returncode == 0
            commits.append(git(folder, "rev-parse", "HEAD").stdout.decode().strip())
        patch = b"".join(git(folder, "diff", "-M30%", "-C30%", *pair).stdout for pair in pairwise(commits))
        assume(patch)
        written(folder, states[0])
        by_git = git(folder, "apply", patch=patch)
        assert by_git.returncode == 0, by_git.stderr
        results = [files_in(folder)]
        if program := which("patch"):
            written(folder, states[0])
            done = subprocess.run([program, "-p1", "-s"], cwd=folder, input=patch, capture_output=True, check=False)
            results += [files_in(folder)] if done.returncode == 0 else []
    ours, why = carried_out(states[0], parse_patches(patch.decode()), 1)
    assert ours == states[-1], why
    assert [result for result in results if result != ours] == []


@settings(max_examples=30)
@given(texts, texts)
def test_a_patch_that_got_crlf_on_its_way_is_applied_to_a_file_with_lf(old: bytes, new: bytes) -> None:
    assume(old != new and b"\n" in old)
    patch = unified_diff(old, new, path_before="a/f", path_after="b/f").replace(b"\n", b"\r\n")
    part = part_for(parse_patches(patch.decode()), "/ws/f", lambda _: False)
    assert applied(file_text(old), part).content == new
    in_crlf = file_text(old.replace(b"\n", b"\r\n"))
    assert applied(in_crlf, part).content == new.replace(b"\n", b"\r\n")
