"""Timing, comparison and reports of benchmarks."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

__all__ = ["Report", "percentile", "timed", "timed_in_turn"]

Milliseconds = float


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


def percentile(times: Sequence[Milliseconds], share: float) -> Milliseconds:
    """Return the value below which a `share` (0 to 1) of the times is."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass
class Report:
    """The results of one benchmark."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)

    def times(self, what: str, times: Sequence[Milliseconds]) -> Milliseconds:
        """Print and store the median and the 99th percentile; return the median."""
        middle, high = median(times), percentile(times, 0.99)
        print(f"  {what:<52} p50 {middle:9.3f} ms   p99 {high:9.3f} ms   n {len(times)}")
        self.figures[f"{what} p50 ms"] = round(middle, 4)
        self.figures[f"{what} p99 ms"] = round(high, 4)
        return middle

    def ratio(self, what: str, value: float, target: str) -> None:
        """Print and store a ratio with its target."""
        print(f"  {what:<52} {value:9.3f}      target {target}")
        self.figures[what] = round(value, 4)

    def line(self) -> str:
        """Return the machine-readable line."""
        return "BENCH " + json.dumps({"bench": self.name, **self.figures}, sort_keys=True)
