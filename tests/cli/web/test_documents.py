"""The server's answers with rendered documents, images, plots and the store."""

import json
from xml.etree import ElementTree as ET

from cli.plots.svg import is_drawing
from objstore import blob_id
from tests.support.command_runner import CommandRunner
from tests.support.review_server import ReviewServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(50),
    "image/gif": b"GIF89a" + bytes(50),
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 " + bytes(50),
}


def document(server: ReviewServer, name: str) -> int:
    (found,) = [file["document"] for file in server.queue()["files"] if file["name"] == name]
    assert isinstance(found, int)
    return found


# ---- rendered


def test_markdown_is_rendered_before_and_after(runner: CommandRunner, server: ReviewServer) -> None:
    (runner.folder / "a.md").write_text("# Old\n")
    runner.edit("a.md", b"Old", b"New <script>alert(1)</script>")
    answer = server.client.get("/rendered", params={"document": document(server, "a.md")})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "; sandbox;" in policy
    assert "frame-ancestors 'self'" in policy
    assert "<h1>Old</h1>" in answer.text
    assert "<h1>New &lt;script&gt;alert(1)&lt;/script&gt;</h1>" in answer.text


def test_a_notebook_is_rendered_and_a_broken_one_says_so(runner: CommandRunner, server: ReviewServer) -> None:
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "print(1)", "outputs": []}]}
    runner.write("a.ipynb", json.dumps(notebook).encode())
    runner.write("b.ipynb", b"{")
    pages = [server.client.get("/rendered", params={"document": number}).text for number in (1, 2)]
    assert "print(1)" in pages[0]
    assert "not valid JSON" in pages[1]


def test_only_documents_that_are_pending_are_rendered(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a.py", b"1\n")
    runner.write("b.md", b"1\n")
    runner.done("accept", "2")
    assert server.client.get("/rendered", params={"document": 1}).status_code == 404
    assert server.client.get("/rendered", params={"document": 2}).status_code == 404
    assert server.client.get("/rendered", params={"document": 3}).status_code == 404
    assert server.client.get("/rendered").status_code == 400


def test_a_binary_or_large_document_is_not_rendered(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a.md", b"\0\1")
    runner.write("b.md", b"a" * 1_000_001)
    assert server.client.get("/rendered", params={"document": 1}).status_code == 404
    page = server.client.get("/rendered", params={"document": 2})
    assert "more than 1 MB is not rendered" in page.text


# ---- images


def test_an_image_is_sent_as_what_its_bytes_say(runner: CommandRunner, server: ReviewServer) -> None:
    for kind, content in IMAGES.items():
        runner.write("named.txt", content)
        answer = server.client.get("/image", params={"blob": blob_id(content).hex()})
        assert (answer.status_code, answer.content) == (200, content)
        assert answer.headers["content-type"] == kind
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_else_is_sent_as_an_image(runner: CommandRunner, server: ReviewServer) -> None:
    for content in (
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"<html>",
        b"",
        b"\x89PNG",
        b"RIFF\0\0\0\0WAVE",
        b"text\n",
    ):
        runner.write("a.png", content)
        assert server.client.get("/image", params={"blob": blob_id(content).hex()}).status_code == 404, content


def test_only_states_of_files_are_images(runner: CommandRunner, server: ReviewServer) -> None:
    (runner.folder / "only-snapshot.png").write_bytes(PNG)
    runner.done("snapshot", "create")
    for blob, status in (
        (blob_id(PNG).hex(), 404),
        ("0" * 64, 404),
        ("0" * 63, 400),
        ("0" * 65, 400),
        (blob_id(PNG).hex().upper(), 400),
        ("../../etc/passwd", 400),
        ("", 400),
    ):
        assert server.client.get("/image", params={"blob": blob}).status_code == status, blob


def test_a_large_image_is_not_sent(runner: CommandRunner, server: ReviewServer) -> None:
    content = PNG + bytes(20_000_000)
    runner.write("a.png", content)
    assert server.client.get("/image", params={"blob": blob_id(content).hex()}).status_code == 404


# ---- plots and the store


def test_a_plot_is_sent_as_a_drawing_and_as_a_table(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    for name in ("activity", "store", "file"):
        parameters = {"path": "a"} if name == "file" else {}
        drawing = server.client.get(f"/plots/{name}.svg", params=parameters)
        assert drawing.headers["content-type"] == "image/svg+xml"
        assert drawing.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        assert is_drawing(drawing.content)
        table = server.get(f"/plots/{name}.json", **parameters)
        assert set(table) == {"title", "summary", "columns", "rows"}
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert all(isinstance(cell, str) for row in table["rows"] for cell in row)
        drawn = ET.fromstring(drawing.content)  # noqa: S314 -- it is our own
        assert drawn.findtext("{http://www.w3.org/2000/svg}title") == table["title"]


def test_a_plot_of_nothing_is_refused(server: ReviewServer) -> None:
    assert server.client.get("/plots/file.svg", params={"path": "a"}).status_code == 404
    assert server.client.get("/plots/file.svg").status_code == 400
    assert server.client.get("/plots/other.svg").status_code == 404
    assert server.client.get("/plots/activity.svg", params={"path": "a"}).status_code == 400
    assert is_drawing(server.client.get("/plots/activity.svg").content)


def test_the_store_says_what_a_collection_would_free(runner: CommandRunner, server: ReviewServer) -> None:
    runner.write("a", b"1\n")
    runner.write("a", b"2\n")
    runner.done("accept", "1", "2")
    store = server.get("/api/store")
    facts = {fact["name"]: fact["value"] for fact in store["facts"]}
    assert facts["edits"] == "2 accepted"
    assert facts["decisions"] == "1"
    assert (store["free"], store["gc"]) == ({"blobs": 0, "bytes": 0}, "`cas gc` would free nothing now.")
    runner.done("config", "set", "retention.older_than", "0s")
    store = server.get("/api/store")
    assert store["free"]["blobs"] > 0
    assert 0 < store["free"]["bytes"] <= store["total"]
    assert "It would expire" in store["gc"]
