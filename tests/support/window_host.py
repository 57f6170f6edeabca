"""A host for tests that draws windows of a server as MCP Apps asks: one page, and each window in a frame elsewhere.

The page and the window have different origins, the window's document has the Content-Security-Policy that the protocol
prescribes, and its frame is sandboxed. The page passes messages between the window and a real client and server.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.support.mcp_agent import Agent
from tests.support.windowed_agent import raw_call

__all__ = ["WindowHost", "hosting"]

_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'none'; "
    "img-src 'self' data:; font-src 'self'; media-src 'self' data:; frame-src 'none'; object-src 'none'; "
    "base-uri 'self'"
)

_PAGE: Final = """<!doctype html><html lang="en"><title>Host</title>
<iframe id="window" title="Review" sandbox="allow-scripts allow-same-origin" style="width:100%;height:300px"></iframe>
<script>
const frame = document.getElementById("window"), windowOrigin = "WINDOW_ORIGIN";
const seen = { methods: [], contexts: [], sizes: [] };
const say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, windowOrigin);
const ask = async (what, body) => (await fetch(what, { method: "POST", body: JSON.stringify(body) })).json();
addEventListener("message", async ({ source, origin, data }) => {
  if (source !== frame.contentWindow || origin !== windowOrigin) return;
  seen.methods.push(data.method);
  if (data.method === "ui/initialize") {
    say({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "test host", version: "1" },
      hostCapabilities: { serverTools: {} }, hostContext: HOST_CONTEXT } });
  } else if (data.method === "ui/notifications/initialized") {
    say({ method: "ui/notifications/tool-input", params: { arguments: {} } });
    say({ method: "ui/notifications/tool-result", params: await ask("/review", {}) });
  } else if (data.method === "tools/call") {
    const answer = await ask("/call", data.params);
    say({ id: data.id, ...(answer.denied ? { error: { code: -32000, message: answer.denied } } : { result: answer }) });
  } else if (data.method === "ui/update-model-context") {
    seen.contexts.push(data.params);
    say({ id: data.id, result: {} });
  } else if (data.method === "ui/notifications/size-changed") {
    seen.sizes.push(data.params);
    frame.style.height = `${data.params.height}px`;
  } else if (data.id !== undefined && data.method) say({ id: data.id, error: { code: -32601, message: "Not found" } });
});
frame.src = `${windowOrigin}/window`;
</script>"""


class WindowHost:
    """A host, with what it may change about a window."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.page = ""  # the address of the host's page
        self.arguments: dict[str, Any] = {}  # of the call of `review_edits`
        self.context: dict[str, Any] = {"theme": "light"}
        self.denied = ""  # why the host passes on no call of the window; "": it does
        self.keeps_meta = True
        self.calls: list[str] = []  # the tools that windows called

    def review(self) -> dict[str, Any]:
        """Call the tool that the window is drawn for, as the model does."""
        return self._passed(raw_call(self._agent, "review_edits", **self.arguments))

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        """Call a tool for the window, if the tool's visibility allows that."""
        name = params["name"]
        listed = {tool.name: tool.meta or {} for tool in self._agent.tools()}
        if self.denied or "app" not in listed.get(name, {}).get("ui", {}).get("visibility", ["model", "app"]):
            return {"denied": self.denied or f"No window may call {name}"}
        self.calls.append(name)
        return self._passed(raw_call(self._agent, name, **params["arguments"]))

    def document(self) -> str:
        """Return the window's HTML, as the server has it."""
        content = self._agent.resource("ui://editledger/review.html").model_dump()
        text: str = content["text"]
        return text

    def _passed(self, result: dict[str, Any]) -> dict[str, Any]:
        return result if self.keeps_meta else {name: part for name, part in result.items() if name != "_meta"}


@contextmanager
def hosting(agent: Agent) -> Iterator[WindowHost]:
    """Serve the host's page and the window's document at two ports of this machine."""
    host = WindowHost(agent)
    window: dict[str, Callable[[dict[str, Any]], str]] = {"/window": lambda _: host.document()}
    with _serving(window, _POLICY) as window_origin:

        def page(_: dict[str, Any]) -> str:
            return _PAGE.replace("WINDOW_ORIGIN", window_origin).replace("HOST_CONTEXT", json.dumps(host.context))

        routes: dict[str, Callable[[dict[str, Any]], str]] = {
            "/": page,
            "/review": lambda _: json.dumps(host.review()),
            "/call": lambda params: json.dumps(host.call(params)),
        }
        with _serving(routes, "") as origin:
            host.page = f"{origin}/"
            yield host


@contextmanager
def _serving(routes: dict[str, Callable[[dict[str, Any]], str]], policy: str) -> Iterator[str]:
    """Serve texts, each made from the body of its request; yield the origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def _answer(self, body: dict[str, Any]) -> None:
            make = routes.get(self.path)
            content = b"" if make is None else make(body).encode()
            self.send_response(404 if make is None else 200)
            self.send_header(
                "Content-Type", "text/html; charset=utf-8" if self.command == "GET" else "application/json"
            )
            self.send_header("Content-Length", str(len(content)))
            if policy:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
