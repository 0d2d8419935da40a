"""Pods: resource groups of the admission configuration, the queue gate, and disruption budgets."""

import re
from typing import Any

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.job_size_rules import check_pod
from stromboli.admission.rules.rule_context import Context
from stromboli.api import names

_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
"""As large as Go reads them."""


def default(pod: dict[str, Any], context: Context) -> None:
    """Gate a pod that asks for it, if the feature is on, and apply its resource group."""
    settings = context.settings
    meta, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        return
    stated = meta.get("annotations")
    annotations = stated if isinstance(stated, dict) else {}
    if settings.scheduling_gates and annotations.get(names.QUEUE_ALLOCATION_GATE) == "true":
        _add_gate(spec)
    namespace = meta.get("namespace") or names.DEFAULT_NAMESPACE
    for group in settings.resource_groups:
        if group.matches(namespace, annotations):
            group.apply(spec)
            return


def _add_gate(spec: dict[str, Any]) -> None:
    gates = spec.get("schedulingGates") or []
    gate = {"name": names.QUEUE_ALLOCATION_GATE}
    if gate not in gates:
        spec["schedulingGates"] = [*gates, gate]


def check(pod: Field, context: Context) -> None:
    """Report the problems of a new pod that one of our schedulers places."""
    if pod["spec"]["schedulerName"].text() not in context.settings.scheduler_names:
        return
    check_pod(pod["spec"])
    annotations = pod["metadata"]["annotations"]
    given = [key for key in _BUDGETS if annotations[key].given]
    for key in given:
        _check_budget(annotations[key], key)
    if len(given) > 1:
        annotations[given[1]].wrong(
            f"not allow configure multiple annotations <[{' '.join(given)}]> at same time", "keep one"
        )


def _check_budget(field: Field, key: str) -> None:
    text = field.text()
    if _INTEGER.fullmatch(text):
        if int(text) <= 0:
            field.wrong(f'invalid value <"{text}"> for {key}, it must be a positive integer')
        return
    percentage = text.replace("%", "")
    if not _INTEGER.fullmatch(percentage):
        why = f'strconv.Atoi: parsing "{percentage[:64]}": invalid syntax'
        field.wrong(f"invalid value <{why}> for {key}", 'a positive integer or a percentage such as "20%"')
    elif not 0 < int(percentage) < 100:
        field.wrong(
            f'invalid value <"{text}"> for {key}, it must be a valid percentage which between 1% ~ 99%'
        )
