"""Find out what a JavaScript or TypeScript source defines, imports, exports and uses, with tree-sitter's grammars.

The grammars are the extra `editledger[syntax]`. A name counts as undefined if nothing around its use binds it. Where
that can't be known, the facts say so, and nothing is claimed.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgpack import packb, unpackb

from objstore.text.needs.script_tree import Node, first_error, is_text, line_of, parsed, text_of
from objstore.text.needs.source_kinds import grammar_of
from objstore.values.fastclass import NamedTuple

__all__ = ["DECLARES_GLOBAL", "ScriptImport", "ScriptNames", "imported_files", "packed", "script_names", "unpacked"]

DECLARES_GLOBAL: Final = b"declare-global"
"""A word that `imported_files` returns for a source that declares names for all others."""

_IMPORT: Final = re.compile(
    rb"""(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(?:"(\.[^"\n]*)"|'(\.[^'\n]*)')""",
)
_GLOBAL: Final = re.compile(rb"\bdeclare\s+global\b")
_GLOBAL_COMMENT: Final = re.compile(rb"/\*\s*(?:global|globals|exported)\s([^*]*)\*/")
_ENDING: Final = re.compile(rb"(?:\.d)?\.[mc]?[jt]sx?$")
_WORD: Final = re.compile(r"[\w$]+")
_TYPE_STAR: Final = re.compile(rb"(^[ \t]*export\s+)type(\s+\*)", re.MULTILINE)

_FUNCTIONS: Final = frozenset(
    [
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "function_signature",
        "arrow_function",
        "method_definition",
        "method_signature",
        "abstract_method_signature",
        "call_signature",
        "construct_signature",
        "function_type",
        "constructor_type",
    ]
)
_CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
_NAMED_OUTSIDE: Final = frozenset(
    [
        "function_declaration",
        "generator_function_declaration",
        "function_signature",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
    ]
)
_NO_REFERENCES: Final = frozenset(
    [
        "property_identifier",
        "private_property_identifier",
        "statement_identifier",
        "meta_property",
        "comment",
        "string",
        "number",
        "regex",
        "predefined_type",
        "hash_bang_line",
        "this",
        "super",
    ]
)
_DECLARATIONS: Final = frozenset({"lexical_declaration", "variable_declaration"})


class ScriptImport(NamedTuple):
    """One name that a source imports from another file of the same program."""

    source: str  # as it is written: a path relative to the folder of the source, which begins with a dot
    name: str  # "": the module itself; "*": all that it exports, exported again
    line: int


class ScriptNames(NamedTuple):
    """What a source defines, exports, imports and uses."""

    error: str = ""  # why it can't be read ("": it can), and where
    exported: frozenset[str] = frozenset()  # names that others can import
    is_open: bool = False  # whether it may export others, as by `module.exports = f()`
    is_commonjs: bool = False  # whether `module.exports` has what it exports: any import of `default` has that
    is_script: bool = False  # whether it is no module: what it defines, all scripts of a page have
    defined: frozenset[str] = frozenset()  # names of its outermost scope
    ambient: frozenset[str] = frozenset()  # names that it declares for all sources
    undefined: tuple[tuple[str, int], ...] = ()  # names that nothing in it binds, each with the line of its first use
    imports: tuple[ScriptImport, ...] = ()


def imported_files(source: bytes) -> bytes:
    """Return the last words of the paths that a source imports, each once, with a space around."""
    words = {_ENDING.sub(b"", (a or b).rstrip(b"/").rpartition(b"/")[2]) for a, b in _IMPORT.findall(source)}
    words = {b"index" if word in {b"", b".", b".."} else word.replace(b" ", b"_") for word in words}
    if _GLOBAL.search(source):
        words.add(DECLARES_GLOBAL)
    return b" " + b" ".join(sorted(words)) + b" "


def script_names(source: bytes, path: str) -> ScriptNames:
    """Return the names of a source. `path`: says by its ending which grammar it has."""
    source = _TYPE_STAR.sub(rb"\1    \2", source)  # which the grammar doesn't have: a star alone leads to the same
    root = parsed(source, grammar_of(path))
    if root.has_error:
        return ScriptNames(error=f"syntax error (line {first_error(root)})", is_open=True)
    try:
        return _Reading(source, root, path).names()
    except RecursionError:
        return ScriptNames(is_open=True)


def packed(names: ScriptNames) -> bytes:
    """Return names as bytes, for a cache."""
    sets = (sorted(names.exported), sorted(names.defined), sorted(names.ambient))
    kinds = (names.is_open, names.is_commonjs, names.is_script)
    body: bytes = packb((names.error, *kinds, *sets, names.undefined, names.imports))
    return body


def unpacked(body: bytes) -> ScriptNames:
    """Return the names that `packed` packed."""
    error, is_open, is_commonjs, is_script, exported, defined, ambient, undefined, imports = unpackb(body)
    return ScriptNames(
        error=error,
        is_open=is_open,
        is_commonjs=is_commonjs,
        is_script=is_script,
        exported=frozenset(exported),
        defined=frozenset(defined),
        ambient=frozenset(ambient),
        undefined=tuple((name, line) for name, line in undefined),
        imports=tuple(ScriptImport(*each) for each in imports),
    )


# ---- inside


class _Scope:
    """The names that a function, a block, a class, a type or the source binds."""

    __slots__ = ("function", "is_open", "names", "parent")

    def __init__(self, parent: "_Scope | None" = None, *, is_block: bool = False) -> None:
        self.parent = parent
        self.function: _Scope = self if parent is None or not is_block else parent.function  # which has its `var`
        self.names: set[str] = set()
        self.is_open = False  # whether it may have other names: a namespace goes on in other places, `with`

    def has(self, name: str) -> bool:
        scope: _Scope | None = self
        while scope is not None:
            if scope.is_open or name in scope.names:
                return True
            scope = scope.parent
        return False


class _Reading:
    """One source, while its names are collected."""

    def __init__(self, source: bytes, root: Node, path: str) -> None:
        self._source = source
        self._root = root
        self._path = path
        self._top = _Scope()
        self._used: list[tuple[str, int, _Scope]] = []
        self._exported: set[str] = set()
        self._ambient: set[str] = set()
        self._imports: list[ScriptImport] = []
        self._is_module = False
        self._is_commonjs = False
        self._is_open = False
        self._tolerated = 0  # how many `try` blocks are around

    def names(self) -> ScriptNames:
        self._children(self._root, self._top)
        noted = {
            word for found in _GLOBAL_COMMENT.findall(self._source) for word in _WORD.findall(found.decode("latin-1"))
        }
        undefined: dict[str, int] = {}
        for name, line, scope in self._used:
            if name not in noted and not scope.has(name):
                undefined.setdefault(name, line)
        is_script = not (self._is_module or self._is_commonjs)
        ambient = self._ambient | (self._top.names if is_script and self._path.endswith(".d.ts") else set())
        return ScriptNames(
            exported=frozenset(self._exported),
            is_open=self._is_open or is_script,
            is_commonjs=self._is_commonjs and not self._is_module,
            is_script=is_script,
            defined=frozenset(self._top.names),
            ambient=frozenset(ambient),
            undefined=tuple(sorted(undefined.items(), key=lambda each: (each[1], each[0]))),
            imports=tuple(self._imports),
        )

    # ---- the tree

    def _children(self, node: Node, scope: _Scope) -> None:
        for child in node.named_children:
            self._visit(child, scope)

    def _visit(self, node: Node, scope: _Scope) -> None:
        kind = node.type
        if kind in _NO_REFERENCES:
            return
        if (
            kind in {"identifier", "type_identifier", "shorthand_property_identifier"}
            or kind == "shorthand_property_identifier_pattern"
        ):
            self._use(node, scope)
        elif kind in _FUNCTIONS:
            self._function(node, scope)
        elif kind in _CLASSES or kind in {"interface_declaration", "type_alias_declaration", "enum_declaration"}:
            self._type(node, scope)
        else:
            visit = _VISITS.get(kind)
            if visit is None:
                self._children(node, scope)
            else:
                visit(self, node, scope)

    def _use(self, node: Node, scope: _Scope) -> None:
        name = text_of(node)
        if name in {"exports", "module"} and not scope.has(name):
            self._is_commonjs = self._is_open = True  # it is used as a whole
        self._used.append((name, line_of(node), scope))

    def _fields(self, node: Node, scope: _Scope, *left_out: str) -> None:
        for at, child in enumerate(node.children):
            if child.is_named and node.field_name_for_child(at) not in left_out:
                self._visit(child, scope)

    def _function(self, node: Node, scope: _Scope) -> None:
        name = node.child_by_field_name("name")
        inner = _Scope(scope)
        if name is not None:
            if name.type in {"identifier", "type_identifier"}:
                # Outside of strict code, what a block declares is there in the function too.
                (scope.function if node.type in _NAMED_OUTSIDE else inner).names.add(text_of(name))
            else:
                self._visit(name, scope)
        if node.type == "arrow_function" and (alone := node.child_by_field_name("parameter")) is not None:
            self._bind(alone, inner)
        inner.names.add("arguments")
        self._fields(node, inner, "name", "parameter")

    def _type(self, node: Node, scope: _Scope) -> None:
        """Read a class, an interface, a type alias or an enumeration."""
        name = node.child_by_field_name("name")
        inner = _Scope(scope)
        if name is not None:
            (scope if node.type in _NAMED_OUTSIDE else inner).names.add(text_of(name))
        if node.type == "enum_declaration" and (body := node.child_by_field_name("body")) is not None:
            for member in body.named_children:
                own = member.child_by_field_name("name") or member
                inner.names.add(text_of(own).strip("'\""))
        self._fields(node, inner, "name")

    # ---- what binds names

    def _bind(self, node: Node, scope: _Scope) -> None:
        """Bind the names of a pattern; visit its default values and computed names."""
        match node.type:
            case "identifier" | "shorthand_property_identifier_pattern" | "type_identifier":
                scope.names.add(text_of(node))
            case "object_pattern" | "array_pattern" | "rest_pattern" | "formal_parameters":
                for child in node.named_children:
                    self._bind(child, scope)
            case "pair_pattern":
                for field in ("key", "value"):
                    part = node.child_by_field_name(field)
                    if part is not None:
                        (self._bind if field == "value" else self._visit)(part, scope)
            case "assignment_pattern" | "object_assignment_pattern":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                if left is not None:
                    self._bind(left, scope)
                if right is not None:
                    self._visit(right, scope)
            case "required_parameter" | "optional_parameter":
                self.parameter(node, scope)
            case _:
                self._visit(node, scope)

    def parameters(self, node: Node, scope: _Scope) -> None:
        for child in node.named_children:
            self._bind(child, scope)

    def parameter(self, node: Node, scope: _Scope) -> None:
        pattern = node.child_by_field_name("pattern")
        if pattern is not None:
            self._bind(pattern, scope)
        self._fields(node, scope, "pattern", "name")  # a name: of an element of a tuple

    def declarator(self, node: Node, scope: _Scope) -> None:
        self._declare(node, scope, scope)

    def _declare(self, node: Node, scope: _Scope, binding: _Scope) -> None:
        """Read what declares a variable: its names are those of `binding`."""
        pattern, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if pattern is not None:
            self._bind(pattern, binding)
        source = None if value is None else self._required(value)
        if source is not None and pattern is not None and pattern.type == "object_pattern":
            for child in pattern.named_children:
                key = child.child_by_field_name("key") or child.child_by_field_name("left") or child
                if key.type in {"property_identifier", "shorthand_property_identifier_pattern"}:
                    self._import(source, text_of(key), child)
        self._fields(node, scope, "name")

    def for_in(self, node: Node, scope: _Scope) -> None:
        left, kind = node.child_by_field_name("left"), node.child_by_field_name("kind")
        inner = _Scope(scope, is_block=True)
        if left is not None and kind is not None:
            self._bind(left, inner.function if kind.type == "var" else inner)
        elif left is not None:
            self._visit(left, scope)
        self._fields(node, inner, "left")

    def block(self, node: Node, scope: _Scope) -> None:
        self._children(node, _Scope(scope, is_block=True))

    def var(self, node: Node, scope: _Scope) -> None:
        for child in node.named_children:
            if child.type == "variable_declarator":
                self._declare(child, scope, scope.function)

    def catch(self, node: Node, scope: _Scope) -> None:
        caught = node.child_by_field_name("parameter")
        inner = _Scope(scope, is_block=True)
        if caught is not None:
            self._bind(caught, inner)
        self._fields(node, inner, "parameter")

    def named(self, node: Node, scope: _Scope) -> None:
        """Bind the name of a type parameter, of an index signature or of a mapped type."""
        name = node.child_by_field_name("name")
        if name is not None:
            scope.names.add(text_of(name))
        self._fields(node, scope, "name")

    def infer(self, node: Node, scope: _Scope) -> None:
        first, *others = node.named_children
        scope.names.add(text_of(first))
        for child in others:
            self._visit(child, scope)

    # ---- what is no use of a name

    def qualified(self, node: Node, scope: _Scope) -> None:
        """Visit what is in front of the first dot of a name such as `A.B.C`."""
        first = node.child_by_field_name("module") or node.child_by_field_name("object")
        if first is not None:
            self._visit(first, scope)

    def predicate(self, node: Node, scope: _Scope) -> None:
        self._fields(node, scope, "name")

    def unary(self, node: Node, scope: _Scope) -> None:
        inner = node.child_by_field_name("argument")
        operator = node.child_by_field_name("operator")
        is_typeof = operator is not None and operator.type == "typeof"
        if inner is not None and not (is_typeof and inner.type == "identifier"):
            self._visit(inner, scope)

    def element(self, node: Node, scope: _Scope) -> None:
        """Read a tag of JSX: one that begins with a small letter is of HTML."""
        name = node.child_by_field_name("name")
        if name is not None and (name.type != "identifier" or not text_of(name)[:1].islower()):
            self._visit(name, scope)
        self._fields(node, scope, "name")

    # ---- modules

    def _import(self, source: str, name: str, node: Node) -> None:
        if source.startswith(".") and not self._tolerated:
            self._imports.append(ScriptImport(source, name, line_of(node)))

    def import_statement(self, node: Node, scope: _Scope) -> None:
        self._is_module = True
        source = self._source_of(node)
        for clause in node.named_children:
            match clause.type:
                case "import_clause":
                    self._import_clause(clause, source, scope)
                case "import_require_clause":
                    scope.names.update(text_of(each) for each in clause.named_children if each.type == "identifier")
                    source = self._source_of(clause)
                case "identifier":  # `import type X = ...`
                    scope.names.add(text_of(clause))
        if source:
            self._import(source, "", node)

    def _import_clause(self, clause: Node, source: str, scope: _Scope) -> None:
        for each in clause.named_children:
            match each.type:
                case "identifier":
                    scope.names.add(text_of(each))
                    self._import(source, "default", each)
                case "namespace_import":
                    scope.names.update(map(text_of, each.named_children))
                case "named_imports":
                    for one in each.named_children:
                        name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                        if name is not None:
                            scope.names.add(text_of(alias or name))
                            self._import(source, text_of(name).strip("'\""), one)

    def import_alias(self, node: Node, scope: _Scope) -> None:
        first, *others = node.named_children
        scope.names.add(text_of(first))
        for other in others:
            self._visit(other, scope)

    def export_statement(self, node: Node, scope: _Scope) -> None:
        self._is_module = self._is_module or scope is self._top
        tokens = {child.type for child in node.children}
        source = self._source_of(node)
        if "default" in tokens:
            self._exported.add("default")
        if "=" in tokens:
            self._is_open = True
        if "namespace" in tokens:  # `export as namespace Name`
            return
        if source:
            self._import(source, "", node)
        if source and "*" in tokens:
            self._import(source, "*", node)
            self._is_open = self._is_open or not source.startswith(".") or bool(self._tolerated)
        for child in node.named_children:
            if child.type == "namespace_export":
                self._exported.update(text_of(name).strip("'\"") for name in child.named_children)
            elif child.type == "export_clause":
                self._export_clause(child, source, scope)
            elif child.type != "string":
                self._visit(child, scope)
        declaration = node.child_by_field_name("declaration")
        if declaration is not None and scope is self._top and "default" not in tokens:
            self._exported.update(_declared(declaration))

    def _export_clause(self, clause: Node, source: str, scope: _Scope) -> None:
        for one in clause.named_children:
            name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
            if name is None:
                continue
            self._exported.add(text_of(alias or name).strip("'\""))
            if source:
                self._import(source, text_of(name).strip("'\""), one)
            else:
                self._use(name, scope)

    def namespace(self, node: Node, scope: _Scope) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or name.type == "string":
            return  # what is known of another module
        scope.names.add(text_of(name).partition(".")[0])
        inner = _Scope(scope)
        inner.is_open = True  # it may go on in another place
        if body is not None:
            self._children(body, inner)

    def declared_outside(self, node: Node, scope: _Scope) -> None:
        """Read `declare ...`: of these, `declare global` is for all sources."""
        body = next((child for child in node.named_children if child.type == "statement_block"), None)
        if body is None:
            self._children(node, scope)
            return
        inner = _Scope(scope)
        self._children(body, inner)
        self._ambient |= inner.names

    def _source_of(self, node: Node) -> str:
        source = node.child_by_field_name("source")
        return "" if source is None else text_of(source)[1:-1]

    # ---- CommonJS

    def _required(self, node: Node) -> str | None:
        """Return what `require("...")` requires (None: it is no such call)."""
        if node.type == "await_expression" and node.named_children:
            node = node.named_children[0]
        called = node.child_by_field_name("function") if node.type == "call_expression" else None
        given = node.child_by_field_name("arguments")
        if called is None or given is None or not given.named_children:
            return None
        first = given.named_children[0]
        is_one = called.type == "import" or (called.type == "identifier" and text_of(called) == "require")
        return text_of(first)[1:-1] if is_one and first.type == "string" else None

    def call(self, node: Node, scope: _Scope) -> None:
        source = self._required(node)
        called = node.child_by_field_name("function")
        if source is not None:
            self._is_commonjs = self._is_commonjs or (called is not None and called.type == "identifier")
            self._import(source, "", node)
        if called is not None and called.type == "identifier" and text_of(called) == "eval":
            self._top.is_open = True
        given = node.child_by_field_name("arguments")
        if called is not None and given is not None and is_text(called, "Object.defineProperty"):
            target, *others = given.named_children or [called]
            name = others[0] if others else None
            if _is_exports(target) and name is not None and name.type == "string":
                self._is_commonjs = True
                self._exported.add(text_of(name)[1:-1])
                for other in others:
                    self._visit(other, scope)
                return
        self._children(node, scope)

    def member(self, node: Node, scope: _Scope) -> None:
        of, name = node.child_by_field_name("object"), node.child_by_field_name("property")
        if of is None or name is None:
            return
        source = self._required(of)
        if source is not None:
            self._import(source, text_of(name), node)
        if _is_exports(of) and not scope.has("exports"):
            self._is_commonjs = True
        elif is_text(of, "module") and text_of(name) != "exports":
            return  # such as `module.hot`, `module.id`
        else:
            self._visit(of, scope)

    def assignment(self, node: Node, scope: _Scope) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if _is_exports(left) and not scope.has("exports"):
            self._is_commonjs = True
            self._export_object(right)
        elif left.type == "member_expression" and (of := left.child_by_field_name("object")) is not None:
            name = left.child_by_field_name("property")
            if _is_exports(of) and name is not None and not scope.has("exports"):
                self._is_commonjs = True
                self._exported.add(text_of(name))
            else:
                self._visit(left, scope)
        else:
            self._visit(left, scope)
        self._visit(right, scope)

    def _export_object(self, value: Node) -> None:
        """Note what `module.exports = value` exports."""
        if value.type == "assignment_expression":
            return  # it is noted by itself
        if value.type != "object":
            self._is_open = True
            return
        for each in value.named_children:
            key = each.child_by_field_name("key") or each.child_by_field_name("name") or each
            if key.type in {"property_identifier", "shorthand_property_identifier"}:
                self._exported.add(text_of(key))
            elif key.type == "string":
                self._exported.add(text_of(key)[1:-1])
            elif key.type != "comment":
                self._is_open = True

    def try_(self, node: Node, scope: _Scope) -> None:
        body = node.child_by_field_name("body")
        if body is not None:
            self._tolerated += node.child_by_field_name("handler") is not None
            self._visit(body, scope)
            self._tolerated -= node.child_by_field_name("handler") is not None
        self._fields(node, scope, "body")

    def with_(self, node: Node, scope: _Scope) -> None:
        self._top.is_open = True
        self._children(node, scope)


_VISITS: Final[dict[str, Callable[[_Reading, Node, _Scope], None]]] = {
    "formal_parameters": _Reading.parameters,
    "required_parameter": _Reading.parameter,
    "optional_parameter": _Reading.parameter,
    "variable_declarator": _Reading.declarator,
    "variable_declaration": _Reading.var,
    "for_in_statement": _Reading.for_in,
    "for_statement": _Reading.block,
    "statement_block": _Reading.block,
    "switch_body": _Reading.block,
    "catch_clause": _Reading.catch,
    "type_parameter": _Reading.named,
    "index_signature": _Reading.named,
    "mapped_type_clause": _Reading.named,
    "infer_type": _Reading.infer,
    "nested_type_identifier": _Reading.qualified,
    "nested_identifier": _Reading.qualified,
    "type_predicate": _Reading.predicate,
    "unary_expression": _Reading.unary,
    "jsx_opening_element": _Reading.element,
    "jsx_closing_element": lambda *_: None,
    "jsx_self_closing_element": _Reading.element,
    "import_statement": _Reading.import_statement,
    "import_alias": _Reading.import_alias,
    "export_statement": _Reading.export_statement,
    "internal_module": _Reading.namespace,
    "module": _Reading.namespace,
    "ambient_declaration": _Reading.declared_outside,
    "call_expression": _Reading.call,
    "member_expression": _Reading.member,
    "assignment_expression": _Reading.assignment,
    "try_statement": _Reading.try_,
    "with_statement": _Reading.with_,
}


def _is_exports(node: Node) -> bool:
    return is_text(node, "exports", "module.exports")


def _declared(node: Node) -> Iterator[str]:
    """Yield the names that a declaration declares."""
    if node.type in _DECLARATIONS:
        for declarator in node.named_children:
            pattern = declarator.child_by_field_name("name")
            if pattern is not None:
                yield from _bound(pattern)
        return
    name = node.child_by_field_name("name")
    if name is not None:
        yield text_of(name).partition(".")[0]
        return
    for child in node.named_children:
        if child.type == "identifier":  # `export import A = B.C`
            yield text_of(child)
            return
        yield from _declared(child)


def _bound(pattern: Node) -> Iterator[str]:
    match pattern.type:
        case "identifier" | "shorthand_property_identifier_pattern":
            yield text_of(pattern)
        case "pair_pattern":
            value = pattern.child_by_field_name("value")
            if value is not None:
                yield from _bound(value)
        case "assignment_pattern" | "object_assignment_pattern":
            left = pattern.child_by_field_name("left")
            if left is not None:
                yield from _bound(left)
        case _:
            for child in pattern.named_children:
                yield from _bound(child)
