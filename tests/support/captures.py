"""Capture what `cas` prints in a real review, and keep the captures in docs/tour.md.

`python -m tests.support.captures` writes every capture below the marker line of docs/tour.md that names its command,
such as `<!-- capture: cas diff -->`. Two agents work through real hooks in a real git repository, and `cas` runs on a
pseudo-terminal. Times, the folder's name and the size of the store differ from run to run: the page has fixed ones.
"""

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.command_runner import cas, on_terminal
from tests.support.git_repository import git, new_repository
from tests.support.hooked_agents import ClaudeCode, Codex
from tests.support.terminal_driver import run_in_terminal

__all__ = ["PAGE", "example_project", "with_captures"]

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "tour.md"

SHOWN_FOLDER: Final = "/home/ada/projects/shop"
PLACE: Final = Path("/tmp").resolve()  # noqa: S108 -- mkdtemp makes a folder of its own, and lines depend on its length
STORE: Final = r"store: 6.9 kB\1, the folder .cas 325 kB"
MARKED: Final = re.compile(
    r"(?P<begin><!-- capture: (?P<command>[^>]+) -->\n).*?(?P<end><!-- capture ends -->)", re.DOTALL
)
DAY: Final = "2026-11-27"
CLOCK: Final = {"1": "10:01:18", "2": "10:05:31", "3": "10:09:02", "4": "10:12:40"}
"""When each turn began, as the page has it."""

LATER: Final = "10:20:31"
"""When anything else happened."""

PERSON: Final = {"LOGNAME": "ada"}

TIMED: Final = re.compile(
    r"^(?P<begin> +(?P<turn>\d+)  )(?:\d{4}-)?\d\d-\d\d \d\d:\d\d(?P<seconds>:\d\d)?", re.MULTILINE
)
"""The beginning of a row about a turn."""

WIDTHS: Final = (80, 120)
"""Columns of the terminals."""

DECISIONS: Final = {"[4:1]": "a", "[2:1]": "a", "[6:1]": "X", "[2:2 5:1]": "q"}
"""The key that is pressed in the review at each change."""

REASON: Final = "Callers pass 0 to remove an item."

CART: Final = '''\
"""A shopping cart."""

from shop.prices import price_of


class Cart:
    def __init__(self):
        self.items = []

    def add(self, item, count=1):
        self.items.append((item, count))

    def total(self):
        return sum(price_of(item) * count for item, count in self.items)
'''

PRICES: Final = '''\
"""What things cost, in cents."""

PRICES = {"apple": 40, "bread": 320, "cheese": 890}


def price_of(item):
    return PRICES[item]
'''

DISCOUNT: Final = '''\
"""Discounts for large orders."""

LARGE_ORDER = 5000


def discounted(total):
    """Return the total less ten percent, if it is large."""
    return total * 9 // 10 if total >= LARGE_ORDER else total
'''

TESTS: Final = """\
from shop.discount import discounted


def test_large_orders_cost_less():
    assert discounted(5000) == 4500


def test_small_orders_cost_the_same():
    assert discounted(4999) == 4999
"""

REFUSAL: Final = """\
        if count < 1:
            raise ValueError(f"count must be 1 or more: {count}")
"""

README: Final = "# Shop\n\nA cart with prices.\n"


@contextmanager
def example_project() -> Iterator[Path]:
    """Make the repository that the page is about, with all that its agents and its person did; yield its folder."""
    with tempfile.TemporaryDirectory(prefix="tour-", dir=PLACE) as place:
        folder = new_repository(Path(place) / "shop")
        for path, content in (
            ("README.md", README),
            ("shop/cart.py", CART),
            ("shop/prices.py", PRICES),
            (".gitignore", ".cas/\n"),
        ):
            file = folder / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(content)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "A cart")
        _done(folder, "init")
        _work(folder)
        yield folder


def _work(folder: Path) -> None:
    """Let two agents and a person work."""
    claude, codex = ClaudeCode(folder, "b2e6"), Codex(folder, "77d1")
    claude.start()
    claude.ask("Give large orders a discount of ten percent")
    claude.write("shop/discount.py", DISCOUNT)
    with_discount = CART.replace("from shop.prices", "from shop.discount import discounted\nfrom shop.prices").replace(
        "return sum(price_of(item) * count for item, count in self.items)",
        "full = sum(price_of(item) * count for item, count in self.items)\n        return discounted(full)",
    )
    claude.write("shop/cart.py", with_discount)
    claude.stop()
    claude.ask("Write tests for the discount")
    claude.run(f"mkdir -p tests && cat > tests/test_discount.py <<'END'\n{TESTS}END")
    claude.stop()
    _done(folder, "accept", "--turn", "2")
    codex.start()
    codex.ask("Document the cart for people who have never seen it, and say in which unit prices are")
    codex.write("README.md", README + "\nPrices are in cents. `Cart.total()` has the discount taken off.\n")
    documented = with_discount.replace(
        "    def total(self):\n", '    def total(self):\n        """Return the price of all items, in cents."""\n'
    )
    codex.write("shop/cart.py", documented)
    codex.stop()
    claude.ask("Refuse counts below one")
    appending = "        self.items.append"
    claude.write("shop/cart.py", documented.replace(appending, REFUSAL + appending))
    claude.stop()
    _done(folder, "comment", "shop/discount.py:3", "-m", "Is this with or without tax?")


def captures(commands: Sequence[str]) -> dict[str, str]:
    """Return what each command prints at each width, as a page shows it. They run one after the other."""
    at_width = []
    for width in WIDTHS:
        with example_project() as folder:
            at_width.append([_captured(folder, width, command) for command in commands])
    return {command: _blocks(shown) for command, *shown in zip(commands, *at_width, strict=True)}


def with_captures(page: str) -> str:
    """Return the text of the page with a capture below each marker line that names a command."""
    found = captures([match["command"] for match in MARKED.finditer(page)])
    return MARKED.sub(lambda match: f"{match['begin']}\n{found[match['command']]}\n{match['end']}", page)


def _captured(folder: Path, width: int, command: str) -> str:
    """Return what a command prints on a terminal that is so wide."""
    settings = {"COLUMNS": str(width), "LINES": "40", "NO_COLOR": "1", "XDG_STATE_HOME": str(folder.parent / "state")}
    settings |= PERSON
    _, *words = command.split()
    if words == ["review"]:
        shown = _reviewed(folder, settings)
    else:
        status, shown = on_terminal(words, folder=folder, settings=settings)
        assert status == 0, shown
    return "\n".join(line.rstrip() for line in _fixed(shown, str(folder)).strip("\n").splitlines())


def _reviewed(folder: Path, settings: dict[str, str]) -> str:
    """Return all that a review shows while a person decides."""
    shown = ""
    with run_in_terminal("plain", "review", folder=folder, scratch=folder.parent / "stage", **settings) as terminal:
        for change, key in DECISIONS.items():
            shown += terminal.wait_for(rf"Decide on {re.escape(change)}.*\] $")
            terminal.type(key)
            if key == "X":
                shown += terminal.wait_for("Reason: $")
                while not terminal.is_in_line_mode():  # else the reason would not be echoed
                    time.sleep(0.01)
                terminal.type(f"{REASON}\n")
        shown += terminal.wait_for(r"left pending.*\n")
        assert terminal.wait_for_exit() == 0
    return shown


def _fixed(shown: str, folder: str) -> str:
    """Return a capture with a fixed folder, times and size of the store in place of the run's own."""
    assert len(folder) == len(SHOWN_FOLDER)  # else lines would be cut elsewhere
    shown = shown.replace(folder, SHOWN_FOLDER)
    for length in range(len(folder), len("/shop"), -1):
        shown = shown.replace(f"…{folder[-length:]}", f"…{SHOWN_FOLDER[-length:]}")
    shown = re.sub(r"^store: \S+ kB( in \d+ blobs), the folder .cas \S+ kB", STORE, shown, flags=re.MULTILINE)

    def at_fixed_time(row: re.Match[str]) -> str:
        moment = f"{DAY} {CLOCK[row['turn']]}"
        return row["begin"] + (moment if row["seconds"] else moment[len("2026-") : -len(":18")])

    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", f"{DAY} {LATER}", shown)
    return TIMED.sub(at_fixed_time, shown)


def _blocks(shown: Sequence[str]) -> str:
    """Return what one command printed at each width; once, if that is the same."""
    both = {" and ".join(map(str, WIDTHS)): shown[0]}
    at = both if len({*shown}) == 1 else dict(zip(map(str, WIDTHS), shown, strict=True))
    return "\n".join(f"At {width} columns:\n\n```text\n{text}\n```\n" for width, text in at.items())


def _done(folder: Path, *words: str) -> None:
    ran = cas(*words, folder=folder, settings=PERSON)
    assert (ran.status, ran.err) == (0, b""), ran


if __name__ == "__main__":
    PAGE.write_text(with_captures(PAGE.read_text()))
