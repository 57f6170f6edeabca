"""The command `cas web`: review in a browser."""

import click

from cli.app.invocation import Invocation, Number, command
from cli.app.member_names import store_named
from cli.search.candidates import stores

__all__ = ["web"]

_LAST_PORT = 65_535


@command("web")
@click.argument("store", metavar="[STORE/]", default="", shell_complete=stores)
@click.option("--port", type=Number(1, _LAST_PORT), metavar="N", help="Serve at this port instead of a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def web(*, store: str, port: int | None, no_browser: bool) -> None:
    """Review in a browser on this machine, as edits come in: the same changes and decisions as `cas review`.

    With STORE/, what another store of a bucket has, as the newest `cas pull` fetched it: a decision goes to the log of
    the bucket, and is carried out where the files are.

    Keep the printed address secret: every program of this machine that has it can review. Ctrl-C ends the server.
    """
    from cli.selection.elsewhere import Elsewhere

    with Invocation.current().reviewed_workspace() as workspace:
        elsewhere = Elsewhere(workspace, *store_named(workspace, store)) if store else None
        root = workspace.root if elsewhere is None else elsewhere.root
    from cli.web.server import serve

    serve(root, click.get_current_context(), port=port or 0, opens_browser=not no_browser, elsewhere=elsewhere)
