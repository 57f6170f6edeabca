"""The server over HTTP: which requests it serves or refuses, and the separation of sessions."""

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.types import CallToolResult

from mcptools.files.workspaces import Directories
from mcptools.model.limits import ServerLimits
from mcptools.server.http_server import AuthGuard, application, names_of
from mcptools.server.mcp_server import EditServer
from tests.support.http_server import INITIALIZE, HttpServer, serving
from tests.support.mcp_agent import REPOSITORY, SECONDS_TO_ANSWER, cold_starts, server_command
from tests.support.plain_http import NO_CERTIFICATES
from tests.support.raw_client import tool_call

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with serving(tmp_path_factory.mktemp("workspace").resolve()) as served:
        yield served


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_official_client_reads_and_writes(served: HttpServer, mode: str) -> None:
    async def work(client: Client) -> list[CallToolResult]:
        calls = [
            ("write_file", {"path": f"{mode}.txt", "content": "one\n"}),
            ("read_text_file", {"path": f"{mode}.txt"}),
            ("Undo", {}),
            ("read_file", {"path": f"{mode}.txt"}),
        ]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    wrote, read, undone, gone = served.with_client(work, mode=mode)
    assert [bool(result.is_error) for result in (wrote, read, undone, gone)] == [False, False, False, True]
    assert read.structured_content is not None
    assert read.structured_content["content"].endswith("|one\n")


class HalfSurrogateTransport(httpx2.AsyncHTTPTransport):
    """Replace a placeholder in a request with half a surrogate pair, which the SDK's client can't send."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = (await request.aread()).replace(b"half of it", b"\\ud83d")
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        changed = httpx2.Request(
            request.method, request.url, headers=headers, content=body, extensions=request.extensions
        )
        return await super().handle_async_request(changed)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_half_a_surrogate_pair_in_a_call_is_refused_by_the_tool(served: HttpServer, mode: str) -> None:
    async def work(client: Client) -> list[CallToolResult]:
        calls = [
            ("write_file", {"path": "half", "content": "half of it"}),
            ("apply_patch", {"file_path": "half of it", "patch": ""}),
        ]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    results = served.with_client(work, mode=mode, transport=HalfSurrogateTransport())
    for result, where in zip(results, ("content", "file_path"), strict=True):
        assert result.is_error
        message = f"{where} contains half a surrogate pair, which UTF-8 can't encode"
        assert message in str(result.content[0].model_dump()["text"])
    assert not (served.root / "half").exists()


def test_client_cannot_undo_another_clients_change(served: HttpServer) -> None:
    async def write(client: Client) -> None:
        await client.call_tool("write_file", {"path": "theirs.txt", "content": "theirs\n"})

    async def undo(client: Client) -> CallToolResult:
        return await client.call_tool("Undo", {})

    for mode in ("legacy", "2026-07-28"):
        served.with_client(write, mode=mode, name=f"writer {mode}")
        assert served.with_client(undo, mode=mode, name=f"other {mode}").is_error
    assert (served.root / "theirs.txt").read_text() == "theirs\n"


def test_newer_protocol_version_ignores_the_session_header(served: HttpServer) -> None:
    async def write(client: Client) -> None:
        await client.call_tool("write_file", {"path": "mine.txt", "content": "mine\n"})

    async def undo(client: Client) -> CallToolResult:
        return await client.call_tool("Undo", {})

    named = {"mcp-session-id": "of my own"}
    served.with_client(write, mode="2026-07-28", name="one", headers=named)
    assert served.with_client(undo, mode="2026-07-28", name="two", headers=named).is_error
    assert not served.with_client(undo, mode="2026-07-28", name="one").is_error


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "list_allowed_directories", "arguments": {}}),
        ("resources/list", {}),
        ("resources/read", {"uri": "cas://edit/1"}),
        ("resources/subscribe", {"uri": "cas://edit/1"}),
    ],
)
def test_server_requests_roots_once_while_answering_a_call(
    served: HttpServer, method: str, params: dict[str, Any]
) -> None:
    (served.root / "file").touch()
    with served.talk({}) as other:
        arguments = {"path": "file", "content": f"{method}\n"}
        other.ask("tools/call", {"name": "write_file", "arguments": arguments}, {})
    roots = {"roots": [{"uri": served.root.as_uri()}]}
    with served.talk({"roots": {"listChanged": True}}) as talk:
        for expected in (["roots/list"], []):  # only once, until it reports a change of its roots
            result, requests = talk.ask(method, params, {"roots/list": roots})
            assert not result.get("isError")
            assert requests == expected


@pytest.mark.parametrize("number", [None, True, 1.5, 1.0, 1e300, -0.5, [], [1], {}, {"id": 1}])
def test_request_with_an_invalid_id_is_refused(served: HttpServer, number: object) -> None:
    call = tool_call(2, "write_file", path="unnumbered", content="x")
    with served.talk({}) as talk:
        answer = talk.post({**call, "id": number})
    assert answer.status_code == 400
    words = "Invalid request: an id has to be a string or a whole number"
    assert answer.json() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words}}
    assert not (served.root / "unnumbered").exists()


def test_only_the_id_of_the_request_itself_is_checked(served: HttpServer) -> None:
    with served.talk({}) as talk:
        for name, number in (("whole", 2), ("text", "two")):
            call = tool_call(number, "write_file", path=name, content='{"id": null}')
            call["params"]["_meta"] = {"example.com/trace": {"id": 1.5}}
            assert talk.post(call).status_code == 200
            assert (served.root / name).read_text() == '{"id": null}'
        notice = {"progressToken": 1, "progress": 1, "_meta": {"example.com/trace": {"id": None}}}
        talk.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": notice})


def test_request_with_the_token_is_served(served: HttpServer) -> None:
    assert served.ask() == 200
    assert served.ask(Authorization=f"bearer  {served.token}") == 200
    assert served.ask(Host=f"localhost:{served.port}", Origin=f"http://localhost:{served.port}") == 200
    assert served.ask(Host=f"LocalHost:{served.port}", Origin=f"HTTP://LOCALHOST:{served.port}") == 200


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {half}",
        "Bearer \xff",
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/", "/mcp/", "/docs"])
def test_request_without_the_token_is_refused(served: HttpServer, authorization: str, path: str) -> None:
    given = authorization.format(token=served.token, half=served.token[:-1])
    for method in ("POST", "GET", "DELETE", "OPTIONS"):
        assert served.ask(method=method, path=path, Authorization=given) == 401


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:{port}"]
)
def test_request_for_a_foreign_host_name_is_refused(served: HttpServer, host: str) -> None:
    assert served.ask(Host=host.format(port=served.port)) in {400, 421}


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:1", "file://"],
)
def test_request_of_another_origin_is_refused(served: HttpServer, origin: str) -> None:
    assert served.ask(Origin=origin.format(port=served.port)) == 403
    assert served.ask(method="GET", Origin=origin.format(port=served.port)) == 403


def test_duplicate_authorization_header_is_refused(served: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS_TO_ANSWER) as connection:
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{served.port}",
            "Authorization: Bearer wrong",
            f"Authorization: Bearer {served.token}",
            "Content-Length: 0",
            "Connection: close",
        ]
        connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(("hosts", "status"), [(0, 421), (1, 200), (2, 421)])
def test_request_must_have_exactly_one_host_header(hosts: int, status: int) -> None:
    sent: list[Message] = []

    async def app(_scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def receive() -> Message:
        raise AssertionError("a refused request must not be read")

    async def send(message: Message) -> None:
        sent.append(message)

    # Call the application directly, because the HTTP server itself refuses such a request.
    scope = {"type": "http", "headers": [(b"host", b"localhost:80")] * hosts}
    anyio.run(AuthGuard(app, names_of("127.0.0.1", 80), None), scope, receive, send)
    assert sent[0]["status"] == status


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
@pytest.mark.parametrize("port", [80, 8000])
def test_request_to_the_announced_address_is_served(tmp_path: Path, host: str, port: int) -> None:
    async def work() -> None:
        server = EditServer(Directories([str(tmp_path)]))
        app = application(server, host, port, None, ServerLimits())
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{port}"
        headers = {"Accept": "application/json, text/event-stream", "Origin": str(httpx2.URL(address))}
        async with (
            server.session_manager.run(),
            # This client leaves out port 80, as all do.
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app), base_url=address, verify=NO_CERTIFICATES, headers=headers
            ) as connection,
        ):
            assert (await connection.post("/mcp", json=INITIALIZE)).status_code == 200
            elsewhere = {"Host": "127.0.0.3" if port == 80 else name}
            assert (await connection.post("/mcp", json=INITIALIZE, headers=elsewhere)).status_code == 421

    anyio.run(work)


def test_request_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--max-file-size", "1000") as served:
        assert served.ask({"x": "y" * (1 << 21)}) == 413


def test_token_can_be_given_in_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from the file\n")
    root = tmp_path / "workspace"
    root.mkdir()
    with serving(root, "--token-file", str(tmp_path / "token")) as served:
        assert served.token == ""
        assert served.ask(Authorization="Bearer from the file") == 200
        assert served.ask() == 401
    with serving(root, environment={"EDITLEDGER_TOKEN": "from outside"}) as served:
        assert served.token == ""
        assert served.ask(Authorization="Bearer from outside") == 200
        assert served.ask() == 401


@pytest.mark.parametrize("given", [b" from outside\t", b"from outside\r\n", b"\xef\xbb\xbffrom outside\n"])
def test_whitespace_around_a_token_is_ignored(tmp_path: Path, given: bytes) -> None:
    (tmp_path / "token").write_bytes(given)
    root = tmp_path / "workspace"
    root.mkdir()
    with serving(root, "--token-file", str(tmp_path / "token")) as served:
        assert served.ask(Authorization="Bearer from outside") == 200
    if b"\xef" not in given:
        with serving(root, environment={"EDITLEDGER_TOKEN": given.decode()}) as served:
            assert served.ask(Authorization="Bearer from outside") == 200


@pytest.mark.parametrize("given", ["one\ntwo", "one\0two", "one\u2028two"])
def test_token_that_no_client_can_send_is_refused(tmp_path: Path, given: str) -> None:
    (tmp_path / "token").write_text(given)
    ways: list[tuple[list[str], dict[str, str]]] = [(["--token-file", str(tmp_path / "token")], {})]
    ways += [] if "\0" in given else [([], {"EDITLEDGER_TOKEN": given})]
    for options, environment in ways:
        done = subprocess.run(
            [*server_command(), "--http", "127.0.0.1:0", *options, str(tmp_path)],
            cwd=REPOSITORY,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=SECONDS_TO_ANSWER,
        )
        assert done.returncode == 2
        assert "no client can send the token in" in done.stderr


def test_token_of_whitespace_counts_as_no_token(tmp_path: Path) -> None:
    with serving(tmp_path, environment={"EDITLEDGER_TOKEN": " \n"}) as served:
        assert served.token.strip()
        assert served.ask() == 200


def test_host_and_origin_are_checked_without_a_token_too(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-token") as served:
        assert served.ask(Authorization="") == 200
        assert served.ask(Authorization="", Host="evil.example") == 421
        assert served.ask(Authorization="", Origin="http://evil.example") == 403


def test_client_that_disconnects_during_its_request_is_not_logged(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        for sent in (b"", b"{", b'{"jsonrpc": "2.0", "content": "\\ud83d"'):
            with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS_TO_ANSWER) as line:
                headers = [
                    f"Host: 127.0.0.1:{served.port}",
                    f"Authorization: Bearer {served.token}",
                    "Content-Type: application/json",
                    "Accept: application/json, text/event-stream",
                    "Content-Length: 99",
                    "Expect: 100-continue",  # the server answers this when it begins to read
                ]
                line.sendall("".join(f"{part}\r\n" for part in ["POST /mcp HTTP/1.1", *headers, ""]).encode() + sent)
                assert line.recv(64).startswith(b"HTTP/1.1 100 ")
            assert served.ask() == 200


TOO_MANY_FILES = (
    "editledger: too many open files: no connection is accepted until some are closed. Raise the limit with "
    "`ulimit -n`, or lower --max-connections.\n"
)


def open_connection(served: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS_TO_ANSWER)


def beginning_of_request(served: HttpServer, *headers: str) -> bytes:
    """Return the beginning of a request, without the empty line that ends its headers."""
    named = [f"Host: 127.0.0.1:{served.port}", *headers]
    return "".join(f"{part}\r\n" for part in ["POST /mcp HTTP/1.1", *named]).encode()


def read_until_closed(line: socket.socket) -> None:
    """Read until the server closes the connection."""
    while line.recv(4096):
        pass


def send_slowly(line: socket.socket) -> None:
    """Send a byte now and then. Raises OSError when the server has closed the connection."""
    for _ in range(int(SECONDS_TO_ANSWER * 20)):
        line.sendall(b" ")
        time.sleep(0.05)


def test_server_out_of_descriptors_continues_when_connections_close(tmp_path: Path) -> None:
    with cold_starts(), serving(tmp_path) as served:
        process, sent = served.process.pid, served.process.stderr
        assert sent is not None
        used = len(list(Path(f"/proc/{process}/fd").iterdir()))
        resource.prlimit(process, resource.RLIMIT_NOFILE, (used + 4, used + 4))
        with ExitStack() as lines:
            for _ in range(20):
                lines.enter_context(open_connection(served))
            assert sent.readline() == TOO_MANY_FILES
        assert served.ask() == 200
        assert served.ask() == 200


def test_half_of_the_descriptors_is_reserved_for_the_store(tmp_path: Path) -> None:
    with cold_starts(), serving(tmp_path, descriptors=64) as served:
        with ExitStack() as lines:
            for _ in range(32):
                lines.enter_context(open_connection(served))
            with open_connection(served) as refused:
                assert refused.recv(4096).startswith(b"HTTP/1.1 503 ")
        assert served.ask() == 200


def test_unfinished_request_is_closed_after_a_timeout(tmp_path: Path) -> None:
    with serving(tmp_path, "--request-seconds", "1") as served, ExitStack() as lines:
        headers = beginning_of_request(served, f"Authorization: Bearer {served.token}")
        body = b"Content-Length: 9\r\n\r\n{"
        waiting = []
        for sent in (b"", b"POST /m", headers, headers + body, beginning_of_request(served) + body):
            line = lines.enter_context(open_connection(served))
            line.sendall(sent)
            waiting.append(line)
        for line in waiting:
            read_until_closed(line)  # a refused request is answered before the connection is closed
            assert served.ask() == 200


def test_sending_byte_by_byte_does_not_extend_the_timeout(tmp_path: Path) -> None:
    with serving(tmp_path, "--request-seconds", "1") as served:
        headers = beginning_of_request(served, f"Authorization: Bearer {served.token}")
        for beginning in (b"X-Slow: ", b"Content-Length: 9999999\r\n\r\n"):
            with open_connection(served) as line:
                line.sendall(headers + beginning)
                with pytest.raises(OSError):  # noqa: PT011 -- reset or broken pipe, as the system has it
                    send_slowly(line)


def test_idle_connection_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, "--idle-seconds", "1") as served, open_connection(served) as line:
        line.sendall(beginning_of_request(served, "Content-Length: 0") + b"\r\n")
        read_until_closed(line)


def test_event_stream_with_a_listener_stays_open(tmp_path: Path) -> None:
    options = ("--idle-seconds", "1", "--request-seconds", "1")
    with serving(tmp_path, *options) as served, served.talk({}) as talk, open_connection(served) as line:
        wanted = ("Accept: text/event-stream", f"Mcp-Session-Id: {talk.session}")
        headers = beginning_of_request(served, f"Authorization: Bearer {served.token}", *wanted)
        line.sendall(headers.replace(b"POST", b"GET") + b"\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200 ")
        line.settimeout(2)
        with pytest.raises(TimeoutError):
            read_until_closed(line)


def test_connections_beyond_the_limit_are_refused_until_others_close(tmp_path: Path) -> None:
    with serving(tmp_path, "--max-connections", "2") as served:
        with open_connection(served) as one, open_connection(served) as two:
            for line in (one, two):
                line.sendall(beginning_of_request(served, "Content-Length: 0") + b"\r\n")
                assert line.recv(4096).startswith(b"HTTP/1.1 401 ")
            with open_connection(served) as three:
                assert three.recv(4096).startswith(b"HTTP/1.1 503 ")
        assert served.ask() == 200


def test_interrupt_stops_the_server_quietly(tmp_path: Path) -> None:
    with cold_starts(), serving(tmp_path) as served, ExitStack() as slow:
        for _ in range(3):  # clients that never finish their requests
            line = slow.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS_TO_ANSWER))
            headers = [f"Host: 127.0.0.1:{served.port}", f"Authorization: Bearer {served.token}", "Content-Length: 9"]
            line.sendall("".join(f"{part}\r\n" for part in ["POST /mcp HTTP/1.1", *headers, ""]).encode() + b"{")
        assert served.ask() == 200
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(SECONDS_TO_ANSWER) == 130


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (["--http", "0.0.0.0:0"], "not an address of this machine alone"),
        (["--http", "192.0.2.1:80"], "not an address of this machine alone"),
        (["--http", "[::]:0"], "not an address of this machine alone"),
        (["--http", "8080"], "not HOST:PORT"),
        (["--http", "example.com:80"], "not HOST:PORT"),
        (["--http", "127.0.0.1:x"], "not HOST:PORT"),
        (["--http", "127.0.0.1:70000"], "not a port"),
        (["--no-token"], "--token-file and --no-token need --http"),
        (["--http", "127.0.0.1:0", "--token-file", "/dev/null"], "no token in /dev/null"),
        (["--http", "127.0.0.1:0", "--token-file", "/none/token"], "can't read the token"),
    ],
)
def test_invalid_http_options_are_reported(tmp_path: Path, options: list[str], sent: str) -> None:
    done = subprocess.run(
        [*server_command(), *options, str(tmp_path)],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert sent in done.stderr
    assert "Bearer" not in done.stderr  # no token is printed if the server does not start
