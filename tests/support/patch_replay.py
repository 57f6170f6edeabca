"""Replay the calls of git's and GNU patch's own tests with our patch tools, and name each difference.

`python -m tests.support.patch_replay FOLDER` downloads both source packages of the distribution into FOLDER, unless
they are there, runs their scripts with the installed programs behind a recorder, and applies each recorded patch here
too. The scripts' own results don't matter: what counts is what the program did to the files of each call. Every
difference needs a reason in `_REASONS`, or an option by which the call asks for a guess; exits 1 if one has none.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any, Final

from mcptools.edit.file_text import file_text
from mcptools.edit.patch_parser import InvalidPatch, joined_parts, parse_patches
from mcptools.edit.unified_diff import Applied, FilePatch
from mcptools.model.failures import Failure
from mcptools.tools.patching import applied

_SECONDS: Final = 120
"""Time that a script has; some of them wait for what the recorder does not offer."""

_RECORDER: Final = r"""
import base64, json, os, subprocess, sys, time
tool, program, calls = sys.argv[1:4]
words = sys.argv[4:]
def files():
    found = {}
    for folder, names, others in os.walk("."):
        names[:] = [name for name in names if name != ".git"]
        for name in others:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < 1 << 20:
                found[os.path.relpath(path)] = base64.b64encode(open(path, "rb").read()).decode()
    return found
given = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
before = files()
done = subprocess.run([program, *words], input=given)
record = dict(tool=tool, words=words, given=base64.b64encode(given).decode(), before=before, after=files(),
              status=done.returncode, script=os.environ.get("REPLAYED", ""))
with open(os.path.join(calls, "%d.%d.json" % (time.time_ns(), os.getpid())), "w") as out:
    json.dump(record, out)
sys.exit(done.returncode)
"""

_OTHER_REQUESTS: Final = {
    "check": r"--(check|stat|numstat|summary|cached|dry-run)\b|^--build-fake|^-N$|^--intent",
    "merging": r"^-3$|^--3way|^--merge|^-m\b",
    "other output": r"^-o|^--output|^-r|^--reject|^-b|^--backup|^-B|^-z|^-V|^-D|^--ifdef",
    "part of the files": r"^--(include|exclude|directory)",
    "another format": r"^-[cne]$|^--(context|normal|ed)$",
}
"""Options of the programs by which a call asks for something that our tools don't offer, in the words of the report."""


_ASKED: Final = ", where fuzz or other white space is asked for"

_FUZZ: Final = r"^-C\d|^--whitespace|^--ignore-(space|white)|^-l$|^--unidiff-zero|^-F|^--inaccurate"
"""Options by which a call asks for a guess. It is compared all the same, and the differences are listed apart."""


_OTHER_FORMAT: Final = re.compile(rb"^(\*\*\* |[0-9,]+[acd]$|[0-9,]+[acd][0-9])", re.MULTILINE)
"""Lines of the formats of diffs that our tools don't read."""


_LINKED: Final = "files become links or folders or are below links, which the recorder does not see"
_SUBMODULES: Final = "submodules, which have no lines"
_UNPLACED: Final = "a hunk of new lines alone, without context to place it by: our tools refuse it"

_REASONS: Final = {
    ("t4104-apply-boundary.sh", "apply --index --unidiff-zero add-z-patch.without"): _UNPLACED,
    ("t4104-apply-boundary.sh", "apply --unidiff-zero --index add-z-ng.without"): _UNPLACED,
    ("t4114-apply-typechange.sh", "apply --index"): _LINKED,
    ("t4114-apply-typechange.sh", "apply -R --index"): _LINKED,
    ("t4122-apply-symlink-inside.sh", "apply --index patch"): _LINKED,
    ("t4122-apply-symlink-inside.sh", "apply patch"): _LINKED,
    ("t4139-apply-escape.sh", "apply --index patch"): _LINKED,
    ("t4139-apply-escape.sh", "apply patch"): _LINKED,
    ("symlinks", "-f -p1"): _LINKED,
    ("t4137-apply-submodule.sh", "apply --index diff"): _SUBMODULES,
    ("t4135-apply-weird-filenames.sh", "apply -p2 diff-from-svn"): (
        "a hunk header without its plus: our tools name the line to correct"
    ),
    ("create-delete", "-p0 -t"): "by -t the program takes the patch for a reversed one",
    ("need-filename", "f"): "a patch without names of files: our tools ask for them",
    ("no-newline-triggers-assert", "-p0"): "a last line that is empty and has no newline, which no file has",
    ("remember-backup-files", "-p0"): "the program passes over its own backup",
}
"""Why a call, by its script and words, ends otherwise here, where that doesn't follow from what it asks for.

Of a call that asks for a guess, by an option or by its repository's settings, it does follow: `_depends_on` shows that.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One recorded call."""

    tool: str
    script: str
    words: list[str]
    given: bytes
    before: dict[str, bytes]
    after: dict[str, bytes]
    status: int

    @property
    def operands(self) -> list[str]:
        """Return the words that are no options."""
        words = self.words[1:] if self.tool == "git" else self.words
        return [word for word in words if not word.startswith("-") or word == "-"]

    @property
    def is_reverse(self) -> bool:
        return any(re.fullmatch(r"-R|--reverse", word) for word in self.words)

    @property
    def stripped(self) -> int | None:
        """Return how many folders of a name are stripped; None: as many as it takes to find a file."""
        found = [int(word[2:]) for word in self.words if re.fullmatch(r"-p\d+", word)]
        return found[-1] if found else (1 if self.tool == "git" else None)

    @property
    def asks_for(self) -> str:
        """Return what the call asks for that our tools don't offer; "": nothing."""
        names = (name for name, form in _OTHER_REQUESTS.items() if any(re.search(form, word) for word in self.words))
        return next(names, "")


def main(folder: Path) -> None:
    """Record and replay, and print the counts and each difference."""
    calls = folder / "calls"
    if not calls.is_dir():
        _record(_sources(folder), calls)
    counts = Counter[str]()
    differences: list[str] = []
    unused, unnamed = {*_REASONS}, 0
    for path in sorted(calls.iterdir()):
        call = _read(json.loads(path.read_text()))
        for outcome, detail in _replayed(call):
            counts[f"{call.tool}: {outcome}"] += 1
            if detail:
                named = (call.script, " ".join(call.words))
                reason = _depends_on(call) or _REASONS.get(named, "NO REASON")
                unused -= {named} if reason == _REASONS.get(named) else set()
                unnamed += reason == "NO REASON"
                differences.append(f"{call.script} ({named[1]}): {outcome}: {detail}: {reason}")
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"{count:6} {name}\n")
    for difference, count in sorted(Counter(differences).items()):
        sys.stdout.write(f"- {difference}" + (f" ({count} times)\n" if count > 1 else "\n"))
    for script, words in sorted(unused):
        sys.stdout.write(f"- {script} ({words}): a reason for a call that does not differ\n")
    sys.exit(1 if unnamed or unused else 0)


def _depends_on(call: _Call) -> str:
    """Return what a call's result depends on, if without that the program does what our tools do; "": it isn't so.

    The program is run again on the files of then, in a folder without the repository and its settings.
    """
    options = [word for word in call.words if re.search(_FUZZ, word)]
    kept = [word for word in call.words if word not in options and word not in {"--index", "--cached"}]
    with TemporaryDirectory() as folder:
        for name, content in call.before.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        done = subprocess.run(
            [call.tool, *kept],
            cwd=folder,
            input=call.given,
            env={"PATH": os.environ["PATH"], "HOME": folder, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)},
            check=False,
            capture_output=True,
            timeout=_SECONDS,
        )
        found = (path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
        after = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    if any(detail for _, detail in _replayed(replace(call, words=kept, after=after, status=done.returncode))):
        return ""
    if not options:
        return "it depends on the repository's settings or on links: on the files alone, the program does the same"
    return f"it asks for a guess by {' '.join(options)}: without, the program does the same"


# ---- recording


def _sources(folder: Path) -> dict[str, Path]:
    """Return the unpacked source packages, downloaded if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("git-*/t")):
        subprocess.run(["apt-get", "source", "git", "patch"], cwd=folder, check=True)
    return {name: next(folder.glob(f"{name}-*/")) for name in ("git", "patch")}


def _record(sources: dict[str, Path], calls: Path) -> None:
    programs = calls.parent / "programs"
    for made in (programs, calls):
        made.mkdir(exist_ok=True)
    (programs / "recorder.py").write_text(_RECORDER)
    for tool in ("git", "patch"):
        program = shutil.which(tool)
        recorder = f"exec {sys.executable} -S -E {programs}/recorder.py {tool} {program} {calls}"
        wrapper = programs / tool
        condition = 'if [ "$1" != apply ]; then exec ' + f'{program} "$@"; fi\n' if tool == "git" else ""
        wrapper.write_text(f'#!/bin/sh\n{condition}{recorder} "$@"\n')
        wrapper.chmod(0o755)
    environment = {**os.environ, "PATCH": str(programs / "patch"), "GIT_TEST_INSTALLED": str(programs)}
    _prepare_git(sources["git"])
    for script in sorted((sources["git"] / "t").glob("t41*-apply-*.sh")):
        _run(["bash", script.name], script.parent, {**environment, "REPLAYED": script.name})
    tests = sources["patch"] / "tests"
    listed = {path for path in tests.iterdir() if path.is_file() and path.read_bytes()[:1] == b"#"}
    for script in sorted(listed - {tests / "test-lib.sh", tests / "Makefile.am", tests / "Makefile.in"}):
        variables = {"srcdir": str(tests), "abs_top_builddir": str(sources["patch"]), "REPLAYED": script.name}
        _run(["bash", str(script)], tests, {**environment, **variables})


def _prepare_git(source: Path) -> None:
    """Make what git's scripts expect of a built git: options, and a program that only its C helpers would need."""
    (source / "GIT-BUILD-OPTIONS").write_text("SHELL_PATH=/bin/sh\nPERL_PATH=perl\nDIFF=diff\nNO_PERL=\nNO_PYTHON=1\n")
    helper = source / "t" / "helper" / "test-tool"
    helper.write_text("#!/bin/sh\nexit 1\n")
    helper.chmod(0o755)
    (source / "templates" / "blt").mkdir(parents=True, exist_ok=True)


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _read(record: dict[str, Any]) -> _Call:
    def files(name: str) -> dict[str, bytes]:
        return {path: base64.b64decode(content) for path, content in record[name].items()}

    return _Call(
        tool=record["tool"],
        script=record["script"],
        words=record["words"],
        given=base64.b64decode(record["given"]),
        before=files("before"),
        after=files("after"),
        status=record["status"],
    )


# ---- replaying


def _replayed(call: _Call) -> Iterator[tuple[str, str]]:
    """Yield what the parts of a call's patch come to, each with what differs; "": nothing."""
    if call.asks_for:
        yield f"not compared, asks for {call.asks_for}", ""
        return
    texts = _patches(call)
    if not any(each.strip() for each in texts):
        yield "not compared, no patch", ""
        return
    try:
        found = [
            part for each in texts for part in parse_patches(each.decode("utf-8", "surrogateescape"), correct=True)
        ]
    except (InvalidPatch, UnicodeEncodeError) as refusal:
        # A refused call may have left a file that the script writes itself, such as one of its messages.
        changed = call.before != call.after and call.status == 0
        text_of = "another format" if _OTHER_FORMAT.search(b"\n".join(texts)) else ""
        if changed and text_of:
            yield f"not compared, {text_of}", ""
            return
        yield ("refused here, applied there", str(refusal)) if changed else ("refused by both", "")
        return
    asked = _ASKED if any(re.search(_FUZZ, word) for word in call.words) else ""
    if len(found) > 1 and not all(map(_only_changes_lines, found)):
        outcome, detail = _carried_out(call, found)
        yield f"{outcome}, of {len(found)} parts in order{asked}", detail
        return
    again = Counter(part.names[1] for part in found)
    parts = joined_parts(found)
    for part in parts:
        several = f", of {again[part.names[1]]} parts for one file" if again[part.names[1]] > 1 else ""
        outcome, detail = _compared(call, part.reverse if call.is_reverse else part, alone=len(parts) == 1)
        yield f"{outcome}{several}{asked}", detail


def _only_changes_lines(part: FilePatch) -> bool:
    return part.more is None and part.source is not None and part.target is not None and not part.is_copy


def _carried_out(call: _Call, parts: Sequence[FilePatch]) -> tuple[str, str]:
    """Return what the parts of a patch come to one after the other, and what differs from the program's result.

    What only other tools do is done here as an agent would do it with them: a file is created, deleted, moved, copied.
    """
    if any(part.more is not None and "inary" in str(part.more) for part in parts):
        return "not compared, binary", ""
    in_order = [part.reverse for part in reversed(parts)] if call.is_reverse else parts
    if call.is_reverse and any(part.is_copy for part in parts):
        return "not compared, a copy in reverse", ""
    files, touched = carried_out(call.before, in_order, call.stripped)
    if files is None:
        is_refused = call.status != 0
        return ("refused by both", "") if is_refused else ("refused here, applied there", touched)
    if call.status != 0:
        return "applied here, refused there", touched
    theirs = {name: content for name, content in call.after.items() if name in files or name in call.before}
    differing = [name for name in {*files, *theirs} if files.get(name) != theirs.get(name) and name in touched.split()]
    return ("ANOTHER RESULT", " ".join(sorted(differing))) if differing else ("the same result", "")


def carried_out(
    before: Mapping[str, bytes], parts: Sequence[FilePatch], stripped: int | None
) -> tuple[dict[str, bytes] | None, str]:
    """Return the files after the parts of a patch, and the names that these touch; or None, and what was refused."""
    files, touched = dict(before), list[str]()
    made = set[str]()  # by an earlier part
    for part in parts:
        names = [
            "/".join(PurePath(name).parts[stripped or 0 :]) if name else None for name in (part.source, part.target)
        ]
        source, target = names
        # A header of git that moves or copies a file means it as it was before the patch.
        is_moved = source is not None and target is not None and source != target
        found = before if is_moved and source in before else files
        if source is not None and source not in found:
            return None, f"{source}: not there"
        content = b"" if source is None else found[source]
        if part.hunks:
            outcome, refusal = _applied(content, replace(part, source="f", target="f", more=None))
            if outcome is None:
                return None, f"{source}: {refusal}"
            content = outcome.content
        touched += [name for name in names if name is not None]
        if source is not None and source != target and not part.is_copy and source not in made:
            files.pop(source, None)
        if target is not None:
            files[target] = content
            made.add(target)
    return files, " ".join(touched)


def _patches(call: _Call) -> list[bytes]:
    """Return the patches of a call, in order."""
    inputs = [word for word in call.words if word.startswith(("-i", "--input=")) and word != "-i"]
    names = [word.removeprefix("-i").removeprefix("--input=") for word in inputs]
    if call.tool == "git":
        names = call.operands
    elif not names and len(call.operands) > 1:
        names = call.operands[1:2]
    return [call.given if name == "-" else call.before.get(os.path.normpath(name), b"") for name in names or ["-"]]


def _compared(call: _Call, part: FilePatch, *, alone: bool) -> tuple[str, str]:
    if part.more is not None:
        return "left to other tools: more than changed lines", ""
    if part.source is None or part.target is None:
        return "left to other tools: created or deleted files", ""
    name = _file(call, part, alone=alone)
    if name is None:
        return "not compared, the file is not known", ""
    before, after = call.before[name], call.after.get(name)
    made, refusal = _applied(before, part)
    theirs = None if after == before else after or b""  # an emptied file may be removed
    ours = None if made is None else made.content
    if ours == theirs or (ours == before and theirs is None):
        return ("the same result" if ours is not None else "refused by both"), ""
    if ours is None and call.status != 0:
        return "refused here, applied in part there", ""
    if ours is None:
        return "refused here, applied there", f"{name}: {refusal}"
    if theirs is None:
        return (
            "applied here, refused there",
            f"{name}: hunks moved by {made.moved if made is not None else ()}",
        )
    return "ANOTHER RESULT", name


def _applied(content: bytes, part: FilePatch) -> tuple[Applied | None, str]:
    """Return the result of our tools for a part, or why they refuse it."""
    try:
        return applied(file_text(content), part), ""
    except Failure as failure:
        return None, str(failure)


def _file(call: _Call, part: FilePatch, *, alone: bool) -> str | None:
    """Return the file that a part is for, as the program finds it."""
    operands = [] if call.tool == "git" else call.operands[:1]
    if operands and alone:
        return operands[0] if operands[0] in call.before else None
    for name in (part.source or "", part.target or ""):
        folders = PurePath(name).parts
        strips = range(len(folders)) if call.stripped is None else [call.stripped]
        for strip in strips:
            if (found := "/".join(folders[strip:])) in call.before:
                return found
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
