"""Workloads that are drawn from the YAML of a generator."""

from collections import Counter
from itertools import islice
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import mean, median

import msgspec
import pytest

from stromboli.simulator.workloads.arrival_processes import Bursts, Cycle, Fixed, Poisson
from stromboli.simulator.workloads.distributions import (
    Exponential,
    HyperGamma,
    Lognormal,
    PowersOfTwo,
    Uniform,
    Weibull,
    sampled,
)
from stromboli.simulator.workloads.time_spans import seconds
from stromboli.simulator.workloads.workload_errors import WorkloadError
from stromboli.simulator.workloads.workload_files import read_workload, write_workload

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulator"
HEAD = "apiVersion: simulator.stromboli.sh/v1\nkind: WorkloadGenerator\n"
SMALL = HEAD + "count: 50\narrivals: {process: fixed, interval: 10}\nclasses: [{name: a}]\n"


@pytest.fixture
def generated(tmp_path):
    def read(text, seed=None):
        file = tmp_path / "generator.yaml"
        file.write_text(text)
        return read_workload(str(file), seed)

    return read


# -- distributions


@pytest.mark.parametrize(
    ("distribution", "average"),
    [
        (Uniform(min=10, max=30), 20),
        (Exponential(mean="1m"), 60),
        (Weibull(scale=10, shape=1), 10),
        (HyperGamma(shape1=3, scale1=4, shape2=0.5, scale2=10, p=0.5, p_per_pod=0, log=False), 8.5),
        (PowersOfTwo(min=1, max=8), 3.75),
    ],
)
def test_distributions_have_the_mean_that_they_should(distribution, average):
    random = Random(1)
    assert mean(distribution.sample(random) for _ in range(20_000)) == pytest.approx(average, rel=0.05)


def test_a_lognormal_has_its_median_and_bounds_hold():
    random = Random(1)
    drawn = [Lognormal(median="1h", sigma=2, min=60, max="1d").sample(random) for _ in range(5_000)]
    assert median(drawn) == pytest.approx(3600, rel=0.1)
    assert (min(drawn), max(drawn)) == (60, 86400)


def test_run_times_of_lublin_are_short_or_long_and_longer_for_large_jobs():
    random = Random(1)
    small, large = ([HyperGamma().sample(random, pods) for _ in range(4_000)] for pods in (1, 128))
    assert mean(map(log, (max(each, 1e-3) for each in small))) == pytest.approx(
        0.7746 * 4.2 * 0.94 + 0.2254 * 312 * 0.03, rel=0.03
    )
    assert median(large) > 10 * median(small)
    assert max(small) < exp(25)


# -- arrivals


@pytest.mark.parametrize(
    "process",
    [
        Poisson(interval=10),
        Cycle(interval=60, day=(1, 3) * 12, week=(2, 1, 1, 1, 1, 0, 0)),
        Fixed(interval=10),
    ],
)
def test_arrivals_come_at_the_interval_on_average(process):
    moments = list(islice(process.moments(Random(3)), 100_800 if isinstance(process, Cycle) else 30_000))
    assert moments == sorted(moments)
    assert moments[-1] / len(moments) == pytest.approx(process.interval, rel=0.03)


def test_a_cycle_is_quiet_when_it_should_be():
    moments = islice(
        Cycle(interval=600, day=(0,) * 8 + (1,) * 16, week=(1,) * 5 + (0, 0)).moments(Random(1)), 5_000
    )
    hours = Counter((int(moment / 86400) % 7, int(moment / 3600) % 24) for moment in moments)
    assert {day for day, _ in hours} == {0, 1, 2, 3, 4}
    assert {hour for _, hour in hours} == set(range(8, 24))


def test_bursts_come_together():
    moments = list(islice(Bursts(interval="1h", size=3, gap=1).moments(Random(1)), 6))
    assert [moments[1] - moments[0], moments[2] - moments[1]] == pytest.approx([1, 1])
    assert moments[3] - moments[2] > 1


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("1h30m", 5400), ("7d", 604800), ("1.5m", 90), ("250ms", 0.25)]
)
def test_times_may_be_written_with_their_units(text, value):
    assert seconds(text) == value
    assert sampled(text, Random()) == value


# -- workloads


@pytest.mark.parametrize("example", ["lab", "supercomputer"])
def test_the_examples_draw_the_same_workload_each_time(example):
    file = str(EXAMPLES / f"{example}.yaml")
    workload = read_workload(file)
    assert workload == read_workload(file) != read_workload(file, 2)
    assert len(workload.jobs) > 900
    assert list(workload.jobs) == sorted(workload.jobs, key=lambda job: job.submit_time)
    assert len({job.name for job in workload.jobs}) == len(workload.jobs)


def test_what_is_drawn_is_the_same_on_every_machine():
    job = read_workload(str(EXAMPLES / "supercomputer.yaml")).jobs[5]
    assert (job.name, job.submit_time, job.run_time, job.pods, job.time_limit, job.user) == (
        "parallel-3",
        19806.25,
        17906.363,
        32,
        28800.0,
        "user-15",
    )


def test_a_class_is_what_it_says(generated):
    workload = generated(
        HEAD
        + """
span: 1h
queues: [{name: gold, spec: {weight: 5}}]
nodes: [{name: n, count: 2, allocatable: {cpu: 8}, labels: {zone: a}}]
classes:
- name: gang
  arrivals: {process: fixed, interval: 30m}
  start: 10m
  pods: 4
  runTime: 20m
  timeLimit: {factor: 2, round: true, max: 50m}
  requests: {cpu: 1.5, memory: 2Gi, nvidia.com/gpu: {distribution: uniform, min: 2, max: 2}}
  queue: gold
  user: ada
  namespace: team
  priority: 7
  elastic: {share: 1, minimum: 0.6}
  labels: {app: x}
  spec: {nodeSelector: {zone: a}}
- name: service
  arrivals: {process: fixed, interval: 0}
  count: 1
  queue: [{name: silver}]
"""
    )
    service, gang, later = workload.jobs
    assert (gang.submit_time, later.submit_time, gang.run_time, gang.time_limit) == (600, 2400, 1200, 3000)
    assert (gang.pods, gang.minimum, gang.queue, gang.user, gang.namespace, gang.priority) == (
        4,
        3,
        "gold",
        "ada",
        "team",
        7,
    )
    assert gang.requests == {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": 2}
    assert (gang.labels, gang.spec) == ({"app": "x"}, {"nodeSelector": {"zone": "a"}})
    assert (service.run_time, service.time_limit, service.submit_time, service.queue) == (
        inf,
        None,
        0,
        "silver",
    )
    assert {queue["metadata"]["name"]: queue["spec"]["weight"] for queue in workload.objects} == {
        "gold": 5,
        "silver": 1,
    }
    assert [node["metadata"]["name"] for node in workload.nodes] == ["n-0", "n-1"]


def test_another_distribution_of_one_quantity_leaves_the_others_as_they_are(generated):
    text = (
        HEAD
        + "count: 20\narrivals: {process: poisson, interval: 10}\nclasses: [{name: a, runTime: RUN, user: {count: 9}}]"
    )
    first = generated(text.replace("RUN", "{distribution: exponential, mean: 10}")).jobs
    second = generated(text.replace("RUN", "{distribution: uniform, min: 1, max: 2}")).jobs
    assert [(job.submit_time, job.user) for job in first] == [(job.submit_time, job.user) for job in second]


def test_classes_share_common_arrivals_by_their_share_until_each_has_its_count(generated):
    text = (
        HEAD
        + "arrivals: {process: fixed, interval: 1}\nclasses: [{name: a, share: 3, count: 300}, {name: b, count: 100}]\n"
    )
    names = [job.name[0] for job in generated(text).jobs]
    assert Counter(names) == {"a": 300, "b": 100}
    assert names[:200].count("a") == pytest.approx(150, abs=25)


def test_few_users_submit_most(generated):
    text = SMALL.replace("count: 50", "count: 2000").replace(
        "{name: a}", "{name: a, user: {count: 10, zipf: 1.5}}"
    )
    users = Counter(job.user for job in generated(text).jobs)
    assert users["user-1"] > 2 * users["user-2"] > 3 * users["user-5"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("count: 50", "count: 0"), "count: expected `int` >= 1"),
        (("count: 50", "cuont: 50"), 'Object contains unknown field `cuont`; did you mean "count"?'),
        (("count: 50\n", ""), "count: is missing, and so is span"),
        (
            ("fixed", "random"),
            "arrivals.process: invalid value 'random'; known: bursts, cycle, fixed, poisson",
        ),
        (
            ("interval: 10", "interval: soon"),
            'arrivals: "soon" is no time; expected seconds, or a text such as 90s',
        ),
        (
            ("{process: fixed, interval: 10}", "{process: poisson, interval: 0}"),
            "arrivals: interval 0.0 is not above 0",
        ),
        (("name: a", "name: A_b"), 'classes[0].name: "A_b" is no name'),
        (("{name: a}", "{name: a}, {name: a}"), 'classes[1].name: "a" is there twice'),
        (
            ("name: a", "name: a, pods: {distribution: normal}"),
            "classes[0].pods.distribution: invalid value 'normal'; known: choice",
        ),
        (
            ("name: a", "name: a, pods: {distribution: uniform, min: 3}"),
            "classes[0].pods: uniform needs min and max",
        ),
        (
            ("name: a", "name: a, pods: {distribution: uniform, min: 3, max: 2}"),
            "classes[0].pods: min 3.0 is above max 2.0",
        ),
        (
            ("name: a", "name: a, pods: {distribution: powersOfTwo, min: 5, max: 7}"),
            "no power of two is from 5 to 7",
        ),
        (("name: a", "name: a, runTime: -1"), "classes[0].runTime: -1.0 is not from 0 to"),
        (
            ("name: a", "name: a, timeLimit: {}"),
            "classes[0].timeLimit: is a multiple of runTime, which is missing",
        ),
        (("name: a", "name: a, requests: {cpu: many}"), "classes[0].requests.cpu"),
        (("name: a", "name: a, requests: {cpu: -1}"), "classes[0].requests.cpu: -1 is below 0"),
        (("name: a", "name: a, queue: [{name: q, weight: 0}]"), "classes[0].queue: expected 1 to 1000 names"),
        (("name: a", "name: a, user: {count: 0}"), "classes[0].user.count: expected `int` >= 1"),
        (("name: a", "name: a, namespace: ''"), "classes[0].namespace"),
        (("classes: [{name: a}]", "classes: []"), "classes: expected `array` of length >= 1"),
        (
            (
                "classes:",
                "nodes: [{name: n, count: 60000, allocatable: {}}, {name: m, count: 60000, allocatable: {}}]\nclasses:",
            ),
            "nodes: 120000 nodes; at most 100000 of all groups together",
        ),
        (("arrivals: {process: fixed, interval: 10}\n", ""), "classes[0].arrivals: is missing"),
        (
            ("kind: WorkloadGenerator", "kind: Generator"),
            'kind "Generator" of apiVersion "simulator.stromboli.sh/v1"; expected Workload',
        ),
        (("classes:", "classes: ["), "not YAML"),
        ((SMALL, "[]"), "expected one document"),
        ((SMALL, ""), "expected one document"),
    ],
)
def test_what_is_wrong_is_told_with_field_value_and_way_out(generated, change, problem):
    with pytest.raises(WorkloadError) as error:
        generated(SMALL.replace(*change))
    assert problem in str(error.value)
    assert "generator.yaml" in str(error.value)


def test_run_times_of_any_tail_can_be_saved_and_read_back(generated, tmp_path):
    tail = "runTime: {distribution: lognormal, median: 1h, sigma: 20}, timeLimit: {factor: 3}"
    workload = generated(SMALL.replace("name: a", f"name: a, {tail}"))
    assert max(job.run_time for job in workload.jobs) == 1e11
    write_workload(workload, str(tmp_path / "saved.jsonl"))
    assert read_workload(str(tmp_path / "saved.jsonl")) == workload


def test_schema_errors_are_no_errors_of_ours():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"distribution": "weibull", "scale": 1, "shape": 0}, Weibull)
