"""Variables of a container whose values are certain: literals, and fields of its pod. Nothing else is looked up."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.real.container_environment import REFERENCE, ContainerError, field_value
from stromboli.embedded.nodes.simulated.shell_script import MAX_SCRIPT, NotSimple

MAX_VARIABLES = 256
"""Variables of a container that are read."""
MAX_VALUE = 1024
"""Characters of a variable's value that is used."""
_CERTAIN_FIELD = re.compile(r"metadata\..*|spec\.(nodeName|serviceAccountName)", re.DOTALL)
"""Those that do not change while the pod runs."""


class Variables(NamedTuple):
    """What is known of an environment."""

    values: dict[str, str | None]
    """None where the value is not certain."""
    complete: bool
    """There are no variables but these, save those that an image brings along."""

    def expand(self, text: str, longest: int = MAX_SCRIPT) -> str:
        """The text with values in the place of `$(NAME)`, as a kubelet does; `NotSimple` if that is not certain."""
        room = longest - len(text)
        if room < 0:
            raise NotSimple(f"more than {longest} characters")

        def value(match: re.Match[str]) -> str:
            nonlocal room
            if match[1] is None:
                return "$"
            known = self.values.get(match[1], match[0] if self.complete else None)
            if known is None:
                raise NotSimple(f"a variable without a certain value: {match[1][:80]}")
            room -= len(known)
            if room < 0:
                raise NotSimple(f"more than {longest} characters")
            return known

        return REFERENCE.sub(value, text)

    @property
    def known(self) -> dict[str, str]:
        return {name: value for name, value in self.values.items() if value is not None}


def container_variables(container: Content, pod: NodePod | None) -> Variables:
    """Of `env`; each may use those before it."""
    env = container.get("env")
    entries = [entry for entry in env if isinstance(entry, dict)] if isinstance(env, list) else []
    variables = Variables({}, not container.get("envFrom") and len(entries) <= MAX_VARIABLES)
    for entry in entries[:MAX_VARIABLES]:
        variables.values[str(entry.get("name"))] = _value(entry, pod, variables)
    return variables


def _value(entry: Content, pod: NodePod | None, variables: Variables) -> str | None:
    source = entry.get("valueFrom")
    if source:
        value = _field(source, pod)
        return value if value is not None and len(value) <= MAX_VALUE else None
    literal = entry.get("value") or ""
    if not isinstance(literal, str) or len(literal) > MAX_VALUE:
        return None
    try:
        return variables.expand(literal, MAX_VALUE)
    except NotSimple:
        return None


def _field(source: Any, pod: NodePod | None) -> str | None:
    reference = source.get("fieldRef") if isinstance(source, dict) else None
    path = str(reference.get("fieldPath")) if isinstance(reference, dict) else ""
    if pod is None or not _CERTAIN_FIELD.fullmatch(path):
        return None
    try:
        return field_value(pod, path)
    except ContainerError:
        return None
