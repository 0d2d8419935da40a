"""A policy as the leader would tell it, where it does not: from the text that is kept for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from stromboli.cli.policy.policy_place import PolicyPlace
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import PluginEntry, PolicyError, default_policy, load_policy
from stromboli.policy.policy_problems import PlacedMessage
from stromboli.scheduler.explain.policy_document import PolicyDocument
from stromboli.scheduler.explain.policy_record import MAX_POLICY_TEXT, policy_document
from stromboli.scheduling_loop import RefusedPolicy

TOO_LONG = f"it is longer than {MAX_POLICY_TEXT:,} characters, and is not read here"


def kept_document(place: PolicyPlace, catalog: Catalog, now: float) -> PolicyDocument:
    """The policy that is kept; if it is wrong, the built-in one with what is wrong about it."""
    if not place.text.strip():
        return policy_document(default_policy(catalog), 0.0, None, {})
    try:
        if len(place.text) > MAX_POLICY_TEXT:
            raise PolicyError((PlacedMessage(place.origin, 0, TOO_LONG),))
        policy = load_policy(place.text, catalog, place.origin, lenient=True)
    except PolicyError as error:
        refused = RefusedPolicy(now, place.origin, error.errors)
        return policy_document(default_policy(catalog), 0.0, refused, {})
    return policy_document(policy, 0.0, None, {})


def kept_text(place: PolicyPlace, catalog: Catalog) -> PolicyDocument:
    """The text that is kept and its digest, as the leader tells them: without passwords."""
    policy = replace(default_policy(catalog), source=place.text, source_name=place.origin)
    return policy_document(policy, 0.0, None, {})


class DefaultArguments(NamedTuple):
    """Arguments where none are given, by the names of what takes them."""

    actions: dict[str, dict[str, Any]]
    plugins: dict[str, dict[str, Any]]


def default_arguments(told: PolicyDocument, catalog: Catalog) -> DefaultArguments:
    """Those of the actions and plugins of a policy, as far as they are known here."""
    named = dict.fromkeys(plugin.name for tier in told.tiers for plugin in tier)
    plugins = tuple(
        PluginEntry(name, catalog.plugins[name].Arguments(), {}) for name in named if name in catalog.plugins
    )
    actions = tuple(action.name for action in told.actions if action.name in catalog.actions)
    policy = replace(default_policy(catalog), tiers=(plugins,), actions=actions)
    defaults = policy_document(policy, 0.0, None, {})
    return DefaultArguments(
        {action.name: action.arguments for action in defaults.actions},
        {plugin.name: plugin.arguments for tier in defaults.tiers for plugin in tier},
    )
