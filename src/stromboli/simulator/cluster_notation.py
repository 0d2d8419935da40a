"""The short notation of nodes and queues: `n1 cpu=4,memory=8Gi zone=a; n2 cpu=2`, and what it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from stromboli.api import names

Manifest = dict[str, Any]

_QUEUE_FIELDS: dict[str, Callable[[str], object]] = {
    "weight": int,
    "priority": int,
    "parent": str,
    "reclaimable": lambda text: text == "true",
}
_QUEUE_AMOUNTS = ("capability", "deserved", "guarantee")


def nodes(text: str) -> list[Manifest]:
    """`NAME RESOURCES [LABEL=VALUE ...] [+TAINT=VALUE:EFFECT ...]`, separated by `;` or new lines.

    Unless given, a node takes 110 pods and 256Gi of memory; it has its name as hostname label.
    """
    return [_node(line) for line in _lines(text, "node")]


def queues(text: str) -> list[Manifest]:
    """`NAME [weight=2] [parent=x] [capability=cpu:4,memory:8Gi] [state=Closed] ...`, separated by `;`."""
    return [_queue(line) for line in _lines(text, "queue")]


def amounts(text: str, sign: str = "=") -> dict[str, str]:
    """`cpu=4,memory=8Gi` as a resource list."""
    pairs = [part.split(sign, 1) for part in text.split(",") if part]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"{text!r}: expected amounts such as cpu{sign}4,memory{sign}8Gi")
    return {name.strip(): amount.strip() for name, amount in pairs}


def _lines(text: str, kind: str) -> list[list[str]]:
    lines = [words for line in text.replace("\n", ";").split(";") if (words := line.split())]
    for name, count in Counter(words[0] for words in lines).items():
        if count > 1:
            raise ValueError(f"{kind} {name} is defined {'twice' if count == 2 else f'{count} times'}")
    return lines


def _node(words: list[str]) -> Manifest:
    name, resources, *marks = [*words, ""] if len(words) == 1 else words
    labels, taints = {names.HOSTNAME: name}, []
    for mark in filter(None, marks):
        key, _, value = mark.partition("=")
        if key.startswith("+"):
            value, _, effect = value.partition(":")
            taints.append({"key": key[1:], "value": value, "effect": effect or names.NO_SCHEDULE})
        else:
            labels[key] = value
    sizes = {"pods": "110", "memory": "256Gi", **amounts(resources)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": sizes},
    }


def _queue(words: list[str]) -> Manifest:
    name, *fields = words
    spec: Manifest = {}
    status: Manifest = {"state": "Open"}
    for field in fields:
        key, _, value = field.partition("=")
        if key in _QUEUE_FIELDS:
            spec[key] = _QUEUE_FIELDS[key](value)
        elif key in _QUEUE_AMOUNTS:
            sizes = amounts(value, ":")
            spec[key] = {"resource": sizes} if key == "guarantee" else sizes
        elif key == "state":
            status["state"] = value
        else:
            known = ", ".join([*_QUEUE_FIELDS, *_QUEUE_AMOUNTS, "state"])
            raise ValueError(f"queue {name}: unknown field {field!r}; known: {known}")
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }
