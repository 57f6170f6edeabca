"""What each client is made to do, and what must come of it. A scenario raises AssertionError with what came instead."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from objstore import Origin, Status
from tests.clients.client_run import FILES, ClientRun
from tests.clients.programs import ClaudeCode
from tests.clients.scripted_model import Step

__all__ = ["EFFECTS", "SCENARIOS", "NotTried", "Scenario", "session"]

PROMPT: Final = "make it better"
REASON: Final = "this was not asked for"
SLOW: Final = "echo begun > slow.txt; sleep 15"
LONGEST_SHELL: Final = 30
"""Seconds after which that has ended, wherever it runs."""

EFFECTS: Final = (
    "printf 'new\\n' > new.py",
    "sed -i 's/version = 1/version = 2/' app.py",
    "sed -i s/MIT/mit/ README.md setup.cfg",
    "mv CHANGES HISTORY",
    "rm MANIFEST.in",
    "echo '# t' >> setup.cfg",
)
"""What the tools of the first scenario do, one after the other, as shell commands."""

CHANGES: Final = [
    ("create", "new.py"),
    ("edit", "app.py"),
    ("edit", "README.md"),
    ("edit", "setup.cfg"),
    ("move", "HISTORY"),
    ("delete", "MANIFEST.in"),
    ("edit", "setup.cfg"),
]


class NotTried(Exception):
    """A scenario that says nothing about a client; its text says why."""


Scenario = Callable[[ClientRun], None]


def session(run: ClientRun) -> None:
    """Write, edit, shell edits, move, delete, and a shell that fails."""
    program, project = run.program, run.project
    script = run.script(
        program.write(project / "new.py", "new\n"),
        *program.reads(project / "app.py"),
        program.edit(project / "app.py", "version = 1", "version = 2"),
        *map(program.shell, EFFECTS[2:5]),
        program.shell(f"{EFFECTS[5]}; exit 3"),
    )
    printed = run.work(PROMPT, script)
    found = [view for view in run.edits() if view.edit.origin is Origin.AGENT]
    made = [(str(view.edit.operation.value), os.fsdecode(view.edit.path)) for view in found]
    _equal(sorted(made), sorted(CHANGES), printed)
    _equal({view.status for view in found}, {Status.PENDING})
    _equal(len({view.edit.conversation for view in found}), 1)
    _equal({view.edit.notes.get("prompt", "").strip('"') for view in found}, {PROMPT})
    others = [name for name, by in run.authors().items() if "agent" not in by]
    assert others == [], f"changes that were not asked for: {others}"
    assert not (project / ".cas" / "hook.log").exists(), (project / ".cas" / "hook.log").read_text()
    _equal(run.running(), [])


def rejection(run: ClientRun) -> None:
    """Reject and comment: it reaches the model with its next tool's result, and at the next prompt."""
    program, project = run.program, run.project
    script = run.script(
        program.write(project / "one.txt", "1\n"),
        program.write(project / "two.txt", "2\n"),
        lambda: run.cas("reject", run.edit_of("one.txt"), "--reason", REASON),
        lambda: run.cas("comment", "two.txt:1", "-m", "say more here"),
        program.shell("true"),
    )
    run.work(PROMPT, script)
    asked = run.model.asked(script)
    _check_words(asked[-1], REASON)
    _check_words(asked[-1], "say more here")
    later = run.script(program.shell("true"))
    run.cas("reject", run.edit_of("two.txt"), "--reason", "nor was that")
    run.work("go on", later, continuing=True)
    # Copilot's program doesn't pass on what a prompt's hook prints.
    _check_words(run.model.asked(later)[1 if program.name == "vscode" else 0], "nor was that")


def server(run: ClientRun) -> None:
    """Edit by our server: the edits are the session's, and our server's next result has a rejection."""
    program = run.program.with_servers
    script = run.script(
        program.ours("write_file", path="one.txt", content="1\n"),
        lambda: run.cas("reject", run.edit_of("one.txt"), "--reason", REASON),
        program.ours("write_file", path="two.txt", content="2\n"),
    )
    printed = run.work(PROMPT, script, program=program)
    _equal({name: by for name, by in run.authors().items() if name in {"one.txt", "two.txt"}}, AGENTS_BOTH, printed)
    _check_words(run.model.asked(script)[-1], REASON)
    _equal(run.turns(), [(PROMPT, 2)])


AGENTS_BOTH: Final = {"one.txt": ["agent"], "two.txt": ["agent"]}


def interrupt(run: ClientRun) -> None:
    """Type Ctrl-C while a shell runs: a person's lines after that are the person's."""
    with run.begun_on_terminal(PROMPT, run.script(run.program.shell(SLOW))) as terminal:
        run.await_file("slow.txt")
        for _ in range(3):  # some ask to be interrupted again
            if terminal.process.poll() is None:
                terminal.type("\x03")
                time.sleep(1)
        terminal.hang_up()
    _ended(run)


def hang_up(run: ClientRun) -> None:
    """Close its terminal while a shell runs: the same."""
    with run.begun_on_terminal(PROMPT, run.script(run.program.shell(SLOW))) as terminal:
        run.await_file("slow.txt")
        terminal.hang_up()
    _ended(run)


def kill(run: ClientRun) -> None:
    """Kill it while a shell runs: the same."""
    with run.begun(PROMPT, run.script(run.program.shell(SLOW))) as process:
        run.await_file("slow.txt")
        _equal([call["state"] for call in run.running()], ["running"])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    _ended(run)


def two_sessions(run: ClientRun) -> None:
    """Run two sessions at once: each file belongs to the session that wrote it, and what shells did to no other."""
    program, project = run.program, run.project
    run.work("hello", run.script())  # some create their own database at their first start, and only one may do so

    def steps(name: str) -> list[Step]:
        loop = f"for i in 1 2 3 4 5 6; do echo $i >> by_shell_{name}.txt; sleep 0.3; done"
        return [program.write(project / f"by_{name}.txt", "1\n"), program.shell(loop)]

    scripts = [run.script(*steps(name)) for name in ("a", "b")]
    with ThreadPoolExecutor() as pool:
        printed = list(pool.map(lambda script: run.work(PROMPT, script), scripts))
    owners: dict[str, set[str]] = {}
    for view in run.edits():
        by = view.edit.conversation if view.edit.origin is Origin.AGENT else str(view.edit.origin)
        owners.setdefault(os.fsdecode(view.edit.path), set()).add(by)
    _equal(sorted(owners), ["by_a.txt", "by_b.txt", "by_shell_a.txt", "by_shell_b.txt"], printed)
    (first,), (second,) = owners["by_a.txt"], owners["by_b.txt"]
    assert first != second, owners
    for name, own in (("a", first), ("b", second)):
        assert owners[f"by_shell_{name}.txt"] <= {own, "unattributed"}, owners


def trust(run: ClientRun) -> None:
    """Work without trust, which doctor reports, and with it."""
    program = run.program.untrusted
    if program is None:
        raise NotTried("it loads a project's settings before a person says that it is trusted")
    check = f"{program.name} is trusted"
    run.work(PROMPT, run.script(program.shell("echo 1 > one.txt")), program=program)
    _equal(run.events(), [])
    assert run.doctor().get(check) is False, run.doctor()
    run.trust(program)
    assert check not in run.doctor(), run.doctor()
    run.work(PROMPT, run.script(program.shell("echo 2 > two.txt")), program=program)
    _equal(run.authors().get("two.txt"), ["agent"])


def background(run: ClientRun) -> None:
    """Leave a task in the background: its end is no prompt of a person, and what it did is the session's."""
    program = run.program
    if not isinstance(program, ClaudeCode):
        raise NotTried("only Claude Code reports it")
    script = run.script(
        program.background("sleep 4; echo done > background.txt"),
        program.shell("echo now > now.txt"),
        (),
        program.shell("echo after > after.txt"),
    )
    run.work(PROMPT, script)
    _equal(run.authors().get("after.txt"), ["agent"])
    _equal({view.edit.notes.get("prompt", PROMPT) for view in run.edits()}, {PROMPT})


def escape(run: ClientRun) -> None:
    """Type Esc while a shell runs, of which there may be no event: what a person types then is not the agent's."""
    program = run.program.on_screen
    if program is None:
        raise NotTried("its screen is not tried")
    with run.begun_on_terminal(PROMPT, run.script(run.program.shell(SLOW)), program) as terminal:
        run.await_file("slow.txt")
        terminal.type("\x1b")
        time.sleep(2)
        _type_line(run, "README.md")
        for _ in range(3):
            if terminal.process.poll() is None:
                terminal.type("\x03")
                time.sleep(1)
        terminal.hang_up()
    run.cas("record")
    _equal(run.running(), [])
    assert "agent" not in run.authors()["README.md"], run.authors()
    assert run.authors()["slow.txt"] in (["agent"], ["unattributed"]), run.authors()


def late_write(run: ClientRun) -> None:
    """Let a shell's process, detached from it, write after the shell's end: that is never accepted."""
    script = run.script(
        run.program.shell("setsid sh -c 'sleep 3; echo late > late.txt' > /dev/null 2>&1 & echo begun > begun.txt"),
        lambda: run.await_file("late.txt"),
        run.program.shell("true"),
    )
    run.work(PROMPT, script)
    run.cas("record")
    _equal(run.authors().get("begun.txt"), ["agent"])
    _equal(_accepted(run), [])
    assert run.authors()["late.txt"] in (["agent"], ["unattributed"]), run.authors()


def outlives(run: ClientRun) -> None:
    """Leave a process behind: a person's lines while it lives are not the agent's, nor are its own the person's."""
    script = run.script(
        run.program.shell("(sleep 6; echo done > left.txt) > /dev/null 2>&1 & true"),
        lambda: _type_line(run, "README.md"),
        run.program.shell("echo now > now.txt"),
        lambda: time.sleep(8),  # a client may also end what its shell has left
        run.program.shell("true"),
    )
    run.work(PROMPT, script)
    run.cas("record")
    assert run.authors()["README.md"] in (["unattributed"], ["person"]), run.authors()
    assert run.authors().get("left.txt", ["agent"]) in (["agent"], ["unattributed"]), run.authors()
    assert "now.txt" not in _accepted(run), run.authors()


def worktree(run: ClientRun) -> None:
    """Work in a linked worktree inside the project: what is done there is the agent's, what git put there is not."""
    _repository(run)
    there = run.project / "wt" / "one"
    script = run.script(
        run.program.shell("git worktree add -q wt/one -b one"),
        run.program.shell("echo helper >> wt/one/app.py"),
        run.program.write(there / "new.txt", "new\n"),
    )
    run.work(PROMPT, script)
    run.cas("record")
    _equal(run.authors().get("wt/one/new.txt"), ["agent"])
    assert "agent" in run.authors().get("wt/one/app.py", []), run.authors()
    pending = {os.fsdecode(view.edit.path) for view in run.edits() if view.status is Status.PENDING}
    _equal({path for path in pending if path.startswith("wt/")}, {"wt/one/new.txt", "wt/one/app.py"})


def git_reset(run: ClientRun) -> None:
    """Let it run `git reset --hard`: a person's lines are back after a rejection."""
    _repository(run)
    _type_line(run, "README.md")
    run.cas("record")
    text = (run.project / "README.md").read_text()
    run.work(PROMPT, run.script(run.program.shell("git reset -q --hard")))
    assert (run.project / "README.md").read_text() != text
    taken = run.edits()[-1]
    _equal((os.fsdecode(taken.edit.path), taken.status), ("README.md", Status.PENDING))
    run.cas("reject", str(taken.seq))
    _equal((run.project / "README.md").read_text(), text)


def git_clean(run: ClientRun) -> None:
    """Let it run `git clean -fdx`: that the history is gone is said."""
    _repository(run)
    script = run.script(run.program.shell("echo 1 > one.txt"), run.program.shell("git clean -qfdx"))
    run.work(PROMPT, script)
    if (run.project / ".cas").exists():
        raise AssertionError("git has left the history")
    try:
        said = run.cas("status")
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode()
    assert "was here until" in said, said


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "session": session,
    "rejection": rejection,
    "server": server,
    "interrupt": interrupt,
    "hang-up": hang_up,
    "kill": kill,
    "two sessions": two_sessions,
    "background": background,
    "escape": escape,
    "late write": late_write,
    "outlives": outlives,
    "worktree": worktree,
    "git reset": git_reset,
    "git clean": git_clean,
    "trust": trust,
}
"""The scenarios, by name."""


def _ended(run: ClientRun) -> None:
    """Check that nothing of the client's is open once the next scan was, and that later lines are the person's.

    What its shell has left behind may live on until it ends by itself.
    """
    until = time.monotonic() + LONGEST_SHELL
    run.cas("record")
    while run.running() and time.monotonic() < until:
        # The client may end only after that scan; then the status says so until the next one.
        states = {call["state"] for call in run.running()}
        _equal(states - {"in the background", "its program has ended"}, set())
        time.sleep(1)
        run.cas("record")
    _equal(run.running(), [])
    with (run.project / "README.md").open("a") as file:
        file.write("mine\n")
    run.cas("record")
    _equal(run.authors()["README.md"], ["person"])
    assert run.authors()["slow.txt"] in (["agent"], ["unattributed"]), run.authors()


def _type_line(run: ClientRun, name: str) -> None:
    """Add a line to a file, as a person."""
    with (run.project / name).open("a") as file:
        file.write("mine\n")


def _repository(run: ClientRun) -> None:
    """Commit the project, without what our setup wrote."""
    run.git("init", "-q")
    run.git("add", *FILES)
    run.git("commit", "-q", "-m", "begin")
    run.cas("record")


def _accepted(run: ClientRun) -> list[str]:
    return [os.fsdecode(view.edit.path) for view in run.edits() if view.status is Status.ACCEPTED]


def _check_words(body: str, words: str) -> None:
    """Check that a request holds some words."""
    assert words in body, f"the model did not read {words!r}"


def _equal(found: Any, wanted: Any, context: object = "") -> None:  # noqa: ANN401 - whatever is compared
    said = context if isinstance(context, str) else json.dumps(context, default=str)
    assert found == wanted, f"{found!r}, and not {wanted!r}{': ' if said else ''}{said[-2000:]}"
