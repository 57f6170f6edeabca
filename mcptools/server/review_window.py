"""Offer the review as a window that clients draw: the extension MCP Apps, its HTML, and the tools that go with it."""

from importlib.resources import files
from typing import Any, Final

from mcp.server.apps import Apps, ResourceCsp, client_supports_apps
from mcp.server.context import ServerRequestContext

from mcptools.catalog.tool_list import REVIEW_TOOLS

__all__ = ["draws_windows", "review_apps", "window_meta"]

_ADDRESS: Final = "ui://editledger/review.html"


def review_apps() -> Apps:
    """Return the extension with the review's HTML, which may load nothing from anywhere."""
    apps = Apps()
    apps.add_html_resource(
        _ADDRESS,
        files("mcptools").joinpath("review.html").read_text("utf-8"),
        name="review",
        title="Review",
        description="The changes that await a person's review",
        csp=ResourceCsp(connect_domains=[], resource_domains=[], frame_domains=[], base_uri_domains=[]),
        prefers_border=True,
    )
    return apps


def draws_windows(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client of a message says that it draws windows."""
    return client_supports_apps(context)


def window_meta(name: str) -> dict[str, Any] | None:
    """Return the `_meta` of a listed tool, which names its window and who may call it; None: it has no window."""
    traits = REVIEW_TOOLS.get(name)
    if traits is None:
        return None
    if not traits.for_model:
        return {"ui": {"resourceUri": _ADDRESS, "visibility": ["app"]}}
    # The flat name is that of hosts from before the extension was stable.
    return {"ui": {"resourceUri": _ADDRESS, "visibility": ["model", "app"]}, "ui/resourceUri": _ADDRESS}
