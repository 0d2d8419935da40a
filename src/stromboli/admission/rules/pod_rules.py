"""Pods: the groups of the admission configuration, the queue gate, and how many may be missing."""

import re
from typing import Any

from stromboli.admission.rules.field import Place
from stromboli.admission.rules.rule_context import Context
from stromboli.api import names

_BOTH = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
"""As large as Go reads them."""


def default(pod: dict[str, Any], context: Context) -> None:
    """Hold back a pod that asks for it, and give it what its group gets; nothing without a configuration."""
    settings = context.settings
    meta, spec = pod.get("metadata"), pod.get("spec")
    if settings.resource_groups is None or not isinstance(spec, dict) or not isinstance(meta, dict):
        return
    annotations = meta.get("annotations")
    marks = annotations if isinstance(annotations, dict) else {}
    if settings.scheduling_gates and marks.get(names.QUEUE_ALLOCATION_GATE) == "true":
        _hold(spec)
    namespace = meta.get("namespace") or names.DEFAULT_NAMESPACE
    for group in settings.resource_groups:
        if group.takes(namespace, marks):
            group.settle(spec)
            return


def _hold(spec: dict[str, Any]) -> None:
    gates = spec.get("schedulingGates") or []
    gate = {"name": names.QUEUE_ALLOCATION_GATE}
    if gate not in gates:
        spec["schedulingGates"] = [*gates, gate]


def check(pod: Place, context: Context) -> None:
    """Report what is wrong with a new pod of ours."""
    if pod["spec"]["schedulerName"].text() not in context.settings.scheduler_names:
        return
    marks = pod["metadata"]["annotations"]
    given = [key for key in _BOTH if marks[key].given]
    for key in given:
        _check_budget(marks[key], key)
    if len(given) > 1:
        marks[given[1]].wrong(
            f"not allow configure multiple annotations <[{' '.join(given)}]> at same time", "keep one"
        )


def _check_budget(place: Place, key: str) -> None:
    text = place.text()
    if _INTEGER.fullmatch(text):
        if int(text) <= 0:
            place.wrong(f'invalid value <"{text}"> for {key}, it must be a positive integer')
        return
    percentage = text.replace("%", "")
    if not _INTEGER.fullmatch(percentage):
        why = f'strconv.Atoi: parsing "{percentage[:64]}": invalid syntax'
        place.wrong(f"invalid value <{why}> for {key}", 'a positive integer or a percentage such as "20%"')
    elif not 0 < int(percentage) < 100:
        place.wrong(
            f'invalid value <"{text}"> for {key}, it must be a valid percentage which between 1% ~ 99%'
        )
