"""A cluster in files, a dump or manifests, as it is at a moment, and its policy."""

from __future__ import annotations

import time
from typing import Any

from stromboli.api.manifests.case_files import case_head
from stromboli.api.manifests.manifest_reader import sources_of
from stromboli.cli.cli_errors import Usage
from stromboli.cli.plan import clock_of
from stromboli.cli.plan_inputs import with_progress
from stromboli.cli.policy_options import case_policy, policy_beside
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.what_if.present_cluster import PresentCluster
from stromboli.simulator.what_if.what_if_answer import ChoosePolicy


def present_in_files(
    paths: list[str], catalog: Catalog, chosen: Policy | None, lenient: bool, now: str | None
) -> tuple[PresentCluster, ChoosePolicy]:
    """The cluster at `now`, else when its dump was written, else at this moment; and how its policy is chosen."""
    heads = [head for path in paths if (head := case_head(path)) is not None]
    config = next((head.config for head in heads if head.config), None)
    written = next((moment for head in heads if (moment := _moment(head.time)) is not None), time.time())

    def choose(loaded: Loaded) -> tuple[Policy, str]:
        policy = policy_beside(loaded, chosen, catalog, lenient)
        if policy is None:
            policy = case_policy(config, catalog, paths[0], lenient)
        return policy, policy.source_name

    present = PresentCluster(
        ", ".join(paths),
        lambda problems: sources_of(paths, problems),
        written if now is None else clock_of(now),
        watch=with_progress,
    )
    return present, choose


def _moment(text: Any) -> float | None:
    """When a dump was written, in seconds since 1970; None if it does not say so."""
    try:
        return clock_of(text) if isinstance(text, str) and text else None
    except Usage:
        return None
