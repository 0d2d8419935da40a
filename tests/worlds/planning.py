"""Plans for the worlds beside this file: small clusters in which a scheduler of Volcano's kind harms its users."""

from __future__ import annotations

from pathlib import Path

from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy, load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import Plan, make_plan
from stromboli.testing.world import NOON

WORLDS = Path(__file__).parent
CATALOG = load_catalog()


def policy_named(name: str) -> Policy:
    """Load a policy file of `policies`, or the preset `preset:NAME`."""
    preset = name.removeprefix("preset:")
    text = PRESETS[preset] if preset != name else (WORLDS / "policies" / f"{name}.yaml").read_text()
    return load_policy(text, CATALOG, name)


def planned(policy: str, *worlds: str, cycles: int = 10) -> Plan:
    """Run `cycles` cycles on the objects of these files, as `stromboli plan --cycles` does."""
    paths = [str(WORLDS / world) for world in worlds]
    loaded = load(lambda: open_paths(paths), now=NOON)
    return make_plan(loaded, policy_named(policy), CATALOG, NOON, cycles)
