"""Objects that are put together leave the same model as those that are put one by one."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import convert

from stromboli.api.errors import BadObject
from stromboli.api.types.kinds import kind_of
from stromboli.api.types.meta import Object
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake

VOLCANO = "scheduling.volcano.sh/v1beta1"


def pod(name: str, group: str, uid: str, node: str, cpu: str, phase: str) -> Object:
    return made(
        "v1",
        "Pod",
        metadata={
            "name": name,
            "namespace": "ns",
            "uid": uid,
            "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
        },
        spec={
            "schedulerName": "volcano",
            "nodeName": node,
            "containers": [{"resources": {"requests": {"cpu": cpu}}}],
        },
        status={"phase": phase},
    )


def made(version: str, name: str, **fields: Any) -> Object:
    kind = kind_of(version, name)
    assert kind is not None
    return convert(fields, kind)


def group(name: str) -> Object:
    return made(VOLCANO, "PodGroup", metadata={"name": name, "namespace": "ns"}, spec={"minMember": 2})


pods = st.builds(
    pod,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "g", "h"]),
    st.sampled_from(["u1", "u2", "u3", "u4"]),
    st.sampled_from(["", "n1", "n2"]),
    st.sampled_from(["1", "2", "8E"]),
    st.sampled_from(["Pending", "Running", "Succeeded"]),
)


def state(cluster: Cluster) -> dict[str, Any]:
    cluster.settle()
    return {
        "tasks": [
            (task.key, task.uid, task.status, task.node and task.node.name) for task in cluster.tasks.values()
        ],
        "nodes": {node.name: [task.uid for task in node.tasks] for node in cluster.nodes.values()},
        "jobs": {
            id: (
                [*job.tasks],
                job.counts,
                job.total,
                job.allocated,
                job.pending,
                job.role_counts,
                [[task.uid for task in tasks] for tasks in job.by_status],
                [([task.uid for task in sub.tasks], sub.counts) for sub in job.sub_jobs.values()],
            )
            for id, job in cluster.jobs.items()
        },
        "queues": {queue.name: (queue.allocated, queue.pending) for queue in cluster.queues.values()},
        "backlog": [job.id for job in cluster.backlog],
        "used": cluster.columns.used.tolist(),
    }


@given(st.lists(pods | st.sampled_from(["g", "h"]).map(group), max_size=12))
@example([pod(name, "g", f"u{name}", "n1", "1", "Running") for name in "abc"])
@example([pod(name, "g", "u1", "n1", "1", "Running") for name in "aba"])
@example([pod("a", "g", "u1", node, "1", "Running") for node in ("n1", "n2", "n1")])
def test_put_together_is_put_one_by_one(objects: list[Object]) -> None:
    together, singly = Intake(), Intake()
    for name in ("n1", "n2"):
        node = made("v1", "Node", metadata={"name": name}, status={"allocatable": {"cpu": "8"}})
        together.put(node)
        singly.put(node)
    messages = []
    for obj in objects:
        try:
            singly.put(obj)
            messages.append("")
        except BadObject as error:
            messages.append(str(error))
    assert ["" if error is None else str(error) for error in together.put_all(objects)] == messages
    assert state(together.cluster) == state(singly.cluster)
