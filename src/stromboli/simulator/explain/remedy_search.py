"""What would let a job start: everything that its gate suggests, the cheapest remedies first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from math import inf, isfinite

import msgspec

from stromboli.api import names
from stromboli.engine.catalog import Catalog
from stromboli.engine.explanation.quantities import amounts_text, quantities, time_text
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots, slots
from stromboli.engine.placement.node_functions import CORDONED, NOT_SELECTED, TAINTED
from stromboli.engine.plugin import DESERVED
from stromboli.engine.queue_limits import own_capability
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.simulator.count_sentences import counted
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.object_changes import (
    as_manifest,
    containers_with_less,
    fewer_at_once,
    group_patch,
    group_with_less,
    less_restricted,
    pods_patch,
    queue_patch,
)
from stromboli.simulator.explain.remedy_trials import Remedies, RemedyTrials
from stromboli.simulator.explain.resource_holders import HOLDING, expected_end
from stromboli.simulator.explain.room_by_nodes import node_groups
from stromboli.simulator.explain.wait_clues import WaitClues

# -- queues: open one, use another, raise a limit


MAX_QUEUES = 3
MAX_WEIGHT = 65535


def open_queue(trials: RemedyTrials) -> None:
    queue = trials.job.queue
    if queue is None or queue.object is None or queue.open:
        return
    change = ObjectChange("patch", "Queue", [queue.name], patch={"status": {"state": "Open"}})
    text = f'queue "{queue.name}" is opened'
    trials.attempt(Remedy("open-queue", text, [change]), f'opening queue "{queue.name}" alone')


def change_queue(trials: RemedyTrials) -> None:
    job = trials.job
    if job.native is not None or job.group is None:
        return
    before = f' instead of "{job.queue.name}"' if job.queue else ""
    for queue in _other_queues(trials, job.queue)[:MAX_QUEUES]:
        text = f'it is in queue "{queue.name}"{before}'
        change = group_patch(job, {"spec": {"queue": queue.name}})
        if trials.attempt(Remedy("queue", text, [change]), f'queue "{queue.name}"'):
            return


def _other_queues(trials: RemedyTrials, own: Queue | None) -> list[Queue]:
    """Open queues without child queues, ordered by how little they hold of what is short."""
    queues, total = trials.cluster.queues.values(), trials.cluster.total
    inner = {"root", *(queue.parent for queue in queues)}

    def use(queue: Queue) -> tuple[float, str]:
        return sum(
            queue.held.get(dim, 0) / max(total.get(dim, 0), 1) for dim in trials.clues.short
        ), queue.name

    others = (queue for queue in queues if queue is not own and queue.open and queue.name not in inner)
    return sorted(others, key=use)


def raise_queue_limits(trials: RemedyTrials) -> None:
    """Raise the capability of the queue whose limit holds the job, or else its deserved share or its weight."""
    hit, cluster = trials.clues.hit, trials.cluster
    if hit is None or hit.limit.queue.object is None:
        return
    queue = hit.limit.queue
    wanted = {dim: int(hit.held.get(dim, 0) + amount) for dim, amount in hit.asked.items()}
    amounts, listed = quantities(cluster, wanted), amounts_text(cluster.dims, wanted)
    if any(dim in own_capability(queue) for dim in wanted):
        now = amounts_text(cluster.dims, {dim: hit.limit.most[dim] for dim in wanted})
        text = f'the capability of queue "{queue.name}" is {listed} instead of {now}'
        if trials.attempt(Remedy("capability", text, [queue_patch(queue, {"capability": amounts})])):
            return
    if queue.deserved:
        text = f'queue "{queue.name}" deserves {listed}'
        trials.attempt(Remedy("deserved", text, [queue_patch(queue, {"deserved": amounts})]))
    elif hit.limit.code == DESERVED and (weight := _weight_for(trials, queue, wanted)):
        text = f'the weight of queue "{queue.name}" is {weight} instead of {queue.weight}'
        remedy = Remedy("weight", text, [queue_patch(queue, {"weight": weight})])
        trials.attempt(remedy, f'a larger weight of queue "{queue.name}"')


def _weight_for(trials: RemedyTrials, queue: Queue, wanted: dict[int, int]) -> int:
    """The weight with which the share of the queue would be enough; 0 if the whole cluster is too small."""
    queues, total = trials.cluster.queues.values(), trials.cluster.total
    others = sum(each.weight for each in queues if each is not queue and each.jobs)
    share = max(amount / max(total.get(dim, 0), 1) for dim, amount in wanted.items())
    if share > 1:
        return 0
    if share == 1:
        return MAX_WEIGHT
    return min(MAX_WEIGHT, int(share / (1 - share) * max(others, 1)) + 1)


# -- the job itself: no scheduling gates, a smaller minimum or request, a wider topology, a time limit


LARGER_MINIMA = 2
"""Trials of a larger minimum after one with which the job starts."""
_STEPS = {CPU: ((4000, 1000), (100, 100), (0, 1)), MEMORY: ((4 << 30, 1 << 30), (1 << 20, 1 << 20), (0, 1))}
"""From which amount on a request is rounded to multiples of what; other resources come in whole units."""
_WHOLE = ((0, 1000),)


def remove_gates(trials: RemedyTrials) -> None:
    gated = [task for task in trials.job.by_status[Status.PENDING] if task.gates]
    if not gated:
        return
    gates = sorted({gate for task in gated for gate in task.gates})
    text = f"the scheduling gates of its pods are removed ({first_few(gates)})"
    change = pods_patch(gated, {"spec": {"schedulingGates": []}})
    trials.attempt(Remedy("scheduling-gates", text, [change]), "removing its scheduling gates alone")


def lower_minimum(trials: RemedyTrials) -> None:
    """Find the largest minimum with which the job starts, in a few trials."""
    job = trials.job
    likely = min(job.ready_count + trials.pods_that_fit(), len(job.tasks), job.minimum - 1)
    too_many = likely + 1
    for minimum in dict.fromkeys((likely, likely * 3 // 4, likely // 2)):
        if minimum >= 1 and _start_with(trials, minimum):
            _raise_minimum(trials, minimum, too_many)
            return
        too_many = minimum


def _raise_minimum(trials: RemedyTrials, enough: int, too_many: int) -> None:
    """Replace the last remedy by a larger minimum that also helps, in a few trials."""
    helpful = trials.remedies.helpful
    for _ in range(LARGER_MINIMA):
        middle = (enough + too_many) // 2
        if middle == enough or trials.exhausted:
            return
        if _start_with(trials, middle):
            del helpful[-2]
            enough = middle
        else:
            too_many = middle


def start_with_one(trials: RemedyTrials) -> None:
    """Try minMember 1: such a job may come before jobs that hold its capacity."""
    found = any(remedy.kind == "minimum" for remedy in trials.remedies.helpful)
    if not found and trials.job.minimum > 1 and not _start_with(trials, 1) and not trials.exhausted:
        trials.remedies.in_vain.append("a smaller minimum")


def _start_with(trials: RemedyTrials, minimum: int) -> bool:
    job = trials.job
    if job.native is not None or job.group is None:
        return False
    text = f"minMember is {minimum} instead of {job.minimum}"
    return trials.attempt(Remedy("minimum", text, [fewer_at_once(trials.cluster, job, minimum)]))


def lower_requests(trials: RemedyTrials) -> None:
    """Find the largest requests with which the job starts, in a few trials."""
    clues, cluster = trials.clues, trials.cluster
    asked = {dim: max(int(task.request.get(dim, 0)) for task in clues.tasks) for dim in clues.short}
    fitting = {dim: _largest_request_that_fits(clues, dim) for dim, amount in asked.items() if amount > 0}
    for part in (1.0, 0.5, 0.25):
        most = {dim: _rounded_down(dim, int(amount * part)) for dim, amount in fitting.items()}
        most = {dim: amount for dim, amount in most.items() if 0 < amount < asked[dim]}
        changes = _pods_with_less(trials, most) if most else []
        if not changes:
            continue
        less = amounts_text(cluster.dims, most)
        now = amounts_text(cluster.dims, {dim: asked[dim] for dim in most})
        each = "each pod requests" if len(clues.tasks) > 1 else "its pod requests"
        changes += group_with_less(cluster, trials.job, asked, most)
        text = f"{each} {less} instead of {now}"
        if trials.attempt(Remedy("requests", text, changes), f"requests of {less}"):
            return


def _largest_request_that_fits(clues: WaitClues, dim: int) -> int:
    """The most of a resource that each pod may request so that enough of them fit; 0 if none do."""
    low, high = 0, max(int(task.request.get(dim, 0)) for task in clues.tasks)
    while low < high:
        middle = (low + high + 1) // 2
        if _pods_that_fit(clues, dim, middle) >= clues.needed:
            low = middle
        else:
            high = middle - 1
    return low


def _rounded_down(dim: int, amount: int) -> int:
    """The next smaller amount that a user would write."""
    step = next(step for least, step in _STEPS.get(dim, _WHOLE) if amount >= least)
    return amount // step * step


def _pods_that_fit(clues: WaitClues, dim: int, most: int) -> int:
    """How many pods fit if none requests more than `most` of a resource, each kind by itself."""
    kinds = []
    for kind in clues.kinds:
        request = {**kind.task.request, dim: min(kind.task.request.get(dim, 0), most)}
        kinds.append((SlotCount(request, clues.idle, kind.usable), kind.count))
    return TaskSlots(kinds).total


def _pods_with_less(trials: RemedyTrials, most: dict[int, int]) -> list[ObjectChange]:
    """Patches by which no pod requests more than `most`; empty if one container is not enough for some pods."""
    changes = []
    for tasks in trials.tasks_by_shape():
        if all(tasks[0].request.get(dim, 0) <= amount for dim, amount in most.items()):
            continue
        containers = containers_with_less(trials.cluster, tasks[0].shape, most)
        if containers is None:
            return []
        changes.append(pods_patch(tasks, {"spec": {"containers": containers}}))
    return changes


def relax_topology(trials: RemedyTrials) -> None:
    if trials.clues.wait.gate not in ("topology", "requirements"):
        return
    for text, change in less_restricted(trials.job, trials.cluster.hyper_nodes.tiers):
        if trials.attempt(Remedy("topology", text, [change]), text):
            return


def shorten_time(trials: RemedyTrials) -> None:
    """Set a time limit with which the job ends before the jobs start that it would delay."""
    job, promised = trials.job, trials.clues.promised
    seconds = int(promised - trials.now) if promised is not None else 0
    if seconds < 1 or job.native is not None or job.group is None:
        return
    limit = f"{seconds}s"
    text = f"its time limit is {limit}, so that it delays no reserved job (annotation {names.TIME_LIMIT})"
    change = group_patch(job, {"metadata": {"annotations": {names.TIME_LIMIT: limit}}})
    trials.attempt(Remedy("time-limit", text, [change]), f"a time limit of {limit}")


# -- nodes: cordoned or tainted ones, those that the pods do not select, additional ones


MAX_NODES = 64
MAX_TAINTS = 2
MAX_NAME = 200


def use_more_nodes(trials: RemedyTrials) -> None:
    """Use nodes that refuse the pods by a cordon, a taint or their labels."""
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
    cordoned.sort(key=lambda node: (-_idle_share(trials, node), node.name))
    for count in dict.fromkeys((1, min(len(cordoned), trials.clues.needed), len(cordoned))):
        chosen = [node.name for node in cordoned[:count]]
        if not chosen:
            continue
        if count > MAX_NODES:
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


def _idle_share(trials: RemedyTrials, node: Node) -> float:
    """How much a node has free of what is short, as a part of the cluster."""
    idle, total = trials.clues.idle[:, node.row], trials.cluster.total
    return float(sum(idle[dim] / max(total.get(dim, 0), 1) for dim in trials.clues.short))


def _tolerate(trials: RemedyTrials) -> None:
    """Let all pods tolerate a taint, the most frequent one first."""
    counts: Counter[tuple[str, str, str]] = Counter(
        (taint.key, taint.value or "", taint.effect)
        for node in trials.cluster.columns.nodes
        for taint in (node.object.spec.taints if node.object is not None else ())
        if taint.effect != names.PREFER_NO_SCHEDULE
    )
    for (key, value, effect), _ in counts.most_common(MAX_TAINTS):
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
    """Add as many nodes like an existing one as the pods that do not fit need."""
    sizes = [(_pods_when_empty(trials, node), node, group) for node, group in _examples(trials)]
    holds, node, group = max(sizes, key=lambda size: size[0], default=(0, None, ""))
    if not holds or node is None:
        return
    missing = max(trials.clues.needed - trials.pods_that_fit(), 1)
    for count in dict.fromkeys((-(-missing // holds), -(-trials.clues.needed // holds))):
        if count > MAX_NODES:
            trials.leave_out()
            continue
        changes = [_new_node(trials.cluster, node, number) for number in range(count)]
        verb = "is" if count == 1 else "are"
        text = f"{counted(count, 'more node')} like {node.name} ({group}) {verb} added"
        if trials.attempt(Remedy("nodes", text, changes)):
            return
    if not trials.exhausted:
        trials.remedies.in_vain.append(f"more nodes like {node.name}")


def _examples(trials: RemedyTrials) -> list[tuple[Node, str]]:
    """The first usable node of each group of similar nodes, with the name of the group."""
    examples = []
    for name, nodes in node_groups(trials.cluster).items():
        usable = (node for node in nodes if trials.clues.usable[node.row])
        examples += [(node, name) for node in islice(usable, 1)]
    return sorted(examples, key=lambda example: example[0].row)


def _pods_when_empty(trials: RemedyTrials, node: Node) -> int:
    """How many pods fit on a node when it is empty, of the kind of which the fewest fit."""
    empty = trials.cluster.columns.allocatable[:, [node.row]]
    return min(int(slots(kind.task.shape, empty)[0]) for kind in trials.clues.kinds)


def _new_node(cluster: Cluster, like: Node, number: int) -> ObjectChange:
    assert like.object is not None
    manifest = as_manifest(like.object)
    name = f"{like.name[:MAX_NAME]}-more-{number + 1}"
    while name in cluster.nodes:
        name += "-more"
    meta = manifest["metadata"]
    labels = {
        key: name if key == names.HOSTNAME else value for key, value in (meta.get("labels") or {}).items()
    }
    manifest["metadata"] = {**meta, "name": name, "uid": name, "labels": labels}
    return ObjectChange("create", "Node", [name], patch=manifest)


# -- other jobs: they end, have a lower priority than this one, or are evicted


MAX_HOLDERS = 3
"""Jobs for which a trial shows whether the end of one job alone is enough."""
SYSTEM_CLASSES = "system-"
"""The prefix of priority classes that are not for users."""
Holding = list[tuple[Job, list[Task]]]


def let_others_end(trials: RemedyTrials) -> None:
    """End one of the largest holders, or else several, those first that end first."""
    holders = [(job, tasks) for job, tasks, _ in trials.clues.holders if _pods_of(job)]
    for holder in holders[:MAX_HOLDERS]:
        if trials.attempt(_end_of(trials, [holder])):
            return
    ordered = sorted(holders, key=lambda holder: _end(trials, holder[1]))
    for count in dict.fromkeys((2, len(ordered) // 2, len(ordered))):
        if 2 <= count <= len(ordered) and trials.attempt(_end_of(trials, ordered[:count])):
            return


def _pods_of(job: Job) -> list[str]:
    """The pods of a job that hold capacity; none if it starts with the next cycle."""
    return sorted(task.name for status in HOLDING for task in job.by_status[status])


def _end(trials: RemedyTrials, tasks: Iterable[Task]) -> float:
    end = expected_end(tasks, trials.cluster.queues)
    return inf if end is None else end


def _end_of(trials: RemedyTrials, holders: Holding) -> Remedy:
    changes, texts = [], []
    for job, tasks in holders:
        changes.append(ObjectChange("delete", "Pod", _pods_of(job), job.namespace))
        end = _end(trials, tasks)
        texts.append((job.key, f" (by {time_text(end)})" if isfinite(end) else ""))
    listed = first_few([f"{key}{when}" for key, when in texts])
    text = f"{texts[0][0]} ends{texts[0][1]}" if len(texts) == 1 else f"{listed} end"
    return Remedy("end", text, changes)


def raise_priority(trials: RemedyTrials) -> None:
    """Use the next higher priority class, or else the highest one."""
    job = trials.job
    if job.native is not None or job.group is None:
        return
    classes = trials.cluster.objects.priority_classes.values()
    usable = (each for each in classes if not each.name.startswith(SYSTEM_CLASSES))
    higher = sorted({each.value: each.name for each in usable if each.value > job.priority}.items())
    for value, name in [*higher[:1], *higher[1:][-1:]]:
        pods = list(job.by_status[Status.PENDING])
        patch = {"spec": {"priority": value, "priorityClassName": name}}
        changes = [group_patch(job, {"spec": {"priorityClassName": name}}), pods_patch(pods, patch)]
        text = f"its priority is {value} (class {name}) instead of {job.priority}"
        if trials.attempt(Remedy("priority", text, changes), f"priority class {name}"):
            return


def evict(trials: RemedyTrials) -> None:
    """Add an evicting action if the policy has none."""
    if trials.evicts:
        return
    actions, catalog = trials.policy.actions, trials.catalog
    for added in (*catalog.preempting[:1], *catalog.reclaiming[:1]):
        text = f"action {added.name} is added to the policy"
        trials.attempt(Remedy("actions", text, actions=[*actions, added.name]), f"action {added.name}")


# -- the search


FIRST = (open_queue, remove_gates)
"""Remedies that are tried even if the job has no pods yet."""
NEXT = (
    shorten_time,
    lower_minimum,
    change_queue,
    lower_requests,
    raise_queue_limits,
    relax_topology,
    use_more_nodes,
    let_others_end,
    add_nodes,
    start_with_one,
    raise_priority,
    evict,
)


def search_remedies(
    intake: Intake, policy: Policy, catalog: Catalog, now: float, clues: WaitClues
) -> Remedies:
    """Try what may help a waiting job; afterwards the cluster is as before."""
    trials = RemedyTrials(intake, policy, catalog, clues, now)
    families = (*FIRST, *(NEXT if clues.tasks else ()))
    for place, family in enumerate(families):
        trials.start_family(len(families) - place)
        family(trials)
    return trials.remedies
