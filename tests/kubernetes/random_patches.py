"""Random documents and patches of them; the same for the same generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

Json = Any
KEYS = ("a", "b", "c", "name", "x/y", "m~n", "", "0")
TOKENS = ("a", "zz", "-", "-1", "-2", "+1", "01", "7", "0", "", "~", "~2", "x~1y", "m~0n")
LEAVES = (None, True, False, 0, 1, -7, 1.5, "", "a", "b", [], {})


def some(random: Random, values: Sequence[Json], least: int = 1) -> list[Json]:
    return random.sample(values, random.randint(least, len(values)))


def pairs(random: Random, keys: str) -> Json:
    return {key: random.choice("12") for key in some(random, keys)}


def document(random: Random, depth: int = 3) -> Json:
    """Any JSON value."""
    roll = random.random()
    if depth == 0 or roll < 0.5:
        return random.choice(LEAVES)
    if roll < 0.75:
        return [document(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {random.choice(KEYS): document(random, depth - 1) for _ in range(random.randint(0, 3))}


# -- JSON patches


def json_patch(random: Random, live: Json, root: str) -> Json:
    """Some operations on the part of an object at a path, sound ones and others."""
    if random.random() < 0.02:
        return random.choice((None, {}, 3, "x", [3], [None], [[]]))
    return [_operation(random, live, root) for _ in range(random.randint(1, 3))]


def _operation(random: Random, live: Json, root: str) -> Json:
    name = random.choice(("add", "add", "remove", "replace", "replace", "move", "copy", "test", "test"))
    operation = {"op": name, "path": _pointer(random, live, root)}
    if name in ("move", "copy"):
        operation["from"] = _pointer(random, live, root)
    elif name != "remove":
        operation["value"] = document(random)
    if name == "test" and random.random() < 0.6:
        operation["path"], operation["value"] = random.choice(list(_values(live, root)))
    if random.random() < 0.04:
        operation.pop(random.choice(list(operation)))
    if random.random() < 0.02:
        operation[random.choice(("op", "path", "from"))] = random.choice((None, 3, "x", []))
    return operation


def _pointer(random: Random, live: Json, root: str) -> str:
    path, _ = random.choice(list(_values(live, root)))
    roll = random.random()
    if roll < 0.35:
        return path
    if roll < 0.75:
        return f"{path}/{random.choice(TOKENS)}"
    if roll < 0.97:
        return f"{path.rpartition('/')[0] or root}/{random.choice(TOKENS)}/{random.choice(TOKENS)}"
    return random.choice((path[1:], "/", "a", f"{path}/"))


def _values(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from _values(child, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


# -- merge patches


def merge_patch(random: Random, live: Json, depth: int = 4) -> Json:
    if not isinstance(live, dict) or depth == 0 or random.random() < 0.15:
        return document(random)
    patch = {}
    for key in (*live, *KEYS):
        if random.random() < (0.5 if key in live else 0.12):
            is_removed = random.random() < 0.2
            patch[key] = None if is_removed else merge_patch(random, live.get(key), depth - 1)
    return patch


# -- objects with lists of all sorts

LISTS = {
    "items": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "value": {"type": "string"},
                "args": {"type": "array", "items": {"type": "string"}},
                "inner": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    },
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "plain": {"type": "array", "items": {"type": "integer"}},
    "settings": {"type": "object", "additionalProperties": {"type": "string"}},
    "frozen": {
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string"},
    },
    "count": {"type": "integer", "default": 1},
    "name": {"type": "string", "nullable": True},
}
"""Properties of a schema: lists by key, sets, atomic lists and maps, a default, a nullable field."""


def lists_spec(random: Random) -> Json:
    """Some of these fields; seldom something else in their place."""
    fields: dict[str, Callable[[], Json]] = {
        "items": lambda: [_item(random, name) for name in some(random, "abc")],
        "tags": lambda: some(random, "tuv"),
        "plain": lambda: some(random, (1, 2, 3)),
        "settings": lambda: pairs(random, "pq"),
        "frozen": lambda: pairs(random, "pq"),
        "count": lambda: random.choice((1, 2, 3)),
        "name": lambda: random.choice((None, "n")),
    }
    spec = {key: make() for key, make in fields.items() if random.random() < 0.4}
    if random.random() < 0.05:
        spec[random.choice(("count", "items", "nope", "tags"))] = document(random)
    return spec


def _item(random: Random, name: str) -> Json:
    more = {"value": random.choice("12"), "args": some(random, "xy"), "inner": pairs(random, "kl")}
    return {"name": name, **{key: value for key, value in more.items() if random.random() < 0.4}}


# -- deployments

MERGE_KEYS = {"containers": "name", "env": "name", "ports": "containerPort", "imagePullSecrets": "name"}


def deployment(random: Random, name: str, whole: bool) -> Json:
    """A deployment, or some fields of it."""
    pod = _pod(random, whole)
    optional = {
        "replicas": random.choice((1, 2, 3)),
        "paused": True,
        "minReadySeconds": 5,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": random.choice((1, "25%"))}},
    }
    spec = {key: value for key, value in optional.items() if random.random() < 0.3}
    spec["template"] = {"spec": pod}
    if whole:
        spec["selector"] = {"matchLabels": {"a": "b"}}
        spec["template"]["metadata"] = {"labels": {"a": "b"}}
    marks = {"labels": pairs(random, "pq"), "annotations": pairs(random, "pq")}
    metadata = {"name": name, **{key: value for key, value in marks.items() if random.random() < 0.3}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _pod(random: Random, whole: bool) -> Json:
    optional = {
        "tolerations": [{"key": key, "operator": "Exists"} for key in some(random, "kl")],
        "nodeSelector": pairs(random, "mn"),
        "imagePullSecrets": [{"name": name} for name in some(random, "st")],
        "terminationGracePeriodSeconds": random.choice((1, 30)),
    }
    pod = {key: value for key, value in optional.items() if random.random() < 0.3}
    if whole or random.random() < 0.6:
        pod["containers"] = [_container(random, name, whole) for name in some(random, "abc")]
    return pod


def _container(random: Random, name: str, whole: bool) -> Json:
    optional = {
        "env": [{"name": key, "value": random.choice("12")} for key in some(random, "ABC")],
        "ports": [{"containerPort": port} for port in some(random, (80, 81, 82))],
        "args": some(random, "xyz"),
        "resources": {"requests": {key: random.choice("12") for key in some(random, ("cpu", "memory"))}},
    }
    image = {"image": random.choice(("i:1", "i:2"))} if whole or random.random() < 0.4 else {}
    return {
        "name": name,
        **image,
        **{key: value for key, value in optional.items() if random.random() < 0.4},
    }


def with_directives(random: Random, patch: Json, live: Json, key: str = "") -> Json:
    """A strategic merge patch with directives, for what the live object has."""
    if isinstance(patch, list):
        items = [with_directives(random, item, {}) for item in patch]
        return items + _list_directives(random, patch, live, MERGE_KEYS.get(key, ""))
    if not isinstance(patch, dict):
        return patch
    live = live if isinstance(live, dict) else {}
    result = {name: with_directives(random, value, live.get(name), name) for name, value in patch.items()}
    for name, value in patch.items():
        merge_key = MERGE_KEYS.get(name)
        if merge_key and random.random() < 0.2:
            result[f"$setElementOrder/{name}"] = [{merge_key: item[merge_key]} for item in value]
        elif name in ("paused", "args", "tolerations", "replicas") and random.random() < 0.2:
            result[name] = None
    if key in ("labels", "nodeSelector") and live and random.random() < 0.2:
        result["$patch"] = random.choice(("replace", "delete"))
    if key == "strategy" and random.random() < 0.3:
        result["$retainKeys"] = list(patch)
    return result


def _list_directives(random: Random, patch: Json, live: Json, merge_key: str) -> list[Json]:
    if not merge_key or not isinstance(live, list) or random.random() < 0.8:
        return []
    named = [item[merge_key] for item in patch]
    others = [item[merge_key] for item in live if item[merge_key] not in named]
    if others and random.random() < 0.7:
        return [{"$patch": "delete", merge_key: others[0]}]
    return [{"$patch": "replace"}]
