"""A policy in a few words: `actions="enqueue, allocate"`, `plugins="priority gang | predicates"`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from stromboli.engine.catalog import Action, Catalog
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy, default_policy, load_policy
from stromboli.policy.presets import preset

ACTIONS = "enqueue, allocate, backfill"


@cache
def known_extensions() -> Catalog:
    """All that comes with Stromboli and with installed packages, which is looked for once."""
    return load_catalog()


def catalog_with(plugin_classes: Iterable[type[Plugin]], actions: Iterable[Action]) -> Catalog:
    """All that comes with Stromboli, and these; one of the same name takes the place of ours."""
    known = known_extensions()
    return Catalog(
        {**known.actions, **{action.name: action for action in actions}},
        {**known.plugins, **{plugin.name: plugin for plugin in plugin_classes}},
    )


def policy_of(catalog: Catalog, actions: str, plugins: str, policy: str) -> Policy:
    """From a whole text or the name of a preset, else from names of actions and plugins, else the default."""
    if policy and (actions or plugins):
        raise ValueError("give either a whole policy or names of actions and plugins")
    if policy:
        return load_policy(policy if ":" in policy else preset(policy), catalog)
    if actions or plugins:
        return load_policy(policy_text(actions or ACTIONS, plugins), catalog)
    return default_policy(catalog)


def policy_text(actions: str, plugins: str) -> str:
    """The configuration file that a few words stand for; `|` begins the next tier."""
    tiers = [tier.replace(",", " ").split() for tier in plugins.split("|")]
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier)]
    return "\n".join(lines) + "\n"
