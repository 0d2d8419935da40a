"""What the next cycle on a cluster would decide otherwise under another policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.simulate.live_cluster import read_cluster
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.cycle_plan import make_plan
from stromboli.simulator.cycle_report import Report

MOST_SHOWN = 20
"""Lines of each kind; `-o json` has them all."""


async def decision_differences(
    session: ClusterSession, before: Policy, after: Policy, catalog: Catalog
) -> dict[str, Any]:
    """Jobs that would start or wait, and pods that would be evicted, under one of both policies alone."""
    present = (await read_cluster(session.client.access, session.running, catalog)).present

    def next_cycle(policy: Policy) -> Report:
        return make_plan(present.load(), policy, catalog, present.now).whole

    old, new = next_cycle(before), next_cycle(after)
    return {
        "starts": _more(new.bound_per_job, old.bound_per_job),
        "noLongerStarts": _more(old.bound_per_job, new.bound_per_job),
        "evicts": sorted(set(new.evicted) - set(old.evicted)),
        "noLongerEvicts": sorted(set(old.evicted) - set(new.evicted)),
        "moves": {
            pod: [old.binds[pod], node]
            for pod, node in sorted(new.binds.items())
            if old.binds.get(pod, node) != node
        },
        "notes": list(present.notes),
    }


def _more(counts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """How many more pods of each job are bound."""
    more = {job: count - others.get(job, 0) for job, count in sorted(counts.items())}
    return {job: count for job, count in more.items() if count > 0}


def print_decision_differences(effect: Mapping[str, Any]) -> None:
    """The same for people."""
    lines = [
        *(f"{job}: {_pods(count)} would start that wait now" for job, count in effect["starts"].items()),
        *(f"{job}: {_pods(count)} would no longer start" for job, count in effect["noLongerStarts"].items()),
        *(f"{pod} would be evicted" for pod in effect["evicts"]),
        *(f"{pod} would no longer be evicted" for pod in effect["noLongerEvicts"]),
        *(f"{pod} would go to {new} instead of {old}" for pod, (old, new) in effect["moves"].items()),
    ]
    typer.echo("In the next cycle" if lines else "The next cycle would decide the same.")
    for line in lines[:MOST_SHOWN]:
        typer.echo(f"  {shown(line)}")
    if len(lines) > MOST_SHOWN:
        typer.echo(f"  ... and {len(lines) - MOST_SHOWN} more; -o json has all")
    for note in effect["notes"]:
        typer.echo(f"note: {shown(note)}", err=True)


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"
