"""What a JavaScript or TypeScript source binds, uses, exports and imports."""

import pytest

from objstore.text.needs.script_names import imported_files, packed, script_names, unpacked


def undefined(source: str, path: str = "a.ts") -> str:
    names = script_names(source.encode(), path)
    assert not names.error
    return " ".join(name for name, _ in names.undefined)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a, { b as c, type D } from './m'; import * as ns from './n'; a(c, ns); let d: D; b", "b"),
        ("function f<T extends U>(p: T, { k, l: [m], ...r }: Opt = {}): p is V { return k + l + m + r; }", "Opt U V l"),
        ("for (const x of xs) x; x", "x xs"),
        ("if (a1) { const x = 1; var y = 2; function z() {} } x; y; z", "a1 x"),
        ("try {} catch (e) { e } e", "e"),
        ("class C<T> extends Base<T> { #p = 1; constructor(private q: Q) { super(); this.#p } } C", "Base Q"),
        ("interface I<K> extends J { [key: string]: K; m(x: number): void } let i: I<string>", "J"),
        ("type M<S> = { [P in keyof S]: P extends infer R ? R : P }; let m: M<N>", "N"),
        ("type T = [first: string, second?: O]", "O"),
        ("enum E { A = 1, B = A, C = D } E", "D"),
        ("namespace N { export const w = other } N", ""),
        ("declare module 'x' { export const y: Z }", ""),
        ("typeof a; typeof a.b", "a"),
        ("function f(this: W, x: typeof y): asserts x is X {}", "W X y"),
        ("label: for (;;) { break label } o.p.q; ({ r: s, t })", "o s t"),
        ("const f = function g() { return g }; g", "g"),
        ("const { a = b, ...c } = o; a; c", "b o"),
        ("({ a, b: c } = o)", "a c o"),
        ("(x => arguments)(y)", "y"),
        ("let v = <T>w", "T w"),
        ("type X = N.Y; import Z = N.Y; Z", "N"),
        ("export { a, b as c }; export { d } from './d'", "a b"),
        ("export as namespace Lib", ""),
        ("/* global a, b:writable */ a(b, c)", "c"),
        ("eval('var a'); a", ""),
    ],
)
def test_what_nothing_around_a_use_binds_is_undefined(source: str, expected: str) -> None:
    assert undefined(source) == expected


def test_tags_of_jsx_are_names_unless_they_are_of_html() -> None:
    source = "const x = <A.B c={d}><div>{e}</div><F/></A.B>"
    assert undefined(source, "a.jsx") == undefined(source, "a.tsx") == "A F d e"


@pytest.mark.parametrize(
    ("source", "exported", "is_open"),
    [
        ("export const { a, b: [c] } = o, d = 1; export function e() {}", "a c d e", False),
        ("export default class X {}; export { y as z } from './y'; export * as q from './q'", "default q z", False),
        ("export type T = 1; export interface I {}; export enum E {}; export declare const v: T", "E I T v", False),
        ("export * from './a'", "", False),
        ("export * from 'package'", "", True),
        ("export = x", "", True),
        ("exports.a = 1; module.exports.b = 2", "a b", False),
        ("module.exports = { a, 'b': 1, c() {}, d }", "a b c d", False),
        ("module.exports = { a, ...others }", "a", True),
        ("module.exports = create; module.exports.a = 1", "a", True),
        ("exports = module.exports = {}; exports.a = 1", "a", False),
        ("Object.defineProperty(exports, 'a', { value: 1 })", "a", False),
        ("fill(exports)", "", True),
        ("(function (exports) { exports.a = 1 })(window.x = {})", "", True),
    ],
)
def test_exports_of_modules_and_of_commonjs(source: str, exported: str, *, is_open: bool) -> None:
    names = script_names(source.encode(), "a.ts" if "type" in source or "export =" in source else "a.js")
    assert (" ".join(sorted(names.exported)), names.is_open) == (exported, is_open)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a, { b as c } from './m'", "./m:default ./m:b ./m:"),
        ("import './m'; import 'package'; import x from '@/alias'", "./m:"),
        ("export { a as b } from '../m'", "../m: ../m:a"),
        ("export * from './m'", "./m: ./m:*"),
        ("const { a, b: c, d = 1 } = require('./m')", "./m:a ./m:b ./m:d ./m:"),
        ("require('./m').a()", "./m:a ./m:"),
        ("import('./m')", "./m:"),
        ("try { require('./m') } catch {}", ""),
        ("try { require('./m') } finally {}", "./m:"),
    ],
)
def test_imports_of_files_of_the_program(source: str, expected: str) -> None:
    found = script_names(source.encode(), "a.js").imports
    assert " ".join(f"{each.source}:{each.name}" for each in found) == expected


def test_words_of_imports_are_those_of_the_files() -> None:
    source = b"import a from './x/net.js'\nrequire(\"..\"); export * from './d.d.ts'\nimport(`./no`); import 'package'"
    assert imported_files(source).split() == [b"d", b"index", b"net"]
    assert imported_files(b"declare global { var x: 1 }").split() == [b"declare-global"]


def test_what_can_not_be_read_says_where() -> None:
    assert script_names(b"const a = 1\nfunction (\n", "a.js").error == "syntax error (line 2)"


def test_deep_nesting_is_passed_over() -> None:
    assert script_names(b"x(" * 5000 + b")" * 5000, "a.js").undefined == ()


def test_names_are_kept_as_they_are() -> None:
    source = b"import { a } from './m'; export default a; export * from './n'; declare global { var g: 1 }; b"
    names = script_names(source, "a.ts")
    assert unpacked(packed(names)) == names
