"""The demonstration tells its whole story, with and without git, or lets the page tell it."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.command_runner import PATIENCE, PROGRAM, environment, unforked_cas
from tests.support.plain_http import NO_CERTIFICATES
from tests.support.review_server import SECRET


@pytest.mark.parametrize("has_git", [True, False], ids=["with git", "without git"])
def test_the_demonstration_runs_to_its_end(tmp_path: Path, *, has_git: bool) -> None:
    settings = {} if has_git else {"PATH": str(tmp_path)}
    ran = unforked_cas("demo", folder=tmp_path, settings=settings)
    assert (ran.status, ran.said) == (0, "")
    assert "Rejected edits 3 4." in ran.text
    assert "Say which errors end the program." in ran.text
    assert ("$ git checkout older" in ran.text) is has_git
    assert list(tmp_path.iterdir()) == []


def test_the_agent_works_while_the_page_is_served_and_all_ends_with_the_demonstration(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "demo", "--web"],
        cwd=tmp_path,
        env=environment({"BROWSER": "true", "TMPDIR": str(tmp_path)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line.strip() for line in lines if line.startswith("http://"))
        origin = address.partition("/?")[0]
        with httpx2.Client(base_url=origin, verify=NO_CERTIFICATES, timeout=PATIENCE) as client:
            client.headers[SECRET] = client.get(address).headers["location"].removeprefix("/#secret=")
            queue: dict[str, list[Any]] = {"turns": []}
            with client.stream("GET", "/api/events") as events:
                for line in events.iter_lines():
                    if line.startswith("data:"):
                        queue = client.get("/api/queue").json()
                    if queue["turns"]:
                        break
        (turn,) = queue["turns"]
        assert turn["prompt"] == "Explain what the decoder and the scanner raise."
        assert [file["name"] for file in queue["files"]] == ["json/decoder.py"]
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said) == (0, "")
    assert list(tmp_path.iterdir()) == []
