"""Find out what a Python source defines, imports and uses, with `symtable` for its scopes and `ast` for lines.

A name counts as undefined if no scope of the source binds it and it is no builtin, as for pyflakes. Where that can't be
known, as after a star import, the facts say so, and nothing is claimed.
"""

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterator
from typing import Final, TypeVar, cast

from msgpack import packb, unpackb

from objstore.values.fastclass import NamedTuple

__all__ = ["NO_NAMES", "Import", "PythonNames", "imported_words", "packed", "python_names", "unpacked"]

_MODULE_NAMES: Final = frozenset(dir(builtins)) | {
    *("__file__", "__path__", "__annotations__", "__module__", "__qualname__", "__builtins__", "WindowsError"),
    *("__class__", "__dict__"),
}
_IMPORT_TOLERATED: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NAME_TOLERATED: Final = frozenset({"NameError", "UnboundLocalError"})
_IMPORT_LINE: Final = re.compile(rb"\n[ \t]*(?:from|import)\b([^#\n(]*(?:\([^)]*\))?)")
"""A line that imports, and the end of the line before it: a pattern that begins with a letter is found faster."""

_WORD: Final = re.compile(rb"\w+")
_TAKE_TYPES: Final = frozenset({"cast", "TypeVar"})
_NEWER: Final = (
    rb"^[ \t]*type[ \t]+\w+[ \t]*[=\[]|^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+[ \t]*\[|"
    rb"\b[rR]?[ftFT][rR]?[\"']|^[ \t]*except\b[^(:]*,|^[ \t]*lazy[ \t]"
)
"""Lines that a newer Python than this one may be able to read: of those, nothing is said."""


class Import(NamedTuple):
    """One name that a source imports."""

    module: str  # dotted; "": the package itself, as in `from . import name`
    level: int  # dots in front
    name: str  # "": the module itself; "*": all of it
    line: int


class PythonNames(NamedTuple):
    """What a source defines, imports and uses at the level of its module."""

    error: str = ""  # why it is no Python ("": it is), and where
    defined: frozenset[str] = frozenset()  # names that the module has
    is_open: bool = False  # whether it may have others, as by `__getattr__` or changes of `globals()`
    exported: tuple[str, ...] | None = None  # names in `__all__`; None: it has none
    undefined: tuple[tuple[str, int], ...] = ()  # names that nothing in it binds, each with the line of its first use
    imports: tuple[Import, ...] = ()


NO_NAMES: Final = PythonNames()
"""Those of an empty file."""


def imported_words(source: bytes) -> bytes:
    """Return the words of the lines that import, each once, with a space around: a quick test of what it may import."""
    words = {word for found in _IMPORT_LINE.finditer(b"\n" + source) for word in _WORD.findall(found[1])}
    return b" " + b" ".join(sorted(words)) + b" "


def python_names(source: bytes) -> PythonNames:
    """Return the names of a source."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            table = symtable.symtable(_decoded(source), "source", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        if re.search(_NEWER, b"".join(source.splitlines()[max(0, line - 1) : line])):
            return PythonNames(is_open=True)
        return PythonNames(error=f"{getattr(error, 'msg', '') or error} (line {line})")
    try:
        return _Reading(tree, table).names()
    except RecursionError:
        return PythonNames(is_open=True)


def packed(names: PythonNames) -> bytes:
    """Return names as bytes, for a cache."""
    exported = None if names.exported is None else list(names.exported)
    body: bytes = packb(
        (names.error, sorted(names.defined), names.is_open, exported, names.undefined, names.imports),
        unicode_errors="surrogatepass",
    )
    return body


def unpacked(body: bytes) -> PythonNames:
    """Return the names that `packed` packed."""
    error, defined, is_open, exported, undefined, imports = unpackb(body, unicode_errors="surrogatepass")
    return PythonNames(
        error=error,
        defined=frozenset(defined),
        is_open=is_open,
        exported=None if exported is None else tuple(exported),
        undefined=tuple((name, line) for name, line in undefined),
        imports=tuple(Import(*each) for each in imports),
    )


# ---- inside


def _decoded(source: bytes) -> str:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


_Node = TypeVar("_Node", bound=ast.AST)


def _nodes_by_type(tree: ast.AST) -> dict[type, list[ast.AST]]:
    """Return all nodes of a tree by their type, those further up first: what `ast.walk` yields, in less time."""
    found: dict[type, list[ast.AST]] = {}
    nodes = [tree]
    for node in nodes:
        found.setdefault(type(node), []).append(node)
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [each for each in value if isinstance(each, ast.AST)]
    return found


class _Reading:
    """One source, while its names are collected."""

    def __init__(self, tree: ast.Module, table: symtable.SymbolTable) -> None:
        self._tree = tree
        self._table = table
        self._nodes = _nodes_by_type(tree)
        self._lines: dict[str, list[int]] = {}
        for node in self._of(ast.Name):
            self._lines.setdefault(node.id, []).append(node.lineno)

    def _of(self, *types: type[_Node]) -> Iterator[_Node]:
        for each in types:
            yield from cast("list[_Node]", self._nodes.get(each, ()))

    def names(self) -> PythonNames:
        defined = frozenset(self._defined())
        exported = self._exported()
        return PythonNames(
            defined=defined - self._deleted(),
            is_open=self._is_open(defined),
            exported=exported,
            undefined=tuple(sorted(self._undefined(defined, exported).items(), key=lambda each: (each[1], each[0]))),
            imports=tuple(self._imports()),
        )

    def _defined(self) -> Iterator[str]:
        for symbol in self._table.get_symbols():
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                yield symbol.get_name()
        for table in _tables(self._table):
            for symbol in table.get_symbols():
                is_bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
                if is_bound and symbol.is_declared_global():
                    yield symbol.get_name()

    def _deleted(self) -> set[str]:
        """Return the names that the module has no more when it has run, because `del` is the last word on them."""
        found: set[str] = set()
        for node in self._tree.body if any(self._of(ast.Delete)) else ():
            if isinstance(node, ast.Delete):
                found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
            elif found:
                found -= _bound_in(node)
        return found

    def _is_open(self, defined: frozenset[str]) -> bool:
        if "__getattr__" in defined:
            return True
        # `globals()[name] = value`, `globals().update(...)`, `vars()`, `exec(...)` at the level of the module.
        return any(
            isinstance(node.func, ast.Name) and node.func.id in {"globals", "exec", "vars"}
            for node in self._of(ast.Call)
        )

    def _exported(self) -> tuple[str, ...] | None:
        """Return the names in `__all__`, as far as they are written there."""
        found: list[str] | None = None
        for node in self._tree.body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                    | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
                ):
                    found = [*_texts(value)]
                case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                    found = [*(found or ()), *_texts(value)]
        return None if found is None else tuple(found)

    def _undefined(self, defined: frozenset[str], exported: tuple[str, ...] | None) -> dict[str, int]:
        known = defined | _MODULE_NAMES
        tolerated = self._tolerated()
        found: dict[str, int] = {}
        for table in (self._table, *_tables(self._table)):
            is_module = table.get_type() == "module"
            for symbol in table.get_symbols():
                name = symbol.get_name()
                is_used = symbol.is_referenced() and (is_module or symbol.is_global())
                if is_used and name not in known and name not in tolerated:
                    line = self._line_of(name, table.get_lineno())
                    found[name] = min(line, found.get(name, line))
        bound = known | self._bound_anywhere()
        for name, line in self._in_annotations():
            if name not in bound:
                found.setdefault(name, line)
        for name, line in (*self._only_deleted(), *self._used_first(known)):
            if name not in _MODULE_NAMES | tolerated:
                found.setdefault(name, line)
        for name in exported or ():
            if name not in known and "__getattr__" not in known:
                found.setdefault(name, self._line_of("__all__", 1))
        return found

    def _line_of(self, name: str, first: int) -> int:
        lines = self._lines.get(name, [first])
        return min((line for line in lines if line >= first), default=min(lines))

    def _bound_anywhere(self) -> set[str]:
        return {
            symbol.get_name()
            for table in _tables(self._table)
            for symbol in table.get_symbols()
            if symbol.is_local() or symbol.is_parameter()
        }

    def _tolerated(self) -> set[str]:
        """Return the names that are used where an error of the name is caught."""
        found: set[str] = set()
        for node in self._of(ast.Try):
            if any(_catches(each, _NAME_TOLERATED) and not _raises_again(each) for each in node.handlers):
                found |= {inner.id for part in node.body for inner in ast.walk(part) if isinstance(inner, ast.Name)}
        return found

    def _only_deleted(self) -> Iterator[tuple[str, int]]:
        """Yield what `del` removes, and nothing binds: for `symtable` it is bound."""
        deleted = [each for node in self._of(ast.Delete) for each in node.targets if isinstance(each, ast.Name)]
        bound = _bound_in(self._tree) if deleted else set()
        yield from ((each.id, each.lineno) for each in deleted if each.id not in bound)

    def _used_first(self, known: frozenset[str]) -> Iterator[tuple[str, int]]:
        """Yield what the body of a function, a class or the module uses before anything in it binds it."""
        yield from _unbound(self._tree.body, self._bound_outside() | _MODULE_NAMES)
        for node in (each for each in self._tree.body if isinstance(each, ast.ClassDef)):
            yield from _unbound(node.body, known)
        functions: list[ast.FunctionDef | ast.AsyncFunctionDef]
        functions = [*self._of(ast.FunctionDef), *self._of(ast.AsyncFunctionDef)]
        for function in functions:
            given = function.args
            names = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from _unbound(function.body, frozenset(each.arg for each in names if each is not None))

    def _bound_outside(self) -> frozenset[str]:
        """Return the names of the module that functions bind, or that a star may bring."""
        bound = {name for node in self._of(ast.Global) for name in node.names}
        stars = any(each.name == "*" for node in self._of(ast.ImportFrom) for each in node.names)
        return frozenset(bound | set(self._lines)) if stars else frozenset(bound)

    def _in_annotations(self) -> Iterator[tuple[str, int]]:
        """Yield the names in annotations: `symtable` knows none in texts, nor any with the future import of them."""
        for node in self._of(ast.arg, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef):
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                if isinstance(annotation, ast.expr):
                    yield from _names_in(annotation)
        typing = {"typing", "typing_extensions", "t"}
        own = {
            each.asname or each.name
            for node in self._of(ast.ImportFrom)
            if node.module in typing
            for each in node.names
            if each.name in _TAKE_TYPES
        }
        for call in self._of(ast.Call):
            match call.func:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module in typing and name in _TAKE_TYPES:
                    yield from _types_given(call, name)
                case ast.Name(id=name) if name in own:
                    yield from _types_given(call, name)

    def _imports(self) -> Iterator[Import]:
        caught = {
            inner
            for node in self._of(ast.Try)
            if any(_catches(handler, _IMPORT_TOLERATED) for handler in node.handlers)
            for part in node.body
            for inner in ast.walk(part)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        }
        for plain in self._of(ast.Import):
            if plain not in caught:
                yield from (Import(each.name, 0, "", plain.lineno) for each in plain.names)
        for node in self._of(ast.ImportFrom):
            if node not in caught:
                yield from (Import(node.module or "", node.level, each.name, node.lineno) for each in node.names)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _tables(child)


def _texts(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.List | ast.Tuple):
        for each in value.elts:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
    elif isinstance(value, ast.BinOp):
        yield from _texts(value.left)
        yield from _texts(value.right)


def _types_given(call: ast.Call, name: str) -> Iterator[tuple[str, int]]:
    """Yield the names in the arguments of `cast` or `TypeVar` that are types, maybe as texts."""
    others = [*call.args[1:], *(each.value for each in call.keywords)]
    for given in call.args[:1] if name == "cast" else others:
        yield from _names_in(given)


def _bound_in(tree: ast.AST) -> set[str]:
    """Return the names that are bound anywhere in a tree."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                found.add(name)
            case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                found.add(name)
    return found


def _unbound(body: list[ast.stmt], bound: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield what some statements of one scope use before they bind it, each with its line. `bound`: is from the start.

    What a loop binds counts as bound from its beginning, and what one branch binds in all that follows.
    """
    events = [event for statement in body for event in _events(statement)]
    own = {name for name, line in events if not line} - bound
    for name, line in events:
        if not line:
            own.discard(name)
        elif name in own:
            own.discard(name)
            yield name, line


def _events(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node uses, with lines, and binds (line 0), in the order in which that happens.

    Without what runs later or has a scope of its own.
    """
    match node:
        case ast.Name(id=name, ctx=ctx):
            yield name, node.lineno if isinstance(ctx, ast.Load) else 0
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from ((name, 0) for name in _bound_in(node))
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            for part in (*node.decorator_list, *_run_at_once(node)):
                yield from _events(part)
            yield node.name, 0
            yield from (
                (name, 0) for inner in ast.walk(node) if isinstance(inner, ast.Nonlocal) for name in inner.names
            )
            return
        case ast.For() | ast.AsyncFor() | ast.While():
            yield from ((name, 0) for name in _bound_in(node))
        case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
            yield from _events(node.value)
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, node.lineno
        case ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            yield from ((name, 0) for name in (_bound_in(node) or getattr(node, "names", set[str]())))
            return
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() | ast.MatchMapping():
            yield (node.rest if isinstance(node, ast.MatchMapping) else node.name) or "", 0
    for child in ast.iter_child_nodes(node):
        if not (child is getattr(node, "value", None) and isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)):
            yield from _events(child)


def _run_at_once(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.expr]:
    """Return the defaults of a function, or the bases of a class."""
    if isinstance(node, ast.ClassDef):
        return [*node.bases, *(each.value for each in node.keywords)]
    return [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]


def _catches(handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(each, ast.Name) and each.id in names for each in types)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler of all errors only cleans up, and lets the error go on."""
    return handler.type is None and any(isinstance(each, ast.Raise) and each.exc is None for each in handler.body)


def _names_in(annotation: ast.expr) -> Iterator[tuple[str, int]]:
    """Yield the names in an annotation and in its texts, without those that are values, as in `Literal["a"]`."""
    if isinstance(annotation, ast.Name):
        yield annotation.id, annotation.lineno
        return
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            inner = ast.parse(annotation.value.strip(), mode="eval")
        except (SyntaxError, ValueError):
            return
        yield from ((node.id, annotation.lineno) for node in ast.walk(inner) if isinstance(node, ast.Name))
        return
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).rpartition(".")[2] in {
        "Literal",
        "Annotated",
    }:
        yield from _names_in(annotation.value)
        return
    for child in ast.iter_child_nodes(annotation):
        if isinstance(child, ast.expr):
            yield from _names_in(child)
