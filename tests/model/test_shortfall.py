"""What a job still lacks of its minimum resources (spec 03 0.2, 04 12)."""

from stromboli.api.decoding import decode
from stromboli.api.types.meta import Object
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job


def _object(**fields: object) -> Object:
    decoded = decode(fields)
    assert decoded is not None
    return decoded


def _job(least: dict[str, str] | None, *running: dict[str, str]) -> tuple[Intake, Job]:
    intake = Intake()
    spec = {"minMember": 1, **({} if least is None else {"minResources": least})}
    intake.put(_object(kind="PodGroup", metadata={"name": "j", "namespace": "default"}, spec=spec))
    for index, requests in enumerate(running):
        meta = {
            "name": f"p-{index}",
            "namespace": "default",
            "annotations": {"scheduling.k8s.io/group-name": "j"},
        }
        containers = [{"name": "main", "resources": {"requests": requests}}]
        pod = {"schedulerName": "volcano", "nodeName": "n", "containers": containers}
        intake.put(_object(kind="Pod", metadata=meta, spec=pod, status={"phase": "Running"}))
    return intake, next(iter(intake.cluster.jobs.values()))


def _named(intake: Intake, job: Job) -> dict[str, float]:
    return {intake.cluster.dims.names[dim]: amount for dim, amount in job.shortfall().items()}


def test_a_job_lacks_what_its_tasks_do_not_hold_yet() -> None:
    intake, job = _job({"cpu": "4", "memory": "1k", "nvidia.com/gpu": "2", "pods": "3"}, {"cpu": "1"})
    assert _named(intake, job) == {"cpu": 3000, "memory": 1000, "nvidia.com/gpu": 2000, "pods": 2}


def test_what_it_holds_above_its_minimum_makes_up_for_nothing() -> None:
    intake, job = _job({"cpu": "1", "memory": "1k"}, {"cpu": "8"})
    assert _named(intake, job) == {"memory": 1000}


def test_a_job_without_minimum_resources_lacks_nothing() -> None:
    intake, job = _job(None, {"cpu": "1"})
    assert _named(intake, job) == {}


def test_no_ephemeral_storage_is_held_for_a_job() -> None:
    intake, job = _job({"cpu": "1", "ephemeral-storage": "10Gi"})
    assert _named(intake, job) == {"cpu": 1000}
