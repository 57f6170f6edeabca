"""The command `cas demo`."""

import click

from cli.app.invocation import command

__all__ = ["demo"]


@command("demo")
@click.option("--web", is_flag=True, help="Review in the browser while the agent works, until you press Ctrl-C.")
def demo(*, web: bool) -> None:
    """Watch an agent edit a copy of real source files, and a person review the edits."""
    if web:
        from cli.commands.demo_web import run_web

        click.get_current_context().exit(run_web())
    from cli.commands.demo_script import run

    click.get_current_context().exit(run())
