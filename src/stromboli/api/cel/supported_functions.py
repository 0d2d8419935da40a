"""The functions that expressions may use: those of Kubernetes that the library has, each with its cost.

A function that is not here is refused when an expression is compiled, so none is evaluated whose cost nobody bounds.
The factors are measured, in nanoseconds, and doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stromboli.api.cel.value_size import SCALAR, Size, joined, largest

Sizes = list[Size]
Effort = Callable[[Sizes], tuple[int, Size]]
"""The cost of a call for the sizes of its arguments, in steps beyond those of any call, and the size of its result."""


def _constant(_: Sizes) -> tuple[int, Size]:
    return 0, SCALAR


def _reads(sizes: Sizes) -> tuple[int, Size]:
    return 4 * sizes[0].bytes, SCALAR


def _searches(sizes: Sizes) -> tuple[int, Size]:
    text, part = sizes[0], sizes[1]
    return text.bytes * (16 + part.bytes // 8), SCALAR


def _copies(sizes: Sizes) -> tuple[int, Size]:
    return 16 * sizes[0].bytes + 100 * sizes[0].nodes, sizes[0]


def _adds(sizes: Sizes) -> tuple[int, Size]:
    left, right = sizes
    result = joined(sizes, left.items + right.items, largest([left.child, right.child]))
    return 2 * result.bytes + 100 * result.items, result


def _compares(sizes: Sizes) -> tuple[int, Size]:
    return min(2 * size.bytes + 200 * size.nodes for size in sizes), SCALAR


def _selects(sizes: Sizes) -> tuple[int, Size]:
    return 0, sizes[0].child


def _keeps(sizes: Sizes) -> tuple[int, Size]:
    return 0, sizes[0]


def _chooses(sizes: Sizes) -> tuple[int, Size]:
    return 0, largest(sizes)


def _contains(sizes: Sizes) -> tuple[int, Size]:
    element, container = sizes
    each, _ = _compares([element, container.child])
    return container.items * each, SCALAR


def _splits(sizes: Sizes) -> tuple[int, Size]:
    text = sizes[0].bytes
    separator = sizes[1].bytes
    return text * (400 + separator // 8), Size(text + 1, text + 1, text + 1, Size(text))


def _replaces(sizes: Sizes) -> tuple[int, Size]:
    text, old, new = (size.bytes for size in sizes[:3])
    length = text + (text + 1) * new
    return text * (200 + old // 8) + 10 * length, Size(length)


def _joins(sizes: Sizes) -> tuple[int, Size]:
    separator = sizes[1].bytes if len(sizes) > 1 else 0
    length = sizes[0].bytes + sizes[0].items * separator
    return 10 * length + 200 * sizes[0].items, Size(length)


def _formats(sizes: Sizes) -> tuple[int, Size]:
    template, argument = sizes[0], sizes[1].child
    clauses = template.bytes // 2 + 1
    length = template.bytes + clauses * (argument.bytes * 2 + 25 * argument.nodes + 1000)
    return 10 * length + 5000 * clauses * argument.nodes, Size(length)


def _sorts(sizes: Sizes) -> tuple[int, Size]:
    """The values, and the keys to sort them by if there are any."""
    items = max(size.items for size in sizes)
    longest = max(size.child.bytes for size in sizes)
    return (300 + longest) * items * max(items.bit_length(), 1), sizes[0]


def _flattens(sizes: Sizes) -> tuple[int, Size]:
    size = sizes[0]
    return 400 * size.nodes, Size(size.bytes, size.nodes, size.nodes, size.element)


def _compares_pairs(sizes: Sizes) -> tuple[int, Size]:
    left, right = sizes[0], sizes[-1]
    each, _ = _compares([left.child, right.child])
    return 2 * left.items * right.items * each, left


def _each(effort: Effort, names: str) -> dict[str, Effort]:
    return dict.fromkeys(names.split(), effort)


EFFORTS: Mapping[str, Effort] = {
    **_each(
        _constant,
        "_&&_ _||_ !_ -_ @not_strictly_false _-_ _*_ _/_ _%_ type getFullYear getMonth getDate getDayOfMonth"
        " getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds hasValue optional.none",
    ),
    **_each(_reads, "size int uint double bool duration timestamp startsWith endsWith"),
    **_each(_searches, "contains indexOf lastIndexOf"),
    **_each(
        _copies, "string bytes dyn lowerAscii upperAscii trim substring charAt reverse slice optional.of"
    ),
    **_each(_copies, "optional.ofNonZeroValue"),
    **_each(_compares, "_==_ _!=_ _<_ _<=_ _>_ _>=_"),
    **_each(_selects, "_[_] _?._ _[?_] first last"),
    **_each(_chooses, "_?_:_ or orValue"),
    "value": _keeps,
    "_+_": _adds,
    "@in": _contains,
    "split": _splits,
    "replace": _replaces,
    "join": _joins,
    "format": _formats,
    "flatten": _flattens,
    **_each(_sorts, "sort @sortByAssociatedKeys"),
    **_each(_compares_pairs, "distinct sets.contains sets.equivalent sets.intersects"),
}
"""By the name of the function; `matches` is apart, because its cost depends on the pattern."""

MISSING = {
    "authorization": "authorizer",
    "URL": "url isURL",
    "regex": "findAll",
    "list": "lists.range",
    "comprehension": "cel.@mapInsert",
    "format": "format.named",
}
"""Functions that Kubernetes has and this evaluator has not, by the library that they are of."""
