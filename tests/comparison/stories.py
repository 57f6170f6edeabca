"""The table of docs/comparison.md: what each tool does in each story.

`python -m tests.comparison.stories` writes the table between its two marker lines. The words about editledger, git and
jj are those of the modules whose tests show them; the words about Claude Code are from its documentation.
"""

from pathlib import Path
from typing import Final

from tests.comparison import test_editledger, test_git, test_jj

__all__ = ["PAGE", "STORIES", "TRIED", "with_table"]

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "comparison.md"
BEGIN: Final = "<!-- table: begin (written by `python -m tests.comparison.stories`) -->\n"
END: Final = "<!-- table: end -->\n"
FROM_DOCUMENTATION: Final = " †"

STORIES: Final = {
    "one_prompt": "Undo what was done for one prompt, and keep what was done for later ones",
    "one_hunk": "Undo one hunk of an edit that has later edits around it",
    "shell_command": "Undo what an agent's shell command did",
    "two_sessions": "Two agents worked in one folder at once: undo what one did",
    "person_types": "You typed in the same file meanwhile: undo the agent's lines, keep yours",
    "kinds_of_files": "Undo a change of a binary file, a mode, a move, untracked and ignored files",
    "branch_and_back": "Switch the branch and come back, then undo",
    "killed": "The undo is killed halfway through many files",
    "next_day": "Restart everything, and go on reviewing the next day",
    "reason": "Reject with a reason that the agent reads",
    "formatter": "A formatter ran after the edit: undo both",
    "part_of_a_commit": "Commit a part, and review the rest later",
    "same_lines_later": "Undo an edit alone whose lines a later edit changed again",
    "conversation_too": "Go back in the conversation too",
}

TRIED: Final = {
    "editledger": (test_editledger.__name__, test_editledger.CELLS),
    "git stash": (test_git.__name__, test_git.CELLS),
    "jj": (test_jj.__name__, test_jj.CELLS),
}
"""For each tool, the module with the tests of its stories, and what the table says."""

CLAUDE_CODE: Final = {
    "one_prompt": "no: going back to a prompt also reverts the edits since",
    "one_hunk": "no: files are restored as a whole",
    "shell_command": "no: only its file tools are tracked",
    "two_sessions": "restores the files that its own session edited, each as a whole",
    "person_types": "the file is restored as a whole, to its content at that prompt",
    "kinds_of_files": "contents of files that its tools edited; links are skipped, moves by a shell not tracked",
    "branch_and_back": "not described",
    "killed": "not described",
    "next_day": "yes, in the resumed session: its newest 100 checkpoints, by default for 30 days",
    "reason": "you say it in the next prompt",
    "formatter": "yes, in files that its tools edited",
    "part_of_a_commit": "with git; what a commit means to checkpoints is not described",
    "same_lines_later": "no: the later edit is reverted too",
    "conversation_too": "yes: the menu offers files, conversation, or both",
}
"""What the documentation of its checkpoints says."""

NOTHING_LIKE_IT: Final = {"reason": "no: you say it in the next prompt", "conversation_too": "no"}
"""What the documentation of git and jj has nothing like."""


def with_table(page: str) -> str:
    """Return the text of the page with the table between its two marker lines; raise ValueError without these."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        message = f"{PAGE.name} lacks the marker lines of the table"
        raise ValueError(message)
    return f"{before}{BEGIN}\n{_table()}\n{END}{after}"


def _table() -> str:
    columns = {
        "editledger": _words("editledger"),
        "Claude Code's checkpoints": {story: said + FROM_DOCUMENTATION for story, said in CLAUDE_CODE.items()},
        "git stash": _words("git stash"),
        "jj": _words("jj"),
    }
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    rows += [[f"**{title}**", *(column[story] for column in columns.values())] for story, title in STORIES.items()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _words(tool: str) -> dict[str, str]:
    _, tried = TRIED[tool]
    return {story: said + FROM_DOCUMENTATION for story, said in NOTHING_LIKE_IT.items()} | tried


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
