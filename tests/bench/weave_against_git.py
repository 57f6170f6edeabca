"""Compare the weave with `git merge-file`: reject the first edit of random histories both ways.

Run as `python -m tests.bench.weave_against_git [HISTORIES]`. For git, the text after the first edit is the
common ancestor, the text before it one side, and the last text the other. Prints how often the two agree;
exits 1 when a history without repeated lines that is clean for both differs.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from objstore.text.diff import diff_lines
from objstore.weave.line_weave import Weave
from tests.support.weave_statuses import set_live


def edited(rng: random.Random, text: bytes, repeats: float) -> bytes:
    """Return `text` after one to three small changes; `repeats` is the share of lines that aren't unique."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 3)):
        start = rng.randint(0, len(lines))
        new = [line(rng, repeats) for _ in range(rng.choice([0, 1, 1, 2]))]
        lines[start : start + rng.choice([0, 1, 1, 2, 4])] = new
    return b"".join(lines)


def line(rng: random.Random, repeats: float) -> bytes:
    """Return a line, drawn from few or from very many."""
    return b"%d\n" % (rng.randrange(5) if rng.random() < repeats else rng.randrange(10**9))


def merged_by_git(folder: Path, ours: bytes, ancestor: bytes, theirs: bytes) -> bytes | None:
    """Return git's merge of the three texts, or None if it finds a conflict."""
    names = [folder / name for name in ("ours", "ancestor", "theirs")]
    for name, content in zip(names, (ours, ancestor, theirs), strict=True):
        name.write_bytes(content)
    done = subprocess.run(["git", "merge-file", "-p", "-q", *names], check=False, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def main(histories: int) -> int:
    """Compare a number of histories at each share of repeated lines."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for repeats in (0.0, 0.3, 0.7):
            counts: Counter[str] = Counter()
            for seed in range(histories):
                rng = random.Random(seed)
                base = b"".join(line(rng, repeats) for _ in range(rng.randint(3, 15)))
                weave = Weave(base)
                states = [base]
                units = []
                for _ in range(rng.randint(2, 6)):
                    after = edited(rng, states[-1], repeats)
                    units.append(weave.record(after, diff_lines(states[-1], after)))
                    states.append(after)
                clean = not set_live(weave, dict.fromkeys(units[0], False))
                git = merged_by_git(Path(folder), base, states[1], states[-1])
                if clean and git is not None:
                    counts["both clean, same" if weave.text() == git else "both clean, different"] += 1
                else:
                    counts[
                        f"weave {'clean' if clean else 'conflict'}, git {'clean' if git is not None else 'conflict'}"
                    ] += 1
            failed |= not repeats and bool(counts["both clean, different"])
            print(f"{repeats:.0%} repeated lines:", ", ".join(f"{name} {n}" for name, n in counts.most_common()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
