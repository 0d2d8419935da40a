"""The names that a policy may use: Volcano's, and those of installed actions and plugins."""

from collections.abc import Mapping
from typing import Any, Protocol

VOLCANO_ACTIONS = [
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "shuffle",
    "gangpreempt",
    "gangreclaim",
]
VOLCANO_PLUGINS = [
    "drf",
    "gang",
    "deviceshare",
    "predicates",
    "priority",
    "nodeorder",
    "conformance",
    "binpack",
    "resource-strategy-fit",
    "tdm",
    "overcommit",
    "sla",
    "task-topology",
    "numa-aware",
    "cdp",
    "rescheduling",
    "usage",
    "pdb",
    "nodegroup",
    "network-topology-aware",
    "proportion",
    "capacity",
    "extender",
    "resourcequota",
]


class Configurable(Protocol):
    """An action or a plugin, as far as the policy needs it: a dataclass of typed arguments."""

    @property
    def Arguments(self) -> type[Any]:
        """The type of `arguments` in the policy."""
        ...


class Vocabulary(Protocol):
    """The installed actions and plugins by name (`engine.catalog.Catalog`)."""

    @property
    def actions(self) -> Mapping[str, Configurable]:
        """What `actions` may list."""
        ...

    @property
    def plugins(self) -> Mapping[str, Configurable]:
        """What a tier may list."""
        ...

    @property
    def planned_actions(self) -> frozenset[str]:
        """Actions that Volcano has and that are not installed."""
        ...

    @property
    def planned_plugins(self) -> frozenset[str]:
        """Plugins that Volcano has and that are not installed."""
        ...

    @property
    def switches(self) -> dict[str, bool]:
        """Every switch that a plugin entry may have, with its default."""
        ...
