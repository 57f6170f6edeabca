"""The client's roots narrow what the server may reach, and never widen it."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import ResourceUpdatedNotification

from objstore import blob_id
from tests.support.mcp_agent import Agent, connected
from tests.support.sampling import sampled_product

MINE, THEIRS = b"mine\n", b"secret\n"
MODES = ["legacy", "2026-07-28"]


def tree(root: Path) -> Path:
    for name in ("one", "two", "one/inner"):
        (root / name).mkdir(parents=True)
        (root / name / "file.txt").write_text(f"{name}\n")
    return root.resolve()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "workspace")


@pytest.fixture(scope="module", params=MODES)
def narrowed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """Return a client that names one folder of the served directory."""
    root = tree(tmp_path_factory.mktemp("narrowed") / "workspace")
    with connected(root, mode=request.param, client_roots=lambda: [(root / "one").as_uri()]) as agent:
        yield agent


def refusals(agent: Agent, path: Path) -> set[tuple[int, str]]:
    """Try tools of each family on a path; return the code and the first words of each refusal."""
    edits = [{"old_string": "two", "new_string": "2"}]
    taken = str(agent.root / "one" / "taken.txt")
    results = [
        agent.call("read_file", path=str(path)),
        agent.call("get_file_info", path=str(path)),
        agent.call("list_directory", path=str(path.parent)),
        agent.call("directory_tree", path=str(path.parent)),
        agent.call("grep_files", path=str(path.parent), keyword="two"),
        agent.call("write_file", path=str(path), content="mine\n"),
        agent.call("multi_edit_text_file", path=str(path), edits=edits),
        agent.call("delete_file", path=str(path)),
        agent.call("move_file", source=str(path), destination=taken),
        agent.call("move_file", source=str(agent.root / "one" / "file.txt"), destination=f"{path}.new"),
        agent.call("create_directory", path=str(path.parent / "new")),
    ]
    return {(result.error["code"], result.error["message"].partition(":")[0]) for result in results}


def test_paths_outside_the_roots_are_refused(narrowed: Agent) -> None:
    root = narrowed.root
    before, content = sorted(os.walk(root / "two")), (root / "two" / "file.txt").read_text()
    assert refusals(narrowed, root / "two" / "file.txt") == {(-32002, "Permission denied")}
    assert sorted(os.walk(root / "two")) == before
    assert (root / "two" / "file.txt").read_text() == content
    reported = narrowed.done("list_allowed_directories").structured["directories"]
    assert reported == [str(root / "one")]


def test_edits_inside_the_roots_are_recorded_in_the_served_directory(narrowed: Agent) -> None:
    root = narrowed.root
    file = root / "one" / "inner" / "file.txt"
    narrowed.done("read_text_file", path=str(file))
    narrowed.done("write_file", path=str(file), content="mine\n")
    assert (root / ".cas").is_dir()
    assert not (root / "one" / ".cas").exists()
    assert narrowed.history()[-1].edit.path == b"one/inner/file.txt"
    narrowed.done("Undo")
    assert file.read_text() == "one/inner\n"
    error = narrowed.call("read_file", path="file.txt").error
    assert error["message"] == "Path must be absolute: file.txt"


def test_symlink_does_not_lead_out_of_the_roots(narrowed: Agent) -> None:
    root = narrowed.root
    content = (root / "two" / "file.txt").read_text()
    (root / "one" / "link").symlink_to(root / "two")
    (root / "one" / "inner" / "up").symlink_to("../..")
    for path in ("one/link/file.txt", "one/inner/up/two/file.txt", "one/../two/file.txt"):
        assert refusals(narrowed, root / path) == {(-32002, "Permission denied")}
    assert (root / "two" / "file.txt").read_text() == content


def test_edits_outside_the_roots_are_not_shown(narrowed: Agent) -> None:
    root = narrowed.root
    with connected(root) as other:
        edit = other.done("write_file", path=str(root / "two" / "file.txt"), content="secret\n").structured["edit"]
    mine = narrowed.done("write_file", path=str(root / "one" / "mine.txt"), content="mine\n").structured["edit"]
    shown = [found["edit"] for found in narrowed.done("list_edits").structured["edits"]]
    assert (mine in shown, edit in shown) == (True, False)
    assert narrowed.call("show_edit", edit=edit).refused
    narrowed.done("show_edit", edit=mine)
    narrowed.resource(f"cas://edit/{mine}")
    narrowed.resource(f"cas://blob/{blob_id(MINE).hex()}")
    for address in (f"cas://edit/{edit}", f"cas://blob/{blob_id(THEIRS).hex()}"):
        with pytest.raises(MCPError):
            narrowed.resource(address)


def test_undo_refuses_a_file_that_is_no_longer_inside_the_roots(root: Path) -> None:
    roots = [(root / "one").as_uri(), (root / "two").as_uri()]
    file = root / "two" / "file.txt"
    with connected(root, client_roots=lambda: roots) as agent:
        agent.done("write_file", path=str(file), content="mine\n")
        del roots[1]
        error = agent.call("Undo").error
        assert (error["type"], error["reason"]) == ("permission_denied", "permission denied")
        assert file.read_text() == "mine\n"
        roots.append((root / "two").as_uri())
        agent.done("Undo")
    assert file.read_text() == "two\n"


@pytest.mark.parametrize("mode", MODES)
def test_changed_roots_take_effect(root: Path, mode: str) -> None:
    roots = [(root / "one").as_uri()]
    with connected(root, mode=mode, client_roots=lambda: roots) as agent:
        agent.done("read_file", path=str(root / "one" / "file.txt"))
        roots[:] = [(root / "two").as_uri()]
        if mode == "legacy":

            async def notify_roots_changed(client: Client) -> None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MCPDeprecationWarning)
                    await client.send_roots_list_changed()

            agent.run(notify_roots_changed)
        agent.done("read_file", path=str(root / "two" / "file.txt"))
        assert agent.call("read_file", path=str(root / "one" / "file.txt")).error["code"] == -32002


def resource_names(agent: Agent) -> list[str]:
    """Return the names in the list of resources."""

    async def names(client: Client) -> list[str]:
        return [resource.name for resource in (await client.list_resources()).resources]

    return agent.run(names)


@pytest.mark.parametrize("mode", MODES)
def test_resource_list_shows_no_names_outside_the_roots(root: Path, mode: str) -> None:
    names = [(root / "one").as_uri()]
    with connected(root) as other:
        mine = other.done("write_file", path="one/new.txt", content="mine\n").structured
        other.done("write_file", path="two/secret plan.txt", content="theirs\n")
        assert len(resource_names(other)) == 4
    shown = [f"edit {mine['edit']} of {root / 'one' / 'new.txt'}", f"conversation {mine['mcp_conversation_id']}"]
    with connected(root, mode=mode, client_roots=lambda: names) as agent:
        before = resource_names(agent)
        agent.done("list_allowed_directories")
        assert set(before) <= set(resource_names(agent)) == {shown[0], mine["mcp_conversation_id"]}
        # In the older version the list itself requests the roots; in the newer one they are not known yet.
        assert len(before) == (2 if mode == "legacy" else 0)


def test_subscribed_connection_is_not_notified_of_changes_outside_the_roots(root: Path) -> None:
    received: list[str] = []
    mine = anyio.Event()

    async def receive(message: object) -> None:
        received.append(type(message).__name__)
        if isinstance(message, ResourceUpdatedNotification):
            received[-1] = str(message.params.uri)
            if received[-1] == "cas://conversation/mine":
                mine.set()

    roots = [(root / "one").as_uri()]
    with (
        connected(root) as other,
        connected(root, mode="legacy", client_roots=lambda: roots, on_message=receive) as agent,
    ):

        async def work(client: Client) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                for address in ("cas://conversation/theirs", "cas://conversation/mine"):
                    await client.subscribe_resource(address)
            await anyio.to_thread.run_sync(lambda: _write_outside_and_inside(other))
            await mine.wait()

        agent.run(work)
    assert received == ["ResourceListChangedNotification", "cas://conversation/mine"]


def test_stream_is_not_notified_of_changes_outside_the_roots(root: Path) -> None:
    roots = [(root / "one").as_uri()]
    addresses = ["cas://conversation/theirs", "cas://conversation/mine"]
    with connected(root) as other, connected(root, client_roots=lambda: roots) as agent:
        agent.done("list_allowed_directories")

        async def work(client: Client) -> list[object]:
            reported: list[object] = []
            async with client.listen(resources_list_changed=True, resource_subscriptions=addresses) as stream:
                await anyio.to_thread.run_sync(lambda: _write_outside_and_inside(other))
                async for event in stream:
                    reported.append(event)
                    if event == ResourceUpdated("cas://conversation/mine"):
                        break
            return reported

        assert agent.run(work) == [ResourcesListChanged(), ResourceUpdated("cas://conversation/mine")]


def _write_outside_and_inside(other: Agent) -> None:
    """Change a file outside the roots, and then one inside."""
    other.done("write_file", path="two/new.txt", content="theirs\n", mcp_conversation_id="theirs")
    other.done("write_file", path="one/new.txt", content="mine\n", mcp_conversation_id="mine")


@pytest.mark.parametrize("mode", MODES)
def test_roots_never_widen_the_served_directories(root: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "secret.txt").write_text("secret\n")
    with connected(root / "one", mode=mode, client_roots=lambda: [tmp_path.as_uri()]) as agent:
        assert agent.call("read_file", path=str(tmp_path / "secret.txt")).error["code"] == -32002
        agent.done("read_file", path="file.txt")
    with connected(root / "one", mode=mode, client_roots=lambda: [(root / "two").as_uri()]) as agent:
        error = agent.call("read_file", path=str(root / "one" / "file.txt")).error
        assert (error["code"], error["message"].partition(":")[0]) == (-32002, "No directory is allowed to work in")
        assert "change the one or the other" in error["hint"]


@pytest.mark.parametrize("mode", MODES)
def test_roots_are_served_if_no_directory_was_given(root: Path, mode: str) -> None:
    roots = [(root / "one").as_uri(), (root / "one" / "inner").as_uri()]
    with connected(root / "one", served=[], mode=mode, client_roots=lambda: roots) as agent:
        agent.done("write_file", path=str(root / "one" / "new.txt"), content="new\n")
        agent.done("write_file", path=str(root / "one" / "inner" / "new.txt"), content="new\n")
        assert agent.call("read_file", path=str(root / "two" / "file.txt")).error["code"] == -32002
        assert [view.edit.path for view in agent.history()] == [b"new.txt", b"inner/new.txt"]  # of the outer one
    assert (root / "one" / "inner" / ".cas").is_dir()


@pytest.mark.parametrize(("mode", "roots"), sampled_product(MODES, [None, ()]))
def test_every_path_is_refused_without_directories_and_roots(root: Path, mode: str, roots: tuple[()] | None) -> None:
    with connected(root, served=[], mode=mode, client_roots=None if roots is None else lambda: roots) as agent:
        for tool, arguments in (
            ("read_file", {"path": str(root / "one" / "file.txt")}),
            ("write_file", {"path": "file.txt", "content": "x"}),
            ("apply_patch", {"file_path": "file.txt", "patch": ""}),
            ("list_edits", {}),
        ):
            result = agent.call(tool, **arguments)
            reported = result.structured["hint"] if tool == "apply_patch" else result.error["hint"]
            assert (
                "Start the server with a directory, as in `editledger DIR`, or let the client name its roots"
                in reported
            )
        assert agent.done("list_allowed_directories").structured["directories"] == []
