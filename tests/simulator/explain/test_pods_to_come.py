"""The pods of a Job that is not admitted yet are thought to be there, as its controller would make them."""

from stromboli.simulator.explain.pods_to_come import add_pods_to_come
from stromboli.testing.world import World
from tests.simulator.explain.explained_worlds import explain_job, remedies

GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {
        "name": "train-u1",
        "namespace": "default",
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": "train",
                "uid": "u1",
                "controller": True,
            }
        ],
    },
    "spec": {"minMember": 3, "minResources": {"cpu": "9"}},
    "status": {"phase": "Pending"},
}


def job_of(cpu: str, replicas: int = 3) -> dict[str, object]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    spec = {"minAvailable": 3, "schedulerName": "volcano", "tasks": [task]}
    return {"metadata": {"name": "train", "namespace": "default", "uid": "u1"}, "spec": spec}


def test_a_job_without_pods_has_remedies():
    world = World("n1 cpu=4; n2 cpu=4").add(GROUP)
    (job,) = world.cluster.jobs.values()
    assert add_pods_to_come(world.rehearsal.intake, job, job_of("3")) == 3
    explained = explain_job(world, "train")
    assert (explained.kind, explained.state, explained.pods.waiting) == ("Job", "waits", 3)
    assert remedies(explained)["requests"] == "each pod requests cpu 2 instead of cpu 3"
    assert not [entry for entry in explained.history.entries if "pods were created" in entry.text]


def test_a_job_that_cannot_be_read_or_is_too_large_gets_none():
    world = World("n1 cpu=4").add(GROUP)
    (job,) = world.cluster.jobs.values()
    assert add_pods_to_come(world.rehearsal.intake, job, {"spec": {"tasks": 5}}) == 0
    assert add_pods_to_come(world.rehearsal.intake, job, job_of("1", 10**9)) == 0
    assert not job.tasks
