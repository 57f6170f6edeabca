"""Find out whether a decision is made inside an agent's shell: a person decides, and no program of an agent's.

A command's own ancestors are compared with the client processes of the open calls. This prevents what an agent does
without meaning harm. A shell can detach itself from its client, and where no process can be named, as on macOS, none is
found: docs/agents.md says what is prevented and what is only shown.
"""

from typing import Final

from objstore.disk.fs.processes import lineage
from objstore.model.basic_types import Surface
from objstore.model.records import SHELL
from objstore.review.calls.open_calls import OpenCalls
from objstore.review.calls.policies import Policies
from objstore.storage.transaction.journal import Journal
from objstore.values.fastclass import replace
from objstore.values.request_errors import AgentDecides

__all__ = ["client_around", "marks", "require_person"]

_CHECKED: Final = frozenset({Surface.TERMINAL, Surface.SCRIPT, Surface.EDITOR, Surface.PAGE})
"""Where an ancestor says something: the server of a chat is the client's own child, and asks the person itself."""


def require_person(journal: Journal) -> None:
    """Refuse a decision inside an agent's shell, or mark what is recorded from now on as made there.

    Raises AgentDecides, unless the setting `review.by_agents` is `mark`.
    """
    if journal.decider.via not in _CHECKED:
        return
    client = client_around(journal)
    if client:
        with journal.reading() as store:
            is_marked = Policies(journal.tree.root, store).marks_agents
        if not is_marked:
            raise AgentDecides(client)
    journal.decider = replace(journal.decider, agent=client)


def marks(journal: Journal) -> dict[str, str]:
    """Return the note of an edit of a person's that is made now: inside which agent's shell, if it is."""
    return {SHELL: journal.decider.agent} if journal.decider.agent else {}


def client_around(journal: Journal) -> str:
    """Return the client of a running call inside whose process this one runs ("": none is known)."""
    # The first is this process itself.
    ancestors = frozenset(lineage()[1:])
    around = [call for call in OpenCalls(journal).calls().values() if call.process in ancestors]
    return next((call.notes.get("client", "") or "an agent" for call in around), "")
