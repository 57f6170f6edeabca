"""Compare two texts token by token: whether a formatter may have made one of the other.

What can't be compared soundly counts as another text: then a change is an edit like any other, which a person decides
on.
"""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from typing import Final

from objstore.text.forms import is_either_binary
from objstore.values.fastclass import value

__all__ = ["is_reformatted"]

_LONGEST: Final = 1 << 18
"""Bytes of the longest text that is compared: a hook waits for it."""

_Token = tuple[str, str]
"""The kind of a token and its text."""

_NEWLINE: Final = ("newline", "")
_CLOSING: Final = frozenset(")]}")


def is_reformatted(before: bytes, after: bytes, name: bytes = b"") -> bool:
    """Return whether two different texts of a file named `name` have the same tokens in the same order.

    Strings and comments are compared whole, and line breaks where they mean something. Only the kind of quotes and a
    comma at the end of a list may differ where that can't change what the text means. A text of a language that the
    module doesn't know, a binary text and a text over 256 KiB are never reformatted.
    """
    if before == after or max(len(before), len(after)) > _LONGEST or is_either_binary(before, after):
        return False
    stem, _, suffix = name.rpartition(b"/")[2].rpartition(b".")
    ending = suffix.decode("ascii", "replace").lower() if stem else ""
    old = _tokens(ending, before)
    return old is not None and old == _tokens(ending, after)


def _tokens(ending: str, text: bytes) -> list[_Token] | None:
    """Return the tokens of a text; None if they are not certain."""
    if ending in {"py", "pyi", "pyw"}:
        return _python_tokens(text)
    language = _LANGUAGES.get(ending)
    if language is None:
        return None
    try:
        return list(_without_last_commas(_Lexer(language, text.decode()).tokens(), language.last_comma))
    except ValueError:
        return None


# ---- Python

_PYTHON_STRING: Final = re.compile(r"(?s)([A-Za-z]*)('''|\"\"\"|'|\")(.*)\2")


def _python_tokens(text: bytes) -> list[_Token] | None:
    """Return the tokens of Python source, its indentation structure included; None if it has no valid tokens."""
    try:
        found = list(tokenize.tokenize(io.BytesIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return None
    if any(token.type == tokenize.ERRORTOKEN for token in found):
        return None
    return list(_without_last_commas(filter(None, map(_python_token, found)), "after another"))


def _python_token(token: tokenize.TokenInfo) -> _Token | None:
    kind = tokenize.tok_name[token.type]
    if kind in {"NL", "ENCODING"}:
        return None
    if kind in {"INDENT", "DEDENT", "NEWLINE", "ENDMARKER"}:
        return kind, ""
    if kind == "COMMENT":
        return kind, token.string.rstrip()
    string = _PYTHON_STRING.fullmatch(token.string) if kind == "STRING" else None
    if string is None or not _is_plain(string[3]):
        return kind, token.string
    return kind, f"{string[1]}{len(string[2])}{string[3]}"


def _is_plain(content: str) -> bool:
    """Return whether a string's content means the same in either kind of quotes."""
    return not any(mark in content for mark in "'\"\\{")


# ---- other languages


@value
class _Language:
    """The forms of a language's comments and strings, and where its line breaks mean something."""

    strings: str = r'"(?:[^"\\\n]|\\.)*"'  # regular expression of a string literal
    line_comments: bool = True
    block_comments: bool = True
    newlines: str = ""  # where line breaks mean something: "" nowhere; "outside" of ( and [; or "everywhere"
    last_comma: str = ""  # which comma before a closing bracket means nothing: "" none; "after another"; or "any"
    directives: bool = False  # whether a line that begins with # is a directive of a preprocessor
    regexes: bool = False  # whether / may begin a regular expression
    quotes: bool = False  # whether both kinds of quotes mean the same
    refused: str = r"(?!)"  # regular expression of what the lexer does not understand


_QUOTED: Final = r'"(?:[^"\\\n]|\\.)*"' + "|" + r"'(?:[^'\\\n]|\\.)*'"
_C: Final = _Language(strings=_QUOTED, directives=True, refused=r'[uUL8]*R"|\\|\?\?[=/\'()!<>-]|@')
_JAVA: Final = _Language(strings=r'"""(?:[^"\\]|\\.|"(?!""))*"""|' + _QUOTED, refused=r"\\")
_GO: Final = _Language(strings=_QUOTED + r"|`[^`]*`", newlines="everywhere", refused=r"\\")
_RUST: Final = _Language(
    strings=r'b?r(?P<hashes>#*)".*?"(?P=hashes)|[bc]?"(?:[^"\\]|\\.)*"|b?\'(?:\\[^\n\']*.?|[^\\\'\n])\'|\'\w+',
    refused=r"\\|/\*|\bcr#*\"",  # its block comments nest
)
_SCRIPT: Final = _Language(
    strings=_QUOTED + r"|`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^`{}'\"]*\})*`",
    newlines="outside",
    last_comma="any",
    regexes=True,
    quotes=True,
    refused=r"\\|</|/>|<!--|-->|^#!",  # what is like markup may be text
)
_JSON: Final = _Language(line_comments=False, block_comments=False, refused=r"[^\s\w\"{}\[\],:.+-]")
_LANGUAGES: Final[Mapping[str, _Language]] = {
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"), _C),
    **dict.fromkeys(("js", "mjs", "cjs", "ts", "mts", "cts"), _SCRIPT),
    "go": _GO,
    "java": _JAVA,
    "json": _JSON,
    "rs": _RUST,
}

_OPERATOR: Final = (
    r">>>=|<<=|>>=|>>>|\*\*=|&&=|\|\|=|\?\?=|===|!==|\.\.\.|\.\.=|<=>|->\*|&\^=|->|=>|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|"
    r"\|\||\?\?|\?\.|[+\-*/%&|^]=|\*\*|\.\.|:=|<-|&\^|\.\*|##|<:|:>|<%|%>|%:"
)
_WORD: Final = r"\.?[0-9](?:[eEpP][+-]|'?\w|\.(?!\.))*|[^\W\d][\w$]*|\$[\w$]*"
_BEFORE_REGEX: Final = re.compile("return|typeof|instanceof|in|of|new|delete|void|throw|case|do|else|yield|await")
"""Words after which a slash begins a regular expression."""

_CONTINUING: Final = frozenset([",", "{", ";", ":", "=", "=>", "&&", "||", "??"])
"""After these no statement ends, so that a line break means nothing, even if it may mean something elsewhere."""


class _Lexer:
    """Splits a text into tokens. Raises ValueError where it can't tell them for certain."""

    def __init__(self, language: _Language, text: str) -> None:
        comments = [r"//[^\n]*"] * language.line_comments + [r"/\*.*?\*/"] * language.block_comments
        parts = {
            "refused": language.refused,
            "comment": "|".join(comments) or r"(?!)",
            "directive": r"^[ \t]*#(?:[^\n\\]|\\.)*" if language.directives else r"(?!)",
            "string": language.strings,
            "space": r"[^\S\n]+",
            "newline": r"\n",
            "word": _WORD,
            "operator": rf"{_OPERATOR}|[^\s\"'`]",
        }
        self._pattern: Final = re.compile(
            "|".join(f"(?P<{name}>{form})" for name, form in parts.items()), re.DOTALL | re.MULTILINE
        )
        self._regex: Final = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
        self._language: Final = language
        self._text: Final = text.replace("\r\n", "\n")
        self._open: Final = list[str]()  # the brackets around the place that was reached

    def tokens(self) -> Iterator[_Token]:
        """Yield the tokens. A run of line breaks that mean something is one token."""
        at, last, has_newline = 0, _NEWLINE, False
        while at < len(self._text):
            found = self._pattern.match(self._text, at)
            if found is None or found["refused"] is not None:
                raise ValueError
            if found["operator"] in {"/", "/="} and self._language.regexes and self._is_regex(last):
                found = self._regex.match(self._text, at)
                if found is None:
                    raise ValueError
                token: _Token | None = ("regex", found[0])
            else:
                token = self._token(found)
            at = found.end()
            if token == _NEWLINE:
                has_newline = last != _NEWLINE
            elif token is not None:
                if has_newline and not self._is_continued(last, token):
                    yield _NEWLINE
                yield token
                last, has_newline = token, False

    def _is_continued(self, last: _Token, token: _Token) -> bool:
        """Return whether a line break between two tokens can't end a statement."""
        return self._language.newlines == "outside" and (token[1] == "}" or last[1] in _CONTINUING)

    def _token(self, found: re.Match[str]) -> _Token | None:
        """Return the token of a match; None if the match means nothing."""
        kind = next(name for name, text in found.groupdict().items() if text is not None and name != "hashes")
        text = found[0]
        match kind:
            case "space":
                return None
            case "newline":
                return _NEWLINE if self._is_newline_read else None
            case "comment":
                return kind, text if text.endswith("\\") else text.rstrip()
            case "directive":
                return kind, text.strip()
            case "string" if self._language.quotes and _is_plain(text[1:-1]):
                return kind, text[1:-1]
            case "operator":
                self._follow(text)
        return kind, text

    @property
    def _is_newline_read(self) -> bool:
        """Whether a line break may mean something here."""
        if self._language.newlines == "outside":
            return not self._open or self._open[-1] == "{"
        return bool(self._language.newlines)

    def _follow(self, mark: str) -> None:
        """Note an opening or a closing bracket."""
        if mark in {"(", "[", "{"}:
            self._open.append(mark)
        elif mark in _CLOSING and (not self._open or self._open.pop() + mark not in {"()", "[]", "{}"}):
            raise ValueError

    def _is_regex(self, last: _Token) -> bool:
        """Return whether a slash after a token begins a regular expression. Raises ValueError if that is uncertain."""
        kind, text = last
        if kind in {"string", "regex", "comment"} or text in {")", "}", "++", "--"}:
            raise ValueError
        return _BEFORE_REGEX.fullmatch(text) is not None if kind == "word" else text != "]"


def _without_last_commas(tokens: Iterator[_Token], which: str) -> Iterator[_Token]:
    """Yield the tokens without the commas before closing brackets that mean nothing.

    `which`: "": none are left out. "any": each that follows an element. "after another": each whose brackets have
    another comma, or are braces; a comma may otherwise make a tuple.
    """
    open_commas: list[tuple[str, int]] = []  # the brackets around, and how many commas each has had
    held: _Token | None = None  # a comma that a closing bracket may follow
    last = _NEWLINE
    for token in tokens:
        mark = token[1] if token[0] in {"operator", "OP"} else ""
        if held is not None:
            bracket, commas = open_commas[-1]
            if mark not in _CLOSING or not (which == "any" or commas > 1 or bracket == "{"):
                yield held
            held = None
        if mark in {"(", "[", "{"}:
            open_commas.append((mark, 0))
        elif mark in _CLOSING and open_commas:
            open_commas.pop()
        if mark == "," and which and open_commas and last[1] not in {",", "(", "[", "{"}:
            bracket, commas = open_commas[-1]
            open_commas[-1] = bracket, commas + 1
            held = token
        else:
            yield token
        last = token
    if held is not None:
        yield held
