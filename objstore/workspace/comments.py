"""Comment on lines and hunks, and track the state of each comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from objstore.workspace.role import Role, decides, reads

# What only some methods need is imported in them: `cas status` must not wait for the review core to load.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from objstore.model.basic_types import Seq, Unit
    from objstore.model.views import CommentView

__all__ = ["Comments"]


class Comments(Role):
    """Comment on lines and hunks, and track the state of each comment.

    A comment follows its lines through later edits and decisions. Its number names it. What it says is a person's word,
    which agents are sent as such, so inside an agent's shell only answers of that agent's are recorded.
    """

    def add_to_units(self, units: Sequence[Unit], text: str, *, who: str = "") -> CommentView:
        """Record a comment on units of edits, in one file or several.

        Raises AgentDecides, NoSuchName, EditExpired, HistoryBroken, and as Call.commit.
        """
        from objstore.review import comments

        self.require_person()
        return comments.add_to_units(self._journal, units, text, who=who)

    def add_to_lines(self, path: str, lines: tuple[int, int] = (0, 0), *, text: str, who: str = "") -> CommentView:
        """Record a comment on lines of a file, from the first to the last, from 1; (0, 0): on the file as a whole.

        Raises AgentDecides, NoSuchName, LineMissing, FileChanged if the file on disk is not as recorded, HistoryBroken,
        and what path lookups and Call.commit raise.
        """
        from objstore.review import comments

        self.require_person()
        return comments.add_to_lines(self._journal, path, lines, text, who=who)

    def answer(
        self, number: int, text: str, *, who: str = "", conversation: str = "", by_agent: bool = False
    ) -> CommentView:
        """Record an answer to a comment, and return the comment.

        `conversation`: of the agent, if it is `by_agent`; "": the one that the comment was sent to. Raises AgentDecides
        if it is not, NoSuchName, and what Call.commit raises.
        """
        from objstore.review import comments

        if not by_agent:
            self.require_person()
        return comments.add_answer(
            self._journal, number, text, who=who, conversation=conversation if by_agent else "", by_agent=by_agent
        )

    @decides
    def resolve(self, numbers: Collection[int], *, who: str = "") -> list[CommentView]:
        """Resolve comments, and return them. Raises NoSuchName with nothing recorded, and as Call.commit."""
        from objstore.model.basic_types import CommentState
        from objstore.review import comments

        return comments.mark(self._journal, numbers, CommentState.RESOLVED, who=who)

    @decides
    def reopen(self, numbers: Collection[int], *, who: str = "") -> list[CommentView]:
        """Make comments open again, so that they are sent again, and return them. Raises as `resolve`."""
        from objstore.model.basic_types import CommentState
        from objstore.review import comments

        return comments.mark(self._journal, numbers, CommentState.OPEN, who=who)

    @reads
    def all(self) -> list[CommentView]:
        """Return every comment, oldest first, each with its answers."""
        from objstore.review import comments

        return comments.comments(self._journal)

    @reads
    def get(self, number: int) -> CommentView:
        """Return a comment with its answers. Raises NoSuchName."""
        from objstore.review import comments

        return comments.comment(self._journal, number)

    @reads
    def of_edits(self, seqs: Collection[int]) -> dict[Seq, list[CommentView]]:
        """Return the comments on lines or units of edits, by edit, oldest first."""
        # Every edit that is shown asks this, and mostly there is no comment: what only they need isn't imported.
        if self._store.index.numbers.next_comment() == 1:
            return {}
        from objstore.review import comments

        return comments.of_edits(self._journal, seqs)

    @reads
    def unsent(self) -> list[tuple[CommentView, frozenset[str]]]:
        """Return the comments that no agent was sent yet, each with the conversations it is meant for (none: any)."""
        from objstore.review import comments

        return comments.unsent(self._journal)

    def mark_sent(self, numbers: Iterable[int], conversation: str) -> None:
        """Record that comments were sent to a conversation. Call it after the message. Raises as Call.commit."""
        from objstore.review import comments

        comments.mark_sent(self._journal, numbers, conversation=conversation)

    def mark_listed(self, numbers: Iterable[int], conversation: str) -> None:
        """Record that a conversation ("": not known) has listed comments: those for it are sent. Raises as Call.commit.

        A comment that is meant for another session is still to be sent to that one.
        """
        from objstore.review import comments

        comments.mark_listed(self._journal, numbers, conversation=conversation)

    def address(self, numbers: Iterable[int], conversation: str = "", *, who: str = "") -> list[CommentView]:
        """Address comments to a conversation ("": the agent that works next), sent before or not, and return them.

        Raises AgentDecides, NoSuchName with nothing recorded, and what Call.commit raises.
        """
        from objstore.review import comments

        self.require_person()
        return comments.address(self._journal, numbers, conversation or comments.ANY_AGENT, who=who)
