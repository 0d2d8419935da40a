"""The queue tree: its depth, and that the amounts of children fit those of their parent."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.rule_context import QueueIndex
from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.name_cycles import cycle_above, format_cycle
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.api.resources.pod_totals import add_amounts
from stromboli.api.resources.quantity import QuantityError, format_bytes, format_milli, whole
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.scheduling import Queue

Amounts = Mapping[str, int]


def check_root(parent: Field) -> None:
    """Report a parent of the root."""
    if parent.text():
        parent.wrong("the root queue cannot have a parent", "leave spec.parent of the root empty")


def check_parent(parent: Field, queue: Queue, queues: QueueIndex, max_depth: int) -> None:
    """Report a parent that is missing, too deep, makes a cycle, or has pods of its own."""
    name, max_depth = queue.spec.parent, min(max_depth, MAX_QUEUE_DEPTH)
    if name == queue.name:
        parent.wrong(f"queue {name} cannot use itself as parent", "use another, or root")
    elif cycle := _cycle_with(queue, queues):
        parent.wrong(
            f"queue {queue.name} cannot have queue {name} as its parent: queues in a circle: {format_cycle(cycle)}",
            "use another parent, or root",
        )
    elif _check_depth(parent, queue, queues, max_depth) and name not in ("", names.ROOT_QUEUE):
        _check_pods(parent, queue, queues)


def _cycle_with(queue: Queue, queues: QueueIndex) -> list[str]:
    """The cycle that the parents of a queue lead to, if they do, once the queue has the parent that it asks for."""

    def parent_of(name: str) -> str | None:
        known = queue if name == queue.name else queues.get(name)
        return None if known is None or known.spec.parent in ("", names.ROOT_QUEUE) else known.spec.parent

    return cycle_above(queue.name, parent_of)


def _check_depth(parent: Field, queue: Queue, queues: QueueIndex, max_depth: int) -> bool:
    """Report ancestors that do not exist, and queues that lie too deep: this one or, if it is moved, one below it."""
    depth = 1
    for above, known in _ancestors(queue, queues):
        depth += 1
        if depth > max_depth:
            parent.wrong(
                f"queue {queue.name} exceeds the maximum allowed depth of {max_depth}",
                "see --max-queue-depth",
            )
            return False
        if known is None:
            why = f'queue.scheduling.volcano.sh "{above}" not found'
            parent.wrong(
                f"failed to get parent queue {above} of queue {queue.name}: {why}", "create the parent first"
            )
            return False
    level = queues.children(queue.name)
    while level:
        depth += 1
        if depth > max_depth:
            parent.wrong(
                f"queue {level[0].name} below queue {queue.name} exceeds the maximum allowed depth of {max_depth}",
                "see --max-queue-depth",
            )
            return False
        below = [child for above in level for child in queues.children(above.name)]
        level = [child for child in below if child.name != queue.name]  # in a cycle that this update may end
    return True


def _check_pods(parent: Field, queue: Queue, queues: QueueIndex) -> None:
    """Report a parent that has pods and no children yet."""
    name = queue.spec.parent
    direct = queues.get(name)
    pods = allocated_pods(direct) if direct is not None else 0
    if pods and not queues.children(name):
        parent.wrong(
            f"queue {name} cannot be the parent queue of queue {queue.name}"
            f" because it has allocated Pods: {pods}",
            "let its jobs end, or use another parent",
        )


def check_amounts(spec: Field, queue: Queue, queues: QueueIndex) -> None:
    """Report amounts that do not fit those of ancestors or descendants."""
    parent = queue.spec.parent
    if parent not in ("", names.ROOT_QUEUE):
        above = queues.get(parent)
        if above is None:
            why = f'queue.scheduling.volcano.sh "{parent}" not found'
            spec["parent"].wrong(f"parent queue {parent} not found: {why}")
            return
        _check_against_ancestors(spec, queue, queues)
        siblings = [child for child in queues.children(parent) if child.name != queue.name]
        _check_sums(spec, above, [*siblings, queue], f"parent queue {parent} validation failed")
    children = queues.children(queue.name)
    if children:
        _check_against_descendants(spec, queue, children, queues)
        _check_sums(spec, queue, children, f"queue {queue.name} validation failed")


def allocated_pods(queue: Queue) -> int:
    """The pods that a queue has, by its status."""
    try:
        return whole(queue.status.allocated.get(names.PODS, 0))
    except QuantityError:
        return 0


def _ancestors(queue: Queue, queues: QueueIndex) -> Iterator[tuple[str, Queue | None]]:
    """The ancestors from the parent on, without the root; the last is None if it does not exist."""
    name = queue.spec.parent
    while name not in ("", names.ROOT_QUEUE):
        known = queues.get(name)
        yield name, known
        if known is None:
            return
        name = known.spec.parent


def _check_against_ancestors(spec: Field, queue: Queue, queues: QueueIndex) -> None:
    seen: set[str] = set()
    left = _capability(queue)
    for name, above in _ancestors(queue, queues):
        if above is None or name in seen:
            return
        seen.add(name)
        limit = _capability(above)
        for resource in [resource for resource in left if resource in limit]:
            mine = left.pop(resource)
            if mine > limit[resource]:
                spec["capability"][resource].wrong(
                    f"queue {queue.name} capability[{resource}]={_format(resource, mine)}"
                    f" exceeds its ancestor's capability={_format(resource, limit[resource])}",
                    f"that of queue {name}",
                )


def _check_against_descendants(
    spec: Field, queue: Queue, children: Iterable[Queue], queues: QueueIndex
) -> None:
    for resource, mine in _capability(queue).items():
        most = _largest_below(children, resource, queues, queue.name)
        if most > mine:
            spec["capability"][resource].wrong(
                f"queue {queue.name} capability[{resource}]={_format(resource, mine)}"
                f" is smaller than its descendants' max capability={_format(resource, most)}",
                "lower that of the queues below first",
            )


def _largest_below(children: Iterable[Queue], resource: str, queues: QueueIndex, parent: str) -> int:
    """The largest capability among queues; where a queue sets none, those below it count."""
    most, seen, left = 0, {parent}, list(children)
    while left:
        queue = left.pop()
        own = _capability(queue).get(resource)
        if own is not None:
            most = max(most, own)
        elif queue.name not in seen:
            seen.add(queue.name)
            left += queues.children(queue.name)
    return most


def _check_sums(spec: Field, parent: Queue, children: list[Queue], failed: str) -> None:
    for name, path in (("guarantee", "guarantee.resource"), ("deserved", "deserved")):
        list_of = attrgetter(path)
        total: dict[str, int] = {}
        for child in children:
            add_amounts(total, _read(list_of(child.spec)))
        limit = _read(list_of(parent.spec))
        if _exceeds(total, limit):
            spec[name].wrong(
                f"{failed}: sum of children's {name} ({_format_all(total)}) exceeds parent's {name} limit"
                f" ({_format_all(limit)})",
                f"raise that of queue {parent.name}, or lower those of its children",
            )


def _exceeds(total: Amounts, limit: Amounts) -> bool:
    """A scalar that the limit does not name is too much, however little of it."""
    return any(
        amount > limit.get(resource, 0)
        or (resource not in limit and resource not in (names.CPU, names.MEMORY))
        for resource, amount in total.items()
    )


def _capability(queue: Queue) -> dict[str, int]:
    """What a queue limits; 0 is no limit."""
    return {name: amount for name, amount in _read(queue.spec.capability).items() if amount > 0}


def _read(resources: Mapping[str, str | int | float]) -> dict[str, int]:
    try:
        return amounts(resources, "")
    except BadObject:
        return {}  # a stored queue from before this rule: its own next update will say so


def _format(resource: str, amount: int) -> str:
    if resource == names.CPU:
        return format_milli(amount)
    return format_bytes(amount) if resource == names.MEMORY else f"{amount:.2f}"


def _format_all(resources: Amounts) -> str:
    first = [f"{name} {resources.get(name, 0):.2f}" for name in (names.CPU, names.MEMORY)]
    rest = [
        f"{name} {resources[name]:.2f}" for name in sorted(resources) if name not in (names.CPU, names.MEMORY)
    ]
    return ", ".join(first + rest)
