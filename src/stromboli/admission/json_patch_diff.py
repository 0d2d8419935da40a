"""The difference between two objects as a JSON patch (RFC 6902)."""

from typing import Any

Operation = dict[str, Any]


def difference(before: Any, after: Any, path: str = "") -> list[Operation]:
    """The operations that turn one value into another; lists of different length are replaced as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _of_maps(before, after, path)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        operations: list[Operation] = []
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            operations += difference(old, new, f"{path}/{index}")
        return operations
    if before == after and type(before) is type(after):  # in Python, False equals 0
        return []
    return [{"op": "replace", "path": path, "value": after}]


def _of_maps(before: dict[str, Any], after: dict[str, Any], path: str) -> list[Operation]:
    operations: list[Operation] = []
    for key in before:
        if key not in after:
            operations.append({"op": "remove", "path": f"{path}/{_escaped(key)}"})
    for key, value in after.items():
        where = f"{path}/{_escaped(key)}"
        if key in before:
            operations += difference(before[key], value, where)
        else:
            operations.append({"op": "add", "path": where, "value": value})
    return operations


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
