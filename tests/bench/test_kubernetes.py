"""What the benchmark on a real API server makes of what it sees; no API server is needed for that."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from bench.__main__ import parser
from bench.kubernetes import reach
from bench.kubernetes.audit import AuditLog, Write
from bench.kubernetes.burst import Burst, bound
from bench.kubernetes.medians import median_of
from bench.kubernetes.processes import Costs, memory
from bench.kubernetes.report import report
from bench.kubernetes.run import FULL, QUICK, Results
from bench.kubernetes.shapes import BARE, OURS, PLAIN, THEIRS, Shape, pod
from bench.kubernetes.stream import Stream, gang_latencies, latencies

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
    assert sorted(latencies(seen)) == pytest.approx([0.5, 4.25])
    assert bound(seen) == 2


def test_a_gang_is_on_its_way_from_the_create_request_of_its_last_pod_to_its_last_bind() -> None:
    seen = writes(
        line("create", "pods", "gang-1-0", 1.0),
        line("create", "pods", "gang-1-1", 2.0, 0.5),
        line("create", "pods", "gang-10-0", 2.0),
        line("create", "pods/binding", "gang-1-1", 3.0),
        line("create", "pods/binding", "gang-1-0", 3.5, 0.25),
        line("create", "pods/binding", "gang-10-0", 2.5),
    )
    assert sorted(gang_latencies(seen)) == pytest.approx([0.5, 1.75])


def burst(scheduler: str, shape: str, rate: float, api_server: float = 2.0, first: float = 1.0) -> Burst:
    cpu = {scheduler: 1.0, "kube-apiserver": api_server, "etcd": 0.5}
    return Burst(
        scheduler, shape, 1000, 10_000, 10_000, rate, first, 2.0, 3.0, cpu, cpu, 100.0, {"create events": 3}
    )


def figure(results: Results, what: str) -> tuple[float, bool]:
    """The one row that begins so."""
    (row,) = [row for row in reach.rows(results) if row.what.startswith(what)]
    return row.figure, row.reached


def test_ours_is_held_against_the_others_of_the_same_shape_and_run_and_the_median_counts() -> None:
    runs = [(100.0, 500.0, 560.0), (100.0, 300.0, 600.0), (50.0, 210.0, 250.0)]
    bursts = [burst(THEIRS, "10000x1", 1.0)]
    for theirs, ours, bare in runs:
        bursts += [burst(THEIRS, "500x20", theirs), burst(OURS, "500x20", ours), burst(BARE, "500x20", bare)]
    results = Results(FULL, bursts)
    assert figure(results, "burst 500x20, binds/s over kube-scheduler's") == (pytest.approx(4.2), True)
    assert figure(results, "burst 500x20, binds/s over the bare binder's") == (pytest.approx(0.84), False)
    assert "MISSED" in report(results)
    results.sizes = QUICK
    assert "MISSED" not in report(results)


def test_of_single_pods_what_they_cost_the_api_server_counts_as_well() -> None:
    ours = burst(OURS, "10000x1", 400.0, api_server=3.4, first=1.6)
    results = Results(FULL, [burst(THEIRS, "10000x1", 100.0), ours])
    assert figure(results, "burst 10000x1, processor time") == (pytest.approx(1.7), False)
    assert figure(results, "burst 10000x1, start to first bind") == (1.6, False)


def arrivals(shape: str, seconds: float) -> Stream:
    cpu = {OURS: 1.0, "kube-apiserver": 2.0, "etcd": 0.5}
    times = (seconds, seconds * 4, seconds * 2, seconds * 5)
    return Stream(OURS, shape, 1000, 1500, 50.0, 1500, *times, cpu, 30.0)


def test_arrivals_are_held_against_bounds_singles_by_pod_and_gangs_by_their_last() -> None:
    results = Results(FULL, streams=[arrivals("1500x1", 0.02), arrivals("75x20", 0.04)])
    assert figure(results, "50 single pods/s, created to bound, P50") == (0.02, True)
    assert figure(results, "50 single pods/s, created to bound, P99") == (0.08, True)
    assert figure(results, "gangs of 20") == (0.08, False)
    assert "0.160" in report(results)


def test_a_median_is_taken_of_every_number() -> None:
    middle = median_of([burst(OURS, "500x20", rate, rate / 10) for rate in (30.0, 10.0, 20.0)])
    assert (middle.binds_per_second, middle.cpu["kube-apiserver"], middle.shape) == (20.0, 2.0, "500x20")


def test_a_smaller_run_has_fewer_gangs_or_a_smaller_one_and_proves_nothing() -> None:
    small = FULL.scaled(0.2)
    assert (small.nodes, [shape.name for shape in small.bursts]) == (200, ["1x2000", "100x20", "2000x1"])
    assert reach.rows(Results(small, [burst(THEIRS, "100x20", 1.0), burst(OURS, "100x20", 1.0)])) == []


def test_pods_name_a_gang_where_there_is_a_group() -> None:
    named = [
        scheduler
        for scheduler in (OURS, BARE, PLAIN, THEIRS)
        if "annotations" in pod(1, 2, scheduler)["metadata"]
    ]
    assert named == [OURS, BARE]
    names = {scheduler: pod(1, 2, scheduler)["spec"]["schedulerName"] for scheduler in (OURS, PLAIN, THEIRS)}
    assert names == {OURS: "volcano", PLAIN: "volcano", THEIRS: "default-scheduler"}


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_what_a_process_costs_is_seen() -> None:
    costs = Costs({"me": os.getpid()})
    while costs.spent()["me"] < 0.05:
        sum(range(10_000))
        costs.sample()
    assert memory(os.getpid()) > 10
    assert memory(0) == 0  # no such process: it has ended
    now = time.time()
    assert costs.between(now - 1000, now)["me"] == pytest.approx(costs.spent()["me"], abs=0.03)
    assert costs.between(now, now + 1000) == {"me": 0}


def test_bursts_of_any_shape_can_be_asked_for() -> None:
    options = parser().parse_args(["kubernetes", "--shape", "30x7", "--shape", "1x500"])
    assert options.shape == [Shape(30, 7), Shape(1, 500)]


@pytest.mark.parametrize("text", ["", "20", "0x5", "5x0", "x5", "5x", "-1x5", "5x5x5", "1e3x2", "5 x 5"])
def test_what_is_no_shape_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["kubernetes", f"--shape={text}"])
    assert "such as 500x20" in capsys.readouterr().err
