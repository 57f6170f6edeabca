"""A project for the review page in which two agents have worked, with a case of everything that the page can show."""

import struct
import zlib
from pathlib import Path
from typing import Final

from tests.support.command_runner import cas
from tests.support.hooked_agents import ClaudeCode, Codex

__all__ = ["HOSTILE_NAME", "HOSTILE_TEXT", "agents_worked", "changed_outside", "done", "new_project", "png"]

HOSTILE_NAME: Final = "<img src=x onerror=alert(1)>.txt"
HOSTILE_TEXT: Final = (
    "<script>alert(2)</script>\n</div><iframe src='javascript:alert(3)'></iframe>\n"
    "&lt;b&gt; ${alert(4)} \x1b[31mred\x1b[0m \u202etxt.exe\n"
)

CART: Final = '''\
"""Carts: what a customer wants, and what it costs."""

from dataclasses import dataclass, field


@dataclass
class Item:
    """One line of a cart."""

    name: str
    price: int  # in cents
    count: int = 1


@dataclass
class Cart:
    """What a customer wants."""

    items: list[Item] = field(default_factory=list)

    def add(self, item):
        self.items.append(item)

    def total(self):
        return sum(item.price * item.count for item in self.items)


def discounted(total):
    if total > 10_000:
        return total * 0.9
    return total


def shipping(total):
    if total > 5_000:
        return 0
    return 490


def invoice(cart):
    lines = []
    for item in cart.items:
        lines.append(item.name + " " + str(item.price * item.count))
    lines.append("Shipping " + str(shipping(cart.total())))
    return "\\n".join(lines)
'''

GUIDE: Final = """\
# The shop

A small shop in Python.

- Prices are in cents.
- Orders above 100 euros cost less.

## Run it

    python -m shop
"""

TESTS: Final = """\
from shop.cart import Cart, Item, discounted


def test_a_new_cart_costs_nothing():
    assert Cart().total() == 0


def test_large_orders_cost_less():
    assert discounted(20_000) == 18_000
"""


def done(folder: Path, *words: str) -> str:
    """Run `cas`, which must succeed; return its output."""
    ran = cas(*words, folder=folder)
    assert ran.status == 0, ran.said
    return ran.text


def png(red: int, green: int, blue: int, *, side: int = 48) -> bytes:
    """Return a square image of one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes((red, green, blue)) * side) * side
    packed = zlib.compress(rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def new_project(folder: Path) -> Path:
    """Make a workspace with a small shop in it, and a baseline of it."""
    (folder / "shop").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "shop/cart.py").write_text(CART)
    (folder / "shop/old_names.py").write_text("BASKET = 'cart'\n")
    (folder / "shop/run.sh").write_text("#!/bin/sh\nexec python -m shop\n")
    (folder / "shop/limits.ini").write_text("[limits]\nitems=40\n  price=9000\nname=shop\n")
    (folder / "tests/test_cart.py").write_text(TESTS)
    (folder / "README.md").write_text(GUIDE)
    (folder / "logo.png").write_bytes(png(200, 60, 40))
    (folder / "prices.bin").write_bytes(bytes(range(256)) * 4)
    done(folder, "init")
    done(folder, "record")
    return folder


def agents_worked(folder: Path) -> tuple[ClaudeCode, Codex]:
    """Let two agents work in the project of `new_project`; return them. The second one's turn has not ended."""
    first = ClaudeCode(folder, "first")
    first.start()
    first.ask("Large orders should cost less, and the invoice should say what a customer saves.")
    cart = CART.replace("total * 0.9", "total * 85 // 100").replace("> 5_000", "> 4_000")
    first.write("shop/cart.py", cart)
    cart = cart.replace(
        '    lines.append("Shipping " + str(shipping(cart.total())))\n',
        '    total = cart.total()\n    saved = total - discounted(total)\n    lines.append(f"You save {saved}")\n'
        '    lines.append(f"Shipping {shipping(total)}")\n',
    )
    first.write("shop/cart.py", cart)
    first.write("tests/test_cart.py", TESTS.replace("18_000", "17_000"))
    first.stop()
    first.ask("Now tidy up: names, the guide and the logo. Keep the tests green.")
    first.run("mv shop/old_names.py shop/names.py && chmod +x shop/run.sh")
    first.write("shop/limits.ini", "[limits]\nitems=40\nprice=9000\nname=shop\n")
    first.write("README.md", GUIDE.replace("cost less.", "cost **15 %** less.") + "\n## Test it\n\n    pytest\n")
    first.calls += 1
    first.tell(first.write_event("logo.png", "", before=True))
    (folder / "logo.png").write_bytes(png(30, 110, 200))
    first.tell(first.write_event("logo.png", "", before=False))
    first.run("printf 'more' >> prices.bin")
    first.write(HOSTILE_NAME, HOSTILE_TEXT)
    first.stop()
    second = Codex(folder, "second")
    second.start()
    second.ask("Let shipping depend on the country.")
    cart = cart.replace("def shipping(total):\n", 'def shipping(total, country="DE"):\n')
    cart = cart.replace("if total > 4_000:", 'if total > 4_000 and country == "DE":')
    cart = cart.replace("    return 490\n", '    return 490 if country == "DE" else 990\n')
    second.calls += 1
    second.tell(second.write_event("shop/cart.py", cart, before=True))
    (folder / "shop/cart.py").write_text(cart)
    second.tell(second.write_event("shop/cart.py", cart, before=False))
    second.run("printf 'HOME = \"DE\"\\n' > shop/countries.py")
    return first, second


def changed_outside(folder: Path) -> None:
    """Change a file as a person does, without recording it."""
    path = folder / "tests/test_cart.py"
    path.write_text(path.read_text() + "\n\ndef test_by_hand():\n    pass\n")
