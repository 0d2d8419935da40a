"""Plans for the worlds beside this file: small clusters in which a scheduler of Volcano's kind harms its users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy, load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import Plan, make_plan
from stromboli.testing import World
from stromboli.testing.world import NOON

WORLDS = Path(__file__).parent
CATALOG = load_catalog()


def policy_text(name: str) -> str:
    """Return the text of a policy file of `policies`, or of the preset `preset:NAME`."""
    preset = name.removeprefix("preset:")
    return PRESETS[preset] if preset != name else (WORLDS / "policies" / f"{name}.yaml").read_text()


def policy_named(name: str) -> Policy:
    """Load a policy file of `policies`, or the preset `preset:NAME`."""
    return load_policy(policy_text(name), CATALOG, name)


def planned(policy: str, *worlds: str, cycles: int = 10) -> Plan:
    """Run `cycles` cycles on the objects of these files, as `stromboli plan --cycles` does."""
    paths = [str(WORLDS / world) for world in worlds]
    loaded = load(lambda: open_paths(paths), now=NOON)
    return make_plan(loaded, policy_named(policy), CATALOG, NOON, cycles)


def objects_of(world: str) -> list[dict[str, Any]]:
    """Return the manifests of a file."""
    return [each for each in yaml.safe_load_all((WORLDS / world).read_text()) if each]


def live(policy: str, world: str) -> World:
    """Return the objects of a file with a policy, to which more may be added between cycles."""
    return World(policy=policy_text(policy)).add(*objects_of(world))
