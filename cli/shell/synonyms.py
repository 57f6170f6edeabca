"""Commands and options of other tools, and what does the same here."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

__all__ = ["COMMAND_SYNONYMS", "option_meant"]

COMMAND_SYNONYMS: Final = {
    "abandon": "`cas reject EDIT` takes an edit out",
    "add": "nothing needs to be added; `cas record` records what changed, now",
    "annotate": "`cas blame PATH` shows who wrote each line",
    "backup": "`cas snapshot` saves the current files",
    "check": "`cas fsck` checks the store",
    "checkout": "`cas restore PATH@EDIT` brings a state back",
    "clone": "`cas export --bundle FILE` and `cas import FILE DIR` take the history elsewhere",
    "commit": "nothing needs to be committed; `cas record` records what changed, now",
    "dump": "`cas cat STATE` prints a state",
    "forget": "`cas gc` expires old history, `cas purge` removes some bytes for good",
    "grep": "`cas log -S TEXT` finds the edits that added or removed a text",
    "op": "`cas undo` undoes the newest decision, `cas records` lists all of them",
    "prune": "`cas gc` frees what nothing holds any more",
    "reflog": "`cas records` lists edits and decisions",
    "revert": "`cas reject EDIT` takes an edit out; `cas undo` undoes the newest decision",
    "snapshots": "`cas snapshot list` lists them",
    "squash": "`cas amend EDIT` fixes an edit in your editor",
    "st": "`cas status` says what is pending",
    "stash": "`cas snapshot` saves the current files, and `cas snapshot restore` brings them back",
    "version": "`cas --version` prints it",
}
"""What other tools call a command, and the command that does it here."""

OPTION_SYNONYMS: Final = {
    "--after": "--since TIME",
    "--author": "--tool NAME",
    "--before": "--until TIME",
    "--format": "--json",
    "--grep": "-S TEXT",
    "--keep-within": "--older-than AGE",
    "--limit": "-n NUMBER",
    "--max-count": "-n NUMBER",
    "--message": "--reason TEXT",
    "--name-only": "--stat",
    "--name-status": "--stat",
    "--no-color": "--color never",
    "--path": "--file PATH",
    "--porcelain": "--json",
    "--session": "--conversation ID",
}
"""What other tools call an option, and the option that does it here, if the command has it."""

NO_OP_OPTIONS: Final = {
    "diff": ("-p", "-u", "--patch", "--color-words", "--word-diff"),
    "log": ("--oneline",),
    "ls": ("-R", "-l", "-r", "--recursive"),
    "show": ("-p", "-u", "--patch", "--color-words", "--word-diff"),
    "status": ("-s", "--short"),
}
"""Options of other tools for what a command always does here."""


def option_meant(error: "click.NoSuchOption") -> str:
    """Return a sentence on what an unknown option may have been meant for; "" if nothing is similar."""
    if error.ctx is None:
        return ""
    named = error.option_name
    if named in NO_OP_OPTIONS.get(error.ctx.command.name or "", ()):
        return f"`{error.ctx.command_path}` already does that."
    if named in {"-m", "--message", "--reason"} and error.ctx.command.name in {"accept", "reset", "undo", "redo"}:
        return "Give a reason when you reject: cas reject --reason TEXT."
    if error.ctx.command.name == "mcp":
        return f"Put the server's own options after two dashes: cas mcp -- {named}."
    if named == "--no-pager":
        return "Set CAS_PAGER=cat."
    options = [param for param in error.ctx.command.get_params(error.ctx) if param.param_type_name == "option"]
    has = {option_name.lstrip("-"): option_name for option in options for option_name in option.opts}
    meant = OPTION_SYNONYMS.get(named, "")
    if meant and meant.split()[0].lstrip("-") in has:
        return f"Here it is {meant}."
    from difflib import get_close_matches

    # Without the dashes, which all of them have.
    name = named.lstrip("-")
    near = [whole for whole in has if whole.startswith(name)][:2] or get_close_matches(name, has, 2, 0.75)
    return f"Did you mean {' or '.join(has[name] for name in near)}?" if near else ""
