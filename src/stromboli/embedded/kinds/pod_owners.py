"""What kinds whose objects have a template of pods share: workloads and PodTemplates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.api.schemas.apps import owner_rules
from stromboli.api.schemas.pods.pod_semantics import set_pod_defaults
from stromboli.api.schemas.pods.pod_validation import pod_problems
from stromboli.api.schemas.schema_problems import Problem, required, unsupported
from stromboli.embedded.kinds.strategy import Content, Strategy, immutable
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    format_labels,
    name_of,
    nested_map,
    printer,
    selector_text,
)


class OwnerStrategy(Strategy):
    """A kind with a template of pods."""

    kind_name = ""
    template: tuple[str, ...] = ("spec", "template", "spec")
    """Where the spec of the pods is."""
    restart_policies: tuple[str, ...] = ()
    """Those that pods may have; all if there are none."""
    rolling_update: tuple[str, Content] | None = None
    """The field with the strategy of updates, and defaults of a rolling one."""

    def set_defaults(self, content: Content) -> None:
        if (pod := _nested(content, self.template)) is not None:
            set_pod_defaults(pod)
        if self.rolling_update is not None:
            field, defaults = self.rolling_update
            strategy = (content.get("spec") or {}).get(field)
            if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
                strategy["rollingUpdate"] = {**defaults, **(strategy.get("rollingUpdate") or {})}

    def problems(self, content: Content) -> Iterable[Problem]:
        path = ".".join(self.template)
        spec = _nested(content, self.template)
        if spec is None:
            yield required(f"{path}.containers")
            return
        yield from pod_problems(self.pod_spec(content, spec), path)
        yield from owner_rules.size_problems(content.get("spec") or {}, self.kind_name)
        policy = spec.get("restartPolicy", "Always")
        if self.restart_policies and policy not in self.restart_policies:
            if self.restart_policies == ("Always",):
                yield unsupported(f"{path}.restartPolicy", policy, self.restart_policies)
            else:
                yield required(
                    f"{path}.restartPolicy", f'valid values: "OnFailure", "Never", and not "{policy}"'
                )
        yield from self.owner_problems(content)

    def pod_spec(self, content: Content, spec: Content) -> Content:
        """The spec of the pods that are made of a template with this spec."""
        return spec

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        """What is wrong with an object beside its template."""
        return ()


class ControllerStrategy(OwnerStrategy):
    """A kind whose controller makes pods."""

    has_generation = needs_controller = completes_stored = True
    restart_policies: tuple[str, ...] = ("Always",)


class SelectingStrategy(ControllerStrategy):
    """A kind whose objects select their pods by labels."""

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        return owner_rules.selector_problems(content["spec"], self.kind_name)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return immutable(old.get("spec") or {}, new.get("spec") or {}, "selector")


def _nested(content: Content, path: tuple[str, ...]) -> Content | None:
    node: Any = content
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


# -- tables


def image_cells(content: Content, *path: str) -> Cells:
    """The names and the images of the containers in a template."""
    containers = nested_map(content, *path, "template", "spec").get("containers") or []
    columns = ([str(container.get(key, "")) for container in containers] for key in ("name", "image"))
    return [",".join(column) or NONE for column in columns]


def _replicas_row(owner: Content, now: float) -> Cells:
    spec, status = nested_map(owner, "spec"), nested_map(owner, "status")
    selector = spec.get("selector")
    plain = owner.get("kind") == "ReplicationController"
    return [
        name_of(owner),
        spec.get("replicas", 1),
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(owner, now),
        *image_cells(owner, "spec"),
        format_labels(selector) if plain else selector_text(selector),
    ]


REPLICAS = printer(
    "Name | Desired# | Current# | Ready# | Age | Containers+ | Images+ | Selector+", _replicas_row
)
