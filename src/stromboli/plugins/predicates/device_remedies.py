"""Remedies for pods for whose ResourceClaims no node has devices: the request that fails, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING

from stromboli.model.devices.allocator import DeviceShortage, DevicesInUse, Lack, StepBudget
from stromboli.model.devices.claim_plan import device_classes
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.remedy import Remedy
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.allocator import ClaimSearch
    from stromboli.model.devices.claim_use import ClaimUse
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Columns, Node
    from stromboli.model.task import Task


SHOWN = 3
"""Shortages that are shown, the one of the most nodes first."""
OTHER_NODES = Remedy(
    "its claim has devices that other nodes cannot reach: free capacity on the nodes that can"
)


def free_devices(cluster: Cluster) -> Remedy:
    """For a pod for whose claims nodes have no free devices."""
    return Remedy(partial(_way_to_free_devices, cluster), partial(_free_devices_in_numbers, cluster))


def _free_devices_in_numbers(cluster: Cluster, task: Task) -> str:
    """The remedy after what is short, and on how many nodes."""
    text, uses = _way_to_free_devices(cluster, task), _unallocated(cluster, task)
    if not uses:
        return text
    numbers = _by_nodes(cluster, uses) or (_of_gang(cluster, task.job) if task.job is not None else "")
    return f"{numbers}: {text}" if numbers else text


def _way_to_free_devices(cluster: Cluster, task: Task) -> str:
    """What no node can ever provide, or else to wait for devices."""
    uses = _unallocated(cluster, task)
    if not uses:
        return ""
    never = never_on_a_node(cluster, uses) or (never_for_gang(cluster, task.job) if task.job else "")
    classes = " or ".join(list(device_classes(*(use.content.spec for use in uses if use.content)))[:SHOWN])
    return (
        never
        or f"wait until devices of class {classes} are free, request others, or add nodes that have them"
    )


def _unallocated(cluster: Cluster, task: Task) -> list[ClaimUse]:
    return unallocated(task_claims(cluster.devices, task))


def _by_nodes(cluster: Cluster, uses: list[ClaimUse]) -> str:
    """What is short node by node; empty if some node has it all."""
    search, budget, counts = search_for(cluster, uses), StepBudget(STEPS), Counter[str]()
    for node in cluster.columns.nodes:
        answer = search.answer(node, cluster.devices.in_use, budget)
        if budget.is_exceeded:
            break
        if not isinstance(answer, DeviceShortage):
            return ""
        counts[answer.message] += 1
    shown = counts.most_common(SHOWN)
    texts = [f"on {_nodes(count)} {text}" for text, count in shown]
    if others := len(cluster.columns) - sum(count for _, count in shown):
        texts.append(f"on {_nodes(others)} something else is missing")
    return "; ".join(texts)


def _of_gang(cluster: Cluster, job: Job) -> str:
    """For how many pods of a gang devices are available one after the other, where there are some for each alone."""
    given = DevicesInUse()
    for use in cluster.devices.claims.values():
        if use.allocation is not None:
            given.add(use.allocation)
    waiting = job.counts[Status.PENDING]
    served = served_pods(cluster, job, waiting, given)
    return (
        f"devices are available for {served} of {waiting} pods"
        if served is not None and served < waiting
        else ""
    )


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


# -- what ResourceClaims can never get, even with no device in use: too many devices, or selectors that match none


STEPS = 20_000
"""Steps of a search for what is short; nodes that are left then are not reported."""
NODES_TRIED = 5_000
"""Maximum nodes with devices that are searched."""
PODS_TRIED = 128
"""Pods of a gang that are given devices in turn, to see how many of them find some."""
_SELECTOR_SHOWN = 100

_MAX_ANSWERS = 1000


def _answers(columns: Columns) -> dict[Hashable, str]:
    """Cached results, by the contents of claims; dropped when nodes change."""
    return {}


def unallocated(claims: list[ClaimUse]) -> list[ClaimUse]:
    """The claims without devices."""
    return [use for use in claims if use.allocation is None and use.content]


def search_for(cluster: Cluster, uses: list[ClaimUse]) -> ClaimSearch:
    return cluster.devices.allocator.prepare([use.content.spec for use in uses if use.content is not None])


def nodes_with_devices(cluster: Cluster) -> list[Node] | None:
    """Nodes that see a pool; None if there are more than `NODES_TRIED`."""
    pools = cluster.devices.allocator.pools
    nodes = [node for node in cluster.columns.nodes if pools.pools_of(node)]
    return nodes if len(nodes) <= NODES_TRIED else None


def never_on_a_node(cluster: Cluster, uses: list[ClaimUse]) -> str:
    """What no node has for these claims, even if no device is in use; empty if some node has it, or that is unknown."""
    contents = tuple(use.content for use in uses)
    if contents[0] is None:
        return ""
    answers, key = cluster.columns.derived(_answers), (cluster.devices.published, contents)
    if key not in answers:
        if len(answers) >= _MAX_ANSWERS:
            answers.clear()
        answers[key] = _sought_on_nodes(cluster, uses)
    return answers[key]


def _sought_on_nodes(cluster: Cluster, uses: list[ClaimUse]) -> str:
    search, budget, shortages = search_for(cluster, uses), StepBudget(STEPS), list[DeviceShortage]()
    nodes = nodes_with_devices(cluster)
    if nodes is None:
        return ""
    for node in nodes or cluster.columns.nodes[:1]:
        answer = search.answer(node, DevicesInUse(), budget)
        if not isinstance(answer, DeviceShortage) or budget.is_exceeded:
            return ""
        if not answer.is_error:
            shortages.append(answer)
    return _closest(shortages) if shortages else ""


def _closest(shortages: list[DeviceShortage]) -> str:
    """The shortage of the node that comes closest to the request."""
    most = max(shortages, key=lambda shortage: (shortage.claim, shortage.had, len(shortage.rejections)))
    request, of_class = f"request {most.request}", f"of class {most.device_class}"
    if not most.request:
        return f"{most.message}: request fewer"
    if most.had:
        return (
            f"no node has {most.asked} devices {of_class} for {request}, even with none in use; the most on one node "
            f"is {most.had}: request fewer, or add nodes with more"
        )
    lacks = {rejection.lack for each in shortages for rejection in each.rejections}
    if lacks == {Lack.SELECTOR}:
        selector = " ".join(most.rejections[0].detail.split())[:_SELECTOR_SHOWN]
        return (
            f"no node has a device that matches selector {selector!r} of {request}: change the selector, or add nodes "
            "with such devices"
        )
    if lacks:
        return f"{most.message}; every node lacks them, even with none in use: request others, or add nodes with them"
    return f"no node has devices {of_class}: add nodes with them, or check that their driver publishes ResourceSlices"


def never_for_gang(cluster: Cluster, job: Job) -> str:
    """For how many pods of a gang nodes have devices if none is in use; empty if for all, or if unknown."""
    needed = job.minimum - (job.ready_count - job.counts[Status.ALLOCATED])
    served = served_pods(cluster, job, needed, DevicesInUse())
    if served is None or served >= needed:
        return ""
    return (
        f"nodes have devices for {served} of the {needed} pods that must start together, even with none in use: "
        "request fewer, or add nodes with more"
    )


def served_pods(cluster: Cluster, job: Job, most: int, given: DevicesInUse) -> int | None:
    """For how many pods of a gang there are devices beside those given; None if their requests differ."""
    gang = [unallocated(task_claims(cluster.devices, task)) for task in job.by_status[Status.PENDING]]
    gang = [uses for uses in gang if uses]
    keys = [use.key for uses in gang for use in uses]
    if not gang or not 1 < most <= min(len(gang), PODS_TRIED) or len(set(keys)) < len(keys):
        return None
    if len({tuple(use.content for use in uses) for uses in gang}) > 1:
        return None
    nodes = nodes_with_devices(cluster)
    if nodes is None:
        return None
    search, budget, served = search_for(cluster, gang[0]), StepBudget(STEPS), 0
    for node in nodes:
        while served < most:
            answer = search.allocate(node, given, [use.key for use in gang[served]], budget)
            if budget.is_exceeded:
                return None
            if isinstance(answer, DeviceShortage):
                break
            for allocation in answer.results:
                given.add(allocation)
            served += 1
    return served
