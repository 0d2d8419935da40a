"""What would let a job start: everything that its gate suggests, those remedies first that cost least."""

from __future__ import annotations

from stromboli.engine.catalog import Catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import Policy
from stromboli.simulator.explain.changed_cycles import StartTrials
from stromboli.simulator.explain.job_remedies import (
    lower_minimum,
    lower_requests,
    relax_topology,
    remove_gates,
    shorten_time,
    start_with_one,
)
from stromboli.simulator.explain.node_remedies import add_nodes, use_more_nodes
from stromboli.simulator.explain.other_job_remedies import evict, let_others_end, raise_priority
from stromboli.simulator.explain.queue_remedies import change_queue, open_queue, raise_queue_limits
from stromboli.simulator.explain.remedy_trials import Remedies, RemedyTrials
from stromboli.simulator.explain.wait_clues import WaitClues

FIRST = (open_queue, remove_gates)
"""For a job that may have no pods yet."""
NEXT = (
    shorten_time,
    lower_minimum,
    change_queue,
    lower_requests,
    raise_queue_limits,
    relax_topology,
    use_more_nodes,
    let_others_end,
    add_nodes,
    start_with_one,
    raise_priority,
    evict,
)


def search_remedies(
    intake: Intake, policy: Policy, catalog: Catalog, now: float, clues: WaitClues
) -> Remedies:
    """Try what is worth trying for a job that waits; the cluster is as before after that."""
    starts = StartTrials(intake, policy, catalog, now, clues.waits)
    trials = RemedyTrials(intake.cluster, starts, policy, clues, now)
    families = (*FIRST, *(NEXT if clues.tasks else ()))
    for place, family in enumerate(families):
        trials.begin_family(len(families) - place)
        family(trials)
    return trials.remedies
