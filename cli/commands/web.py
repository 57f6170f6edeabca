"""The command `cas web`: review in a browser."""

import click

from cli.app.invocation import Invocation, Number, command

__all__ = ["web"]

_LAST_PORT = 65_535


@command("web")
@click.option("--port", type=Number(1, _LAST_PORT), metavar="N", help="Serve at this port instead of a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def web(*, port: int | None, no_browser: bool) -> None:
    """Review in a browser on this machine, as edits come in: the same changes and decisions as `cas review`.

    Keep the printed address secret: every program of this machine that has it can review. Ctrl-C ends the server.
    """
    with Invocation.current().reviewed_workspace() as workspace:
        root = workspace.root
    from cli.web.server import serve

    serve(root, click.get_current_context(), port=port or 0, opens_browser=not no_browser)
