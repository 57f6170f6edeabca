"""Timing, comparison and reports of benchmarks."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

__all__ = ["Report", "Target", "finish", "percentile", "timed", "timed_in_turn", "wait_until_settled"]

Milliseconds = float

_GRACE_SECONDS: Final = 2.1
"""How long a status reads each file that was changed again, as its times may not show another change."""

_TARGET: Final = re.compile(r"(<=|<|>=|>) (\d[\d ]*(?:\.\d+)?)")
"""A target that a figure can miss: words may follow, and a target in words alone can't be missed."""

_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": lambda value, limit: value <= limit,
    "<": lambda value, limit: value < limit,
    ">=": lambda value, limit: value >= limit,
    ">": lambda value, limit: value > limit,
}


def timed(act: Callable[[int], object], rounds: int, start: int = 0) -> list[Milliseconds]:
    """Return how long each of `rounds` calls of `act(i)` took, with i from `start` on."""
    return timed_in_turn({"": lambda i: act(start + i)}, rounds)[""]


def timed_in_turn(acts: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, list[Milliseconds]]:
    """Time several acts alternately, so that a slow moment of the machine affects all of them."""
    found: dict[str, list[Milliseconds]] = {name: [] for name in acts}
    for i in range(rounds):
        for name, act in acts.items():
            began = time.perf_counter_ns()
            act(i)
            found[name].append((time.perf_counter_ns() - began) / 1e6)
    return found


def wait_until_settled() -> None:
    """Wait until the times of files that were just made, or just got other times, are old enough to be believed."""
    time.sleep(_GRACE_SECONDS)


def percentile(times: Sequence[Milliseconds], share: float) -> Milliseconds:
    """Return the value below which a `share` (0 to 1) of the times is."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass(frozen=True)
class Target:
    """A figure that has a target."""

    what: str
    value: float
    target: str

    @property
    def is_met(self) -> bool:
        """Return whether the value is on the right side of the target."""
        match = _TARGET.match(self.target)
        return match is None or _HOLDS[match[1]](self.value, float(match[2].replace(" ", "")))


@dataclass
class Report:
    """The results of one benchmark."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)

    def times(self, what: str, times: Sequence[Milliseconds]) -> Milliseconds:
        """Print and store the median and the 99th percentile; return the median."""
        middle, high = median(times), percentile(times, 0.99)
        print(f"  {what:<52} p50 {middle:9.3f} ms   p99 {high:9.3f} ms   n {len(times)}")
        self.figures[f"{what} p50 ms"] = round(middle, 4)
        self.figures[f"{what} p99 ms"] = round(high, 4)
        return middle

    def ratio(self, what: str, value: float, target: str) -> None:
        """Print and store a figure with its target, and say whether it is missed."""
        found = Target(what, value, target)
        print(f"  {what:<52} {value:9.3f}      target {target}{'' if found.is_met else '   MISSED'}")
        self.figures[what] = round(value, 4)
        self.targets.append(found)

    def line(self) -> str:
        """Return the machine-readable line."""
        return "BENCH " + json.dumps({"bench": self.name, **self.figures}, sort_keys=True)


def finish(reports: Sequence[Report]) -> int:
    """Print each report for machines, then every missed target; return 1 if there is any, else 0."""
    for report in reports:
        print(report.line())
    missed = [(report.name, found) for report in reports for found in report.targets if not found.is_met]
    for name, found in missed:
        print(f"MISSED {name}: {found.what} is {found.value:.3f}; the target is {found.target}")
    print(f"{len(missed)} of {sum(len(report.targets) for report in reports)} targets missed.")
    return 1 if missed else 0
