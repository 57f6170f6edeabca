"""A workspace in a real git repository, with an agent whose tools run between hooks, and a person."""

import os
from pathlib import Path

from objstore import Action, AgentCall, CallInfo, Decided, EditFilter, Origin, Workspace, check_store
from tests.support.git_repository import git, new_repository

__all__ = ["PERSON", "GitProject"]

PERSON = CallInfo(tool="", origin=Origin.EXTERNAL)


class GitProject:
    """A workspace in a git repository, an agent that edits files by its own tools, and a person."""

    def __init__(self, folder: Path) -> None:
        """Make a repository with three files in one commit."""
        new_repository(folder)
        (folder / ".gitignore").write_text(".cas/\n")
        for number in range(3):
            (folder / f"{number}.txt").write_text(f"one\ntwo {number}\nthree\nfour\nfive\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "first")
        self.open(folder)

    def open(self, folder: Path) -> None:
        """Make a workspace of a folder with a repository, or with a part of one."""
        self.folder = folder
        self.workspace = Workspace.init(folder)
        self.look()

    @classmethod
    def at(cls, folder: Path) -> "GitProject":
        """Return the project of a work tree that exists."""
        project = cls.__new__(cls)
        project.open(folder)
        return project

    def close(self) -> None:
        self.workspace.close()

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def put(self, name: str, text: str | None) -> None:
        """Write a file, or delete it."""
        if text is None:
            (self.folder / name).unlink()
        else:
            self.write(name, text)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def look(self) -> None:
        """Record what changed, as a person's command does."""
        self.workspace.hooks.notice(PERSON)

    def agent_writes(self, name: str, text: str | None) -> None:
        """Let the agent write or delete a file with its own tool, between the hooks of that call."""
        call = AgentCall(conversation="c", id=os.urandom(4).hex(), tool="Write", paths=(name,))
        self.workspace.hooks.begin(call)
        self.put(name, text)
        self.workspace.hooks.end(call)

    def agent_runs(self, *commands: tuple[str, ...], writes: dict[str, str] | None = None) -> None:
        """Let the agent run a shell that writes files and then runs git."""
        call = AgentCall(conversation="c", id=os.urandom(4).hex(), tool="Bash", paths=None)
        self.workspace.hooks.begin(call)
        for name, text in (writes or {}).items():
            self.write(name, text)
        for command in commands:
            self.git(*command)
        self.workspace.hooks.end(call)

    def statuses(self) -> dict[int, str]:
        """Return the status of every edit that is not git's."""
        edits = self.workspace.history.edits(EditFilter())
        return {view.seq: view.status.value for view in edits if view.edit.origin is not Origin.GIT}

    def git_edits(self) -> int:
        return sum(view.edit.origin is Origin.GIT for view in self.workspace.history.edits(EditFilter()))

    def events(self) -> list[str]:
        """Return what the log says of git, oldest first."""
        decisions = (view.decision for view in self.workspace.history.decisions())
        return [decision.reason for decision in decisions if decision.action is Action.GIT]

    def reject(self, seq: int) -> None:
        _, units = self.workspace.find_units(str(seq))
        assert isinstance(self.workspace.decide(Action.REJECT, units), Decided)

    def has_no_faults(self) -> bool:
        return not check_store(str(self.folder)).faults
