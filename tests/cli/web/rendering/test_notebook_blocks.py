"""Notebooks, cell by cell."""

import json

import pytest

from cli.web.rendering.notebook_blocks import notebook_blocks


def blocks(*cells: object) -> list[str]:
    return notebook_blocks(json.dumps({"nbformat": 4, "cells": list(cells)}))


def test_cells_are_rendered_by_their_kind() -> None:
    markdown, code, raw = blocks(
        {"cell_type": "markdown", "source": ["# One\n", "two"]},
        {"cell_type": "code", "source": "print('<b>')", "outputs": []},
        {"cell_type": "raw", "source": "<b>"},
    )
    assert "<h1>One</h1>" in markdown
    assert "<code>print(&#x27;&lt;b&gt;&#x27;)</code>" in code
    assert "<code>&lt;b&gt;</code>" in raw


def test_outputs_of_text_are_shown_and_others_are_named() -> None:
    (code,) = blocks(
        {
            "cell_type": "code",
            "source": "1",
            "outputs": [
                {"output_type": "stream", "text": ["one\n", "two\n"]},
                {"output_type": "error", "ename": "Wrong", "evalue": "<i>\x1b[31m", "traceback": ["x"]},
                {
                    "output_type": "display_data",
                    "data": {
                        "text/plain": "<Figure>",
                        "text/html": "<script>alert(1)</script>",
                        "image/png": "iVBO" * 10,
                        "image/svg+xml": ["<svg onload=alert(1)>"],
                    },
                },
            ],
        }
    )
    assert "one\ntwo\n" in code
    assert r"Wrong: &lt;i&gt;\x1b[31m" in code
    assert "&lt;Figure&gt;" in code
    assert "image/png, 40 characters." in code
    assert "text/html, 25 characters." in code
    assert "alert" not in code


def test_what_does_not_show_makes_no_difference() -> None:
    cell = {"cell_type": "code", "source": "1", "outputs": [], "execution_count": 1, "metadata": {"x": 1}}
    assert blocks(cell) == blocks(cell | {"execution_count": 2, "metadata": {}})


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "{}", '{"cells": 3}', "[" * 100_000, '{"cells":' * 5_000, '{"worksheets": []}', "\0"],
)
def test_what_is_no_notebook_says_so(text: str) -> None:
    (block,) = notebook_blocks(text)
    assert "This is not a notebook" in block


@pytest.mark.parametrize(
    "cell",
    [
        None,
        3,
        {},
        {"cell_type": "code"},
        {"cell_type": "code", "source": {"a": 1}},
        {"cell_type": "code", "source": ["a", 1]},
        {"cell_type": "code", "source": "a", "outputs": {"b": 1}},
        {"cell_type": "code", "source": "a", "outputs": [None, {}, {"output_type": "stream", "text": 5}]},
        {"cell_type": "code", "source": "a", "outputs": [{"output_type": "display_data", "data": [1]}]},
        {"cell_type": "code", "source": "a", "outputs": [{"output_type": "display_data", "data": {"image/png": {}}}]},
        {"cell_type": "<b>\u202e", "source": "a"},
        {"cell_type": ["x"], "source": "a"},
    ],
)
def test_a_broken_cell_hides_no_other(cell: object) -> None:
    first, broken, last = blocks({"cell_type": "raw", "source": "first"}, cell, {"cell_type": "raw", "source": "last"})
    assert "first" in first
    assert "last" in last
    assert "<b>" not in broken
    assert broken.replace("\n", "").isprintable()


def test_many_cells_and_long_outputs_are_cut_and_say_so() -> None:
    found = blocks(*[{"cell_type": "raw", "source": "x"}] * 2_010)
    assert len(found) == 2_001
    assert "and 10 more cells" in found[-1]
    outputs = [{"output_type": "stream", "text": "y" * 30_000}] * 60
    (cell,) = blocks({"cell_type": "code", "source": "1", "outputs": outputs})
    assert "and 10,000 more characters" in cell
    assert "and 10 more outputs" in cell
