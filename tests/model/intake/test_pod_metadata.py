"""Labels and annotations mean the same whether a pod comes after its replicas or after others."""

from stromboli.api.types.meta import ObjectMeta
from stromboli.model.dimensions import Dimensions
from stromboli.model.intake.pod_fields import MetadataReader
from stromboli.model.interning import Interning

REPLICA = {"volcano.sh/task-spec": "worker", "scheduling.k8s.io/group-name": "train"}


def reader() -> MetadataReader:
    return MetadataReader(Interning(Dimensions()))


def meta(name: str = "a", namespace: str = "x", **annotations: str) -> ObjectMeta:
    return ObjectMeta(name, namespace, labels={"app": "web"}, annotations={**REPLICA, **annotations})


def test_replicas_share_what_is_read_of_them() -> None:
    metadata = reader()
    first = metadata.read(meta("train-worker-0"))
    assert metadata.read(meta("train-worker-1")) is first
    assert (first.role, first.preemptable, first.priority) == ("worker", True, None)
    assert first.job_id is not None
    assert first.job_id.name == "train"


def test_a_pod_that_differs_is_read_anew_and_still_shares_equal_parts() -> None:
    metadata = reader()
    first = metadata.read(meta())
    elsewhere = metadata.read(meta(namespace="y"))
    urgent = metadata.read(meta(**{"volcano.sh/task-priority": "7", "volcano.sh/preemptable": "false"}))
    assert elsewhere.label_set is not first.label_set
    assert elsewhere.annotations is first.annotations
    assert (urgent.priority, urgent.preemptable) == (7, False)
    assert urgent.label_set is first.label_set
