"""The differences of two policies: actions, plugins and their order, switches and arguments.

Comments, the order of keys and arguments with their default values make no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stromboli.policy.arguments import declared
from stromboli.policy.policy import PluginEntry, Policy

ABSENT = "-"


class PolicyDifference(NamedTuple):
    """A setting that differs between two policies."""

    setting: str
    before: str
    after: str


def policy_differences(before: Policy, after: Policy) -> list[PolicyDifference]:
    """Every setting that differs, in the order of a configuration file."""
    return [
        difference for difference in _all_settings(before, after) if difference.before != difference.after
    ]


def _all_settings(before: Policy, after: Policy) -> Iterator[PolicyDifference]:
    yield PolicyDifference("actions", ", ".join(before.actions), ", ".join(after.actions))
    yield PolicyDifference("tiers", _tiers(before), _tiers(after))
    yield from _plugins(before, after)
    for action in dict.fromkeys((*before.configurations, *after.configurations)):
        if action in before.actions and action in after.actions:
            pair = before.configurations.get(action), after.configurations.get(action)
            yield from _settings(f"action {action}", *map(_arguments, pair))
    yield from _settings("metrics", before.metrics, after.metrics)


def _tiers(policy: Policy) -> str:
    return " | ".join(", ".join(entry.name for entry in tier) for tier in policy.tiers)


def _plugins(before: Policy, after: Policy) -> Iterator[PolicyDifference]:
    """Plugins of both policies; added and removed plugins are differences of the tiers."""
    old, new = _by_name(before), _by_name(after)
    for name in old:
        if name in new:
            yield from _settings(f"plugin {name}", _plugin_settings(old[name]), _plugin_settings(new[name]))


def _by_name(policy: Policy) -> dict[str, PluginEntry]:
    """Plugins by name; one that is listed again, as `gang (2)`."""
    entries: dict[str, PluginEntry] = {}
    for entry in policy.plugins:
        times = 1 + sum(known.name == entry.name for known in entries.values())
        entries[entry.name if times == 1 else f"{entry.name} ({times})"] = entry
    return entries


def _plugin_settings(entry: PluginEntry) -> dict[str, Any]:
    return {**entry.switches, **_arguments(entry.arguments)}


def _arguments(arguments: Any) -> dict[str, Any]:
    """Arguments by the keys of the configuration file."""
    if arguments is None:
        return {}
    return {argument.spelling: getattr(arguments, argument.field) for argument in declared(type(arguments))}


def _settings(part: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[PolicyDifference]:
    for key in dict.fromkeys((*before, *after)):
        yield PolicyDifference(f"{part}: {key}", _text(before.get(key)), _text(after.get(key)))


def _text(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(inner)}" for key, inner in value.items()) or ABSENT
    return str(value)
