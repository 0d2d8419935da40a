"""Remedies about nodes: more of them, or those that are cordoned, tainted or labelled otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from stromboli.api import names
from stromboli.engine.explanation.quantities import NodeGroupNames
from stromboli.engine.placement.node_fit import slots
from stromboli.engine.placement.node_functions import CORDONED, NOT_SELECTED, TAINTED
from stromboli.model.cluster import Cluster
from stromboli.model.node_columns import Node
from stromboli.simulator.count_sentences import counted
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.model_changes import as_manifest
from stromboli.simulator.explain.remedy_trials import RemedyTrials, pods_patch

MOST_NODES = 64
MOST_TAINTS = 2
LONGEST_NAME = 200


def use_more_nodes(trials: RemedyTrials) -> None:
    """Nodes that refuse the pods for what they say of themselves."""
    codes = trials.clues.codes
    if CORDONED in codes:
        _uncordon(trials)
    if TAINTED in codes:
        _tolerate(trials)
    if NOT_SELECTED in codes:
        text = "its pods have no nodeSelector or node affinity"
        change = pods_patch(
            trials.clues.tasks, {"spec": {"nodeSelector": None, "affinity": {"nodeAffinity": None}}}
        )
        trials.attempt(Remedy("node-selector", text, [change]), "no nodeSelector")


def _uncordon(trials: RemedyTrials) -> None:
    nodes = trials.cluster.columns.nodes
    cordoned = [node for node in nodes if node.object is not None and node.object.spec.unschedulable]
    cordoned.sort(key=lambda node: (-_room_on(trials, node), node.name))
    for count in dict.fromkeys((1, min(len(cordoned), trials.clues.needed), len(cordoned))):
        chosen = [node.name for node in cordoned[:count]]
        if not chosen:
            continue
        if count > MOST_NODES:
            trials.leave_out()
            continue
        text = (
            f"node {chosen[0]} is uncordoned" if count == 1 else f"nodes {first_few(chosen)} are uncordoned"
        )
        change = ObjectChange("patch", "Node", chosen, patch={"spec": {"unschedulable": False}})
        if trials.attempt(Remedy("uncordon", text, [change])):
            return
    if cordoned and not trials.exhausted:
        trials.remedies.in_vain.append("uncordoning nodes")


def _room_on(trials: RemedyTrials, node: Node) -> float:
    idle, total = trials.clues.idle[:, node.row], trials.cluster.total
    return float(sum(idle[dim] / max(total.get(dim, 0), 1) for dim in trials.clues.short))


def _tolerate(trials: RemedyTrials) -> None:
    """All its pods tolerate a taint, the most frequent first."""
    counts: Counter[tuple[str, str, str]] = Counter(
        (taint.key, taint.value or "", taint.effect)
        for node in trials.cluster.columns.nodes
        for taint in (node.object.spec.taints if node.object is not None else ())
        if taint.effect != names.PREFER_NO_SCHEDULE
    )
    for (key, value, effect), _ in counts.most_common(MOST_TAINTS):
        operator = "Equal" if value else "Exists"
        toleration = {"key": key, "operator": operator, "value": value, "effect": effect}
        changes = []
        for tasks in trials.tasks_by_shape():
            known = [msgspec.to_builtins(each) for each in tasks[0].shape.spec.tolerations]
            changes.append(pods_patch(tasks, {"spec": {"tolerations": [*known, toleration]}}))
        text = f"its pods tolerate {key}{f'={value}' if value else ''}:{effect}"
        if trials.attempt(Remedy("toleration", text, changes), f"a toleration of {key}"):
            return


def add_nodes(trials: RemedyTrials) -> None:
    """As many nodes like one that there is as would be enough for the pods without room."""
    sizes = [(_pods_when_empty(trials, node), node) for node in _examples(trials)]
    holds, node = max(sizes, key=lambda size: size[0], default=(0, None))
    if not holds or node is None:
        return
    missing = max(trials.clues.needed - trials.pods_with_room(), 1)
    for count in dict.fromkeys((-(-missing // holds), -(-trials.clues.needed // holds))):
        if count > MOST_NODES:
            trials.leave_out()
            continue
        changes = [_new_node(trials.cluster, node, number) for number in range(count)]
        verb, group = "is" if count == 1 else "are", NodeGroupNames(trials.cluster).of(node)
        text = f"{counted(count, 'more node')} like {node.name} ({group}) {verb} added"
        if trials.attempt(Remedy("nodes", text, changes)):
            return
    if not trials.exhausted:
        trials.remedies.in_vain.append(f"more nodes like {node.name}")


def _examples(trials: RemedyTrials) -> Iterator[Node]:
    """A usable node of each group of like nodes."""
    seen: set[str] = set()
    groups = NodeGroupNames(trials.cluster)
    for node in trials.cluster.columns.nodes:
        if trials.clues.usable[node.row] and (name := groups.of(node)) not in seen:
            seen.add(name)
            yield node


def _pods_when_empty(trials: RemedyTrials, node: Node) -> int:
    """How many pods fit on a node while it is empty, of the kind of which the fewest fit."""
    empty = trials.cluster.columns.allocatable[:, [node.row]]
    return min(int(slots(kind.task.shape, empty)[0]) for kind in trials.clues.kinds)


def _new_node(cluster: Cluster, like: Node, number: int) -> ObjectChange:
    assert like.object is not None
    manifest = as_manifest(like.object)
    name = f"{like.name[:LONGEST_NAME]}-more-{number + 1}"
    while name in cluster.nodes:
        name += "-more"
    meta = manifest["metadata"]
    labels = {
        key: name if key == names.HOSTNAME else value for key, value in (meta.get("labels") or {}).items()
    }
    manifest["metadata"] = {**meta, "name": name, "uid": name, "labels": labels}
    return ObjectChange("create", "Node", [name], patch=manifest)
