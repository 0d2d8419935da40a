"""Why the leader does not tell a viewer what he asks for, in words, with the remedy."""

from __future__ import annotations

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.dashboard.pages.page_elements import card, notes
from stromboli.cli.leader.leader_query import Unreachable
from stromboli.simulator.reports.page.markup import Markup

NOT_OURS = (
    "Another scheduler leads, Volcano's perhaps, which tells nothing of its cycles and its policy; Stromboli's"
    " does, once it has taken over."
)
SWITCHED_OFF = "--enable-explain=true lets the scheduler answer: deploy/components/explain switches it on."
NO_RIGHT = (
    "Whoever looks after the cluster can give you the right, by the ClusterRole stromboli-explain-cluster and the"
    " Role stromboli-explain of deploy/components/explain."
)
LATER = "It is asked again every few seconds."
_REFUSALS = ("forbidden", "cannot ", "may not ", "Unauthorized")


def silence(why: Unreachable, subject: str, instead: str) -> Markup:
    """A card that says why the leader does not tell of a subject, what to do, and what is shown instead."""
    return card(
        f"The leader does not tell of its {subject}",
        notes([NOT_OURS if why.is_expected else shown(why.why)], "warn"),
        notes([_remedy(why), instead]),
        wide=True,
    )


def _remedy(why: Unreachable) -> str:
    if why.is_expected:
        return shown(why.why)
    if "--enable-explain" in why.why:
        return SWITCHED_OFF
    return NO_RIGHT if any(word in why.why for word in _REFUSALS) else LATER
