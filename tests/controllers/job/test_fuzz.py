"""Whatever is in a Job, a look at it ends: with pods, or with an event that says why not."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.volcano_job import Job
from tests.controllers.job.simulated_job import SimulatedJob, job_manifest, policy, task
from tests.number_of_examples import scaled

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["*", "10m", "-1s", "1Gi", "lots", "RestartJob", "PodFailed", "2026-01-01T00:00:00Z", "svc"]
    ),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def whole() -> dict[str, Any]:
    """A job that uses everything."""
    return job_manifest(
        task(
            "a",
            2,
            minAvailable=1,
            policies=[policy("RestartTask", "PodFailed", timeout="1m")],
            partitionPolicy={"totalPartitions": 2, "partitionSize": 1, "networkTopology": {"mode": "hard"}},
            spec={"hostname": "h", "initContainers": [{"name": "i"}], "volumes": [{"name": "v"}]},
        ),
        task("b", 1, dependsOn={"name": ["a"], "iteration": "any"}, maxRetry=1),
        policies=[policy("AbortJob", "PodEvicted", exitCode=1)],
        plugins={
            "svc": ["--publish-not-ready-addresses"],
            "env": [],
            "pytorch": ["--master=a"],
            "mpi": [],
            "ray": [],
        },
        volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
        networkTopology={"mode": "soft", "highestTierAllowed": 1},
        minSuccess=1,
        status={"state": {"phase": "Running"}, "conditions": [{"status": "Pending"}], "retryCount": 1},
    )


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a manifest."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


PLACES = [place for place in places(whole()) if place]


def broken(place: tuple[Any, ...], junk: Any, manifest: Any) -> None:
    """Put junk somewhere, unless that place is gone by now."""
    part = manifest
    for key in place[:-1]:
        if not isinstance(part, dict | list) or (isinstance(part, list) and key not in range(len(part))):
            return
        part = part[key] if not isinstance(part, dict) else part.get(key)
    if isinstance(part, dict) or (isinstance(part, list) and place[-1] in range(len(part))):
        part[place[-1]] = junk


@settings(max_examples=scaled(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK), min_size=1, max_size=3))
def test_no_job_breaks_a_look(mistakes: list[tuple[tuple[Any, ...], Any]]) -> None:
    manifest = whole()
    for place, junk in mistakes:
        broken(place, junk, manifest)
    try:
        job = decode_as(Job, msgspec.json.encode(manifest))
    except BadObject as error:
        assert str(error)
        return
    assert isinstance(job, Job)
    simulated = SimulatedJob(job)
    for _ in range(8):
        simulated.step()
    assert simulated.phase or simulated.recorded
