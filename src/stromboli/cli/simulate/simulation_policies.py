"""The policy of a simulation: the user's, or one that is made for the form; with the plugins that options ask for."""

from __future__ import annotations

from typing import Any

import yaml

from stromboli.cli.policy_options import chosen_policy
from stromboli.cli.simulate.simulate_options import Backfill, SimulateOptions
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy, load_policy

RESERVATIONS = "backfill-reservation"

BATCH = """\
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"""
"""Jobs in the order of their submission."""
PACKING = """\
  - name: binpack
"""
"""Nodes that are in use are filled before others."""


def policy_of(options: SimulateOptions, catalog: Catalog, default: str) -> Policy:
    """The policy that the options name, else the default of the form, with the backfill that is asked for."""
    policy = chosen_policy(options.policy, options.preset, catalog, options.lenient)
    if policy is None:
        policy = load_policy(default, catalog, "jobs in order of submission")
    if options.backfill is not None:
        policy = with_backfill(policy, options.backfill, catalog, options.lenient)
    return policy


def with_backfill(policy: Policy, mode: Backfill, catalog: Catalog, lenient: bool) -> Policy:
    """The policy with reservations of this mode, whether it has any or not."""
    return with_plugin(policy, RESERVATIONS, {"mode": mode.value}, catalog, lenient)


def with_plugin(
    policy: Policy, name: str, arguments: dict[str, Any], catalog: Catalog, lenient: bool
) -> Policy:
    """The policy with a plugin that has these arguments: where it stands already, else in the last tier."""
    content = yaml.safe_load(policy.source)
    plugins = [plugin for tier in content["tiers"] for plugin in tier["plugins"]]
    entry = next((plugin for plugin in plugins if plugin["name"] == name), None)
    if entry is None:
        entry = {"name": name}
        content["tiers"][-1]["plugins"].append(entry)
    if arguments:
        entry["arguments"] = {**(entry.get("arguments") or {}), **arguments}
    text = yaml.safe_dump(content, sort_keys=False)
    return load_policy(text, catalog, policy.source_name, lenient)
