"""What the benchmark on a real API server makes of what it sees; no API server is needed for that."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from bench.kubernetes.audit import AuditLog, Write
from bench.kubernetes.burst import Burst, bound
from bench.kubernetes.processes import Costs, memory
from bench.kubernetes.report import report
from bench.kubernetes.run import FULL, QUICK, Results, wanted
from bench.kubernetes.shapes import OURS, THEIRS, Shape, pod
from bench.kubernetes.stream import latencies

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def line(verb: str, resource: str, name: str, at: float, lasts: float = 0.0, code: int = 201) -> bytes:
    """As an API server writes it."""
    resource, _, part = resource.partition("/")
    came, went = BEGIN + timedelta(seconds=at), BEGIN + timedelta(seconds=at + lasts)
    event: dict[str, Any] = {
        "kind": "Event",
        "verb": verb,
        "user": {"username": "someone", "groups": ["all"]},
        "objectRef": {"resource": resource, "name": name, "subresource": part},
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": came,
        "stageTimestamp": went,
    }
    return json.encode(event) + b"\n"


def writes(*lines: bytes) -> list[Write]:
    return [json.decode(line, type=Write) for line in lines]


def test_the_log_is_read_as_it_grows_even_if_a_line_is_half_there(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    first, second = line("create", "pods", "a", 0), line("create", "pods/binding", "a", 1)
    path.write_bytes(first + second[:40])
    log = AuditLog(path)
    assert [write.operation for write in log.new_writes()] == ["create pods"]
    with path.open("ab") as file:
        file.write(second[40:])
    assert [write.operation for write in log.new_writes()] == ["create pods/binding"]
    log.close()


def test_a_pod_is_on_its_way_from_its_create_request_to_the_answer_of_its_bind() -> None:
    seen = writes(
        line("create", "pods", "a", 1.0, 0.5),
        line("create", "pods", "b", 2.0),
        line("create", "pods", "waits", 3.0),
        line("create", "pods/binding", "a", 4.0, code=409),
        line("create", "pods/binding", "a", 5.0, 0.25),
        line("create", "pods/binding", "b", 2.5),
    )
    assert sorted(latencies(iter(seen))) == pytest.approx([0.5, 4.25])
    assert bound(seen) == 2


def burst(scheduler: str, shape: str, rate: float) -> Burst:
    cpu = {scheduler: 1.0, "kube-apiserver": 2.0, "etcd": 0.5}
    return Burst(
        scheduler, shape, 1000, 10_000, 10_000, rate, 1.0, 2.0, 3.0, cpu, 2.5, 100.0, {"create events": 3}
    )


@pytest.mark.parametrize(("rate", "says"), [(300.0, "3x yes"), (299.0, "3x MISSED")])
def test_ours_is_held_against_theirs_of_the_same_shape(rate: float, says: str) -> None:
    results = Results(
        FULL, [burst(THEIRS, "500x20", 100.0), burst(THEIRS, "10000x1", 1.0), burst(OURS, "500x20", rate)]
    )
    assert says in report(results)
    results.sizes = QUICK
    assert says not in report(results)


def test_single_pods_have_an_aim_of_their_own() -> None:
    assert wanted(Shape(10_000, 1).name) < wanted(Shape(500, 20).name)


def test_only_our_pods_name_a_gang() -> None:
    assert "annotations" in pod(1, 2, OURS)["metadata"]
    assert "annotations" not in pod(1, 2, THEIRS)["metadata"]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_what_a_process_costs_is_seen() -> None:
    costs = Costs({"me": os.getpid()})
    while costs.spent()["me"] < 0.05:
        sum(range(10_000))
        costs.sample()
    assert memory(os.getpid()) > 10
    now = time.time()
    assert costs.between(now - 1000, now) == pytest.approx(costs.spent()["me"], abs=0.03)
    assert costs.between(now, now + 1000) == 0
