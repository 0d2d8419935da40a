"""Problems of HyperNodes: events about them, and texts for the jobs that they affect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.types.scheduling import HyperNode
from stromboli.engine.decisions import Event

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNodeSpec
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree

MAX_NAMED = 3
MAX_EXAMINED = 1000
MAX_EVENTS = 50
"""Maximum number of HyperNodes with events in one cycle; events about others follow in the next cycle."""
_USED = "all problems are resolved: it is part of the tree with all of its members"


def left_out(tree: HyperNodeTree, concerns: Callable[[HyperNodeSpec], bool]) -> str:
    """Which HyperNodes of some kind are left out, and why, in a sentence; empty if none are."""
    concerned = _left_out(tree, concerns)
    sentences = [f"HyperNode {name} is left out ({tree.problems[name]})" for name in concerned[:MAX_NAMED]]
    if len(concerned) > MAX_NAMED:
        sentences.append("others are left out too")
    return ", ".join(sentences)


def without_nodes(tree: HyperNodeTree, limit: int) -> str:
    """Which HyperNodes up to a tier have no nodes, and why; empty if all have some."""
    empty = [domain for domain in tree.domains.values() if domain.tier <= limit and not len(domain.rows)]
    why = [tree.notices(domain.name).get(names.EVENT_UNKNOWN_MEMBERS) for domain in empty[:MAX_NAMED]]
    sentences = [
        f"HyperNode {domain.title} has no nodes ({reason or 'its members have none'})"
        for domain, reason in zip(empty, why, strict=False)
    ]
    if len(empty) > MAX_NAMED:
        sentences.append("others have none either")
    return ", ".join(sentences)


def correct_left_out(tree: HyperNodeTree, concerns: Callable[[HyperNodeSpec], bool]) -> str:
    """`correct HyperNode rack-1, rack-2`: the remedy where HyperNodes of some kind are left out; empty if none are."""
    concerned = _left_out(tree, concerns)
    more = " and others" if len(concerned) > MAX_NAMED else ""
    return f"correct HyperNode {', '.join(concerned[:MAX_NAMED])}{more}" if concerned else ""


def _left_out(tree: HyperNodeTree, concerns: Callable[[HyperNodeSpec], bool]) -> list[str]:
    declared, examined = tree.membership.declared, islice(tree.problems, MAX_EXAMINED)
    return sorted(name for name in examined if concerns(declared[name].spec))


def hyper_node_events(tree: HyperNodeTree) -> Iterator[Event]:
    """Events about new, changed and resolved problems of HyperNodes, each once."""
    for name in list(islice(tree.unreported, MAX_EVENTS)):
        del tree.unreported[name]
        before, now = tree.reported.pop(name, {}), tree.notices(name)
        if now:
            tree.reported[name] = now
        if name not in tree.membership.declared:
            continue
        for reason, message in now.items():
            if message != before.get(reason):
                yield _event(name, names.WARNING, reason, message)
        if before and not now:
            yield _event(name, names.NORMAL, names.EVENT_HYPER_NODE_USED, _USED)


def _event(name: str, type: str, reason: str, message: str) -> Event:
    return Event(HyperNode.__name__, "", name, type, reason, message)
