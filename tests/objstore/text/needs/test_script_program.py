"""What a change of JavaScript and TypeScript files breaks in those files, and in those that import them."""

from collections.abc import Mapping

import pytest

from objstore.text.needs.broken_names import broken_names
from objstore.text.needs.script_names import script_names
from objstore.text.needs.script_program import ScriptProgram, file_words
from objstore.text.needs.source_kinds import is_script

Sources = Mapping[str, str]


def program(sources: Sources, *ignored: str) -> ScriptProgram:
    declaring = [path for path in sources if path.endswith(".d.ts")]
    return ScriptProgram(sources, lambda path: script_names(sources[path].encode(), path), declaring, ignored)


def broken(before: Sources, after: Sources, *ignored: str) -> list[str]:
    first, second = program(before, *ignored), program(after, *ignored)
    found = broken_names(first, second, {path: path if path in before else "" for path in after if is_script(path)})
    return [each.words for each in found]


NET = {
    "src/net.ts": "export const a = 1\nexport function retry() {}\nexport default a\n",
    "src/lib/index.js": "exports.b = 1\n",
}
OUT_OF = "takes `retry` out of `src/net"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("import { retry } from './net'\n", [f"{OUT_OF}`, from which src/app.ts:1 imports it"]),
        ("\nexport { retry as r } from './net.js'\n", [f"{OUT_OF}.js`, from which src/app.ts:2 imports it"]),
        ("const { retry } = require('./net')\n", [f"{OUT_OF}`, from which src/app.ts:1 imports it"]),
        ("import { a } from './net'; import d from './net'; import * as n from './net'\n", []),
        ("import { retry } from 'net'; import { retry as s } from '../../net'\n", []),
        ("try { require('./net').retry() } catch {}\n", []),
    ],
)
def test_importers_of_what_is_gone_are_named(user: str, expected: list[str]) -> None:
    before = NET | {"src/app.ts": user}
    assert broken(before, before | {"src/net.ts": "export const a = 1\nexport default a\n"}) == expected


def test_file_that_is_gone_is_named_by_its_importers() -> None:
    before = NET | {"app.ts": "import { b } from './src/lib'\nimport './src/net'\n"}
    after = {path: text for path, text in before.items() if path != "src/lib/index.js"}
    assert broken(before, after) == ["takes `src/lib` away, which app.ts:1 imports"]


def test_import_that_is_back_without_its_module_is_named_unless_it_is_ignored() -> None:
    after = {"app.ts": "import './generated/api'\n"}
    said = "imports `generated/api` in app.ts:1, which isn't there"
    assert broken({"app.ts": ""}, after) == [said]
    assert broken({"app.ts": ""}, after, "generated") == broken({"app.ts": ""}, after, "generated/api.ts") == []


def test_name_that_is_undefined_then_is_named_with_its_line() -> None:
    before = {"a.ts": "import { x } from 'p'\nlet y = 1\nx(y)\n"}
    assert broken(before, {"a.ts": "import { x } from 'p'\nx(y)\n"}) == ["leaves `y` undefined in a.ts:2"]


@pytest.mark.parametrize("name", ["window", "process", "HTMLElement", "Promise", "describe", "NodeJS", "AsyncIterable"])
def test_names_that_environments_provide_are_no_news(name: str) -> None:
    assert broken({"a.ts": "export {}\n"}, {"a.ts": f"export {{}}\nlet a = {name}\n"}) == []


def test_module_in_place_of_which_an_environment_has_the_name_is_no_news() -> None:
    before = {"a.js": "const URL = require('url').URL\nexports.a = URL\n"}
    assert broken(before, {"a.js": "exports.a = URL\n"}) == []
    assert broken({}, {"page.js": "other(URL)\n"}) == []


def test_names_that_declarations_provide_are_no_news() -> None:
    types = {"types.d.ts": "declare const BUILD: string\n", "b.d.ts": "export {}\ndeclare global { var G: 1 }\n"}
    assert broken(types | {"a.js": "export {}"}, types | {"a.js": "export default [BUILD, G]"}) == []


def test_script_of_a_page_may_use_names_of_others_but_not_those_it_lost() -> None:
    before = {"a.js": "function f() {}\n"}
    assert broken(before, {"a.js": "g()\n"}) == []
    assert broken(before, {"a.js": "f()\n"}) == ["leaves `f` undefined in a.js:1"]


def test_names_come_through_files_that_export_all_of_others_also_in_a_circle() -> None:
    before = {
        "a.ts": "export * from './b'\n",
        "b.ts": "export * from './a'\nexport * from './c'\n",
        "c.ts": "export const x = 1\n",
        "user.ts": "import { x } from './a'\n",
    }
    assert broken(before, before | {"c.ts": "export {}\n"}) == ["takes `x` out of `a`, from which user.ts:1 imports it"]


def test_star_passes_types_on_but_not_the_default() -> None:
    before = {
        "i.ts": "export type * from './t'\nexport { default } from './t'\n",
        "t.ts": "export type T = 1\nexport default 1\n",
        "m.ts": "import d, { type T } from './i'\n",
    }
    said = "takes `{}` out of `{}`, from which {}.ts:1 imports it".format
    assert broken(before, before) == []
    assert broken(before, before | {"i.ts": "export * from './t'\n"}) == [said("default", "i", "m")]
    assert broken(before, before | {"t.ts": "export default 1\n"}) == [said("T", "i", "m")]


@pytest.mark.parametrize(
    ("source", "gone", "expected"),
    [
        ("enum E { A }\nexport const x = E.A\n", "enum E { A }\n", ["E"]),
        ("namespace N { export const x = 1 }\nexport const y = N.x\n", "namespace N { export const x = 1 }\n", ["N"]),
        ("export interface I { a: 1 }\ninterface I { b: 2 }\nlet x: I\n", "interface I { b: 2 }\n", []),
        (
            "export function f() {}\nnamespace f { export const x = 1 }\nf.x\n",
            "namespace f { export const x = 1 }\n",
            [],
        ),
        ("import React from 'react'\nexport const A = () => <a/>\n", "import React from 'react'\n", []),
        ("const P = {}\nexport const A = () => <B {...P}/>\nfunction B() {}\n", "const P = {}\n", ["P"]),
        ("const K = 'k'\nexport const o = { [K]: 1 }\n", "const K = 'k'\n", ["K"]),
        ("type A = 'a'\nexport type B = `x${A}`\n", "type A = 'a'\n", ["A"]),
        ("type D = 1\nexport type T<X = D> = X\n", "type D = 1\n", ["D"]),
        ("const d = f => f\nexport class C { @d x = 1 }\n", "const d = f => f\n", ["d"]),
        ("const k = 1\nexport class C { static { k } accessor z = 1 }\n", "const k = 1\n", ["k"]),
        ("const v = { a: 1 }\nexport type B = (typeof v)[keyof typeof v]\n", "const v = { a: 1 }\n", ["v"]),
        (
            "export function f(a: string): void\nexport function f(a: any) {}\n",
            "export function f(a: string): void\n",
            [],
        ),
        ("const D = 1\nexport function f({ a = D } = {}) { return a }\n", "const D = 1\n", ["D"]),
    ],
)
def test_rejections_of_many_kinds(source: str, gone: str, expected: list[str]) -> None:
    assert gone in source
    found = broken({"m.tsx": source}, {"m.tsx": source.replace(gone, "", 1)})
    assert [each.split("`")[1] for each in found] == expected


def test_what_may_export_more_is_passed_over() -> None:
    before = {"a.js": "exports.x = 1\nObject.assign(exports, more())\n", "b.js": "const { x } = require('./a')\n"}
    assert broken(before, before | {"a.js": "Object.assign(exports, more())\n"}) == []
    data = {"d.json": "{}", "b.js": "import { x } from './d.json'\n"}
    assert broken(data, data | {"b.js": "import { y } from './d.json'\n"}) == []


def test_file_that_can_not_be_read_then_is_named() -> None:
    assert broken({"a.tsx": "let a\n"}, {"a.tsx": "let a\n}\n"}) == [
        "leaves a.tsx unreadable as TypeScript: syntax error (line 2)"
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/net.ts", ("net",)),
        ("src/lib/index.js", ("index", "lib")),
        ("index.mjs", ("index",)),
        ("a/x.service.ts", ("x.service",)),
        ("a/x.d.ts", ("x",)),
        ("a b.js", ("a_b",)),
    ],
)
def test_words_of_a_file_are_those_of_its_imports(path: str, words: tuple[str, ...]) -> None:
    assert file_words(path) == words
