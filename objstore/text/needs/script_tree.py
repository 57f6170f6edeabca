"""Parse JavaScript and TypeScript with tree-sitter's grammars, which are the extra `editledger[syntax]`.

The types are what is read of trees here: the package that has them may not be installed.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

__all__ = ["Node", "first_error", "is_text", "line_of", "parsed", "text_of"]


class Node(Protocol):
    """A node of a tree, as far as it is read here: the package that has the type is an extra."""

    @property
    def type(self) -> str:
        """Return the kind of the node in its grammar."""

    @property
    def text(self) -> bytes | None:
        """Return its text."""

    @property
    def start_byte(self) -> int:
        """Return where its text begins."""

    @property
    def end_byte(self) -> int:
        """Return where its text ends."""

    @property
    def start_point(self) -> Sequence[int]:
        """Return the line and the column where it begins, zero-based."""

    @property
    def has_error(self) -> bool:
        """Return whether it, or a node in it, is no part of the grammar."""

    @property
    def is_error(self) -> bool:
        """Return whether it is no part of the grammar."""

    @property
    def is_named(self) -> bool:
        """Return whether it is more than a token."""

    @property
    def children(self) -> "Sequence[Node]":
        """Return the nodes in it, tokens included."""

    @property
    def named_children(self) -> "Sequence[Node]":
        """Return the nodes in it that are more than tokens."""

    def child_by_field_name(self, name: str, /) -> "Node | None":
        """Return the node in a field."""

    def field_name_for_child(self, child_index: int, /) -> str | None:
        """Return the field of a child."""


class Tree(Protocol):
    """A source that was parsed."""

    @property
    def root_node(self) -> Node:
        """Return its root."""


class Parser(Protocol):
    """What parses sources of one grammar."""

    def parse(self, source: bytes, /) -> Tree:
        """Parse a source."""


def parsed(source: bytes, grammar: str) -> Node:
    """Return the root of a source's tree."""
    return _parser(grammar).parse(source).root_node


@cache
def _parser(grammar: str) -> Parser:
    import tree_sitter
    import tree_sitter_javascript
    import tree_sitter_typescript

    language = {
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }[grammar]
    parser: Parser = tree_sitter.Parser(tree_sitter.Language(language()))
    return parser


def first_error(root: Node) -> int:
    """Return the line of the first part of a tree that is not of the grammar, 1-based."""
    node = root
    while True:
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None or node.is_error:
            return node.start_point[0] + 1
        node = inner


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Return the line in which a node begins, 1-based."""
    return node.start_point[0] + 1


def is_text(node: Node, *texts: str) -> bool:
    """Return whether a node has one of some texts. Its own may be the whole source."""
    return node.end_byte - node.start_byte <= max(map(len, texts)) and text_of(node) in texts
