"""Jobs at the gate: what is filled in, and every row of the table of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.name_rules import dns_subdomain_errors, qualified_name_errors
from tests.admission.reviewing import cluster, fields, job, queue, submitted, task, texts

PARTITIONS = {"totalPartitions": 2, "partitionSize": 3}
BOTH_TIERS = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
NOT_A_DAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"


def test_what_a_user_leaves_out_is_filled_in() -> None:
    pod = {"spec": {"hostNetwork": True, "containers": [{"name": "main", "image": "busybox"}]}}
    sent = {
        "metadata": {"name": "train"},
        "spec": {
            "tasks": [{"replicas": 3, "template": pod}, {"name": "ps", "replicas": 2, "minAvailable": 0}]
        },
    }
    spec = submitted("Job", sent).object["spec"]
    assert {key: spec[key] for key in ("queue", "schedulerName", "maxRetry", "minAvailable")} == {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": 3,
    }
    first, second = spec["tasks"]
    assert (first["name"], first["minAvailable"], first["maxRetry"]) == ("default0", 3, 3)
    assert first["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert (second["name"], second["minAvailable"]) == ("ps", 0)
    assert "queue" not in sent["spec"], "what was sent is not touched"


def test_the_first_scheduler_name_is_the_default() -> None:
    made = submitted("Job", job(task()), cluster(scheduler_names=("mine", "volcano"))).object
    assert made["spec"]["schedulerName"] == "mine"


def test_a_partitioned_task_needs_its_minimum_of_partitions() -> None:
    policy = {**PARTITIONS, "minPartitions": 1}
    made = submitted("Job", job(task(replicas=6, partitionPolicy=policy))).object
    assert made["spec"]["tasks"][0]["minAvailable"] == 3
    assert made["spec"]["minAvailable"] == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["pytorch"], ["pytorch", "svc"]),
        (["tensorflow"], ["tensorflow", "svc"]),
        (["ray"], ["ray", "svc"]),
        (["mpi"], ["mpi", "ssh", "svc"]),
        (["env"], ["env"]),
    ],
)
def test_frameworks_bring_the_plugins_they_need(given: list[str], expected: list[str]) -> None:
    made = submitted("Job", job(task("master"), plugins={name: [] for name in given})).object
    assert sorted(made["spec"]["plugins"]) == sorted(expected)


def test_a_good_job_passes() -> None:
    good = job(task("master", 1), task("worker", 4, dependsOn={"name": ["master"]}))
    assert str(submitted("Job", good).report) == ""


LONG = "a" * 64
ROWS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("no tasks", job(), ["No task specified in job spec"]),
    (
        "mpi without a master",
        job(task("worker"), plugins={"mpi": ["--master=boss"]}),
        ["The specified mpi master task was not found"],
    ),
    ("both tiers", job(task(), networkTopology=TIERS), [BOTH_TIERS]),
    (
        "more needed than there are",
        job(task("a", 1, minAvailable=2)),
        ["'minAvailable' is greater than 'replicas' in task: a, job: train"],
    ),
    ("one name twice", job(task("a"), task("a")), ["duplicated task name a"]),
    (
        "a pod name too long",
        job(task("b" * 60)),
        [
            f"create pod with name train-{'b' * 60}-0 validate failed"
            f" [{' '.join(qualified_name_errors('train-' + 'b' * 60 + '-0'))}]"
        ],
    ),
    (
        "a job name too long",
        job(task("a"), name=LONG),
        [
            f"create pod with name {LONG}-a-0 validate failed [{' '.join(qualified_name_errors(LONG + '-a-0'))}]",
            f"create job with name {LONG} validate failed [{' '.join(qualified_name_errors(LONG))}]",
        ],
    ),
    (
        "a gang larger than the job",
        job(task("a", 2), minAvailable=3),
        ["job 'minAvailable' should not be greater than total replicas in tasks"],
    ),
    ("an unknown plugin", job(task(), plugins={"magic": []}), ["unable to find job plugin: magic"]),
    (
        "a volume without a path",
        job(task(), volumes=[{"volumeClaimName": "data"}]),
        ["mountPath is required"],
    ),
    (
        "a path twice",
        job(
            task(),
            volumes=[
                {"mountPath": "/a", "volumeClaimName": "x"},
                {"mountPath": "/a", "volumeClaimName": "y"},
            ],
        ),
        ["duplicated mountPath: /a"],
    ),
    (
        "a volume of nothing",
        job(task(), volumes=[{"mountPath": "/a"}]),
        ["either VolumeClaim or VolumeClaimName must be specified"],
    ),
    (
        "a volume of two things",
        job(task(), volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {}}]),
        [
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a"
            " new PVC, you do not need to specify VolumeClaimName"
        ],
    ),
    (
        "a claim with a bad name",
        job(task(), volumes=[{"mountPath": "/a", "volumeClaimName": "X"}]),
        [f"invalid VolumeClaimName X : [{' '.join(dns_subdomain_errors('X'))}]"],
    ),
    (
        "a queue that is not there",
        job(task(), queue="nope"),
        ['unable to find job queue: queue.scheduling.volcano.sh "nope" not found'],
    ),
    (
        "a queue that is closed",
        job(task(), queue="shut"),
        ["can only submit job to queue with state `Open`, queue `shut` status is `Closed`"],
    ),
    ("the root queue", job(task(), queue="root"), ["can not submit job to root queue"]),
    (
        "a queue with children",
        job(task(), queue="tree"),
        ["can only submit job to leaf queue, queue `tree` has 2 child queues"],
    ),
    (
        "tasks in a circle",
        job(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        [NOT_A_DAG],
    ),
    ("an unknown task to wait for", job(task("a", dependsOn={"name": ["z"]})), [NOT_A_DAG]),
    ("a task to wait for, twice", job(task("a"), task("b", dependsOn={"name": ["a", "a"]})), [NOT_A_DAG]),
    (
        "no partitions",
        job(task("a", 0, partitionPolicy={"totalPartitions": 0, "partitionSize": 1})),
        ["'TotalPartitions' must be greater than 0 in task: a, job: train"],
    ),
    (
        "empty partitions",
        job(task("a", 0, partitionPolicy={"totalPartitions": 1, "partitionSize": 0})),
        ["'PartitionSize' must be greater than 0 in task: a, job: train"],
    ),
    (
        "replicas that do not fill the partitions",
        job(task("a", 5, partitionPolicy=PARTITIONS)),
        ["'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: train"],
    ),
    (
        "a minimum that cuts a partition",
        job(task("a", 6, minAvailable=4, partitionPolicy={**PARTITIONS, "minPartitions": 1})),
        ["'MinAvailable' is not equal to MinPartitions*PartitionSize in task: a, job: train"],
    ),
    (
        "tiers of a partition",
        job(task("a", 6, partitionPolicy={**PARTITIONS, "networkTopology": TIERS})),
        [BOTH_TIERS],
    ),
    (
        "half a CPU to pin",
        job(
            task(
                "a",
                topologyPolicy="restricted",
                containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
            )
        ),
        ["the cpu request isn't an integer in spec.task[0] container[0]."],
    ),
    (
        "no CPU to pin",
        job(task("a", topologyPolicy="restricted")),
        ["the cpu request isn't an integer in spec.task[0] container[0]."],
    ),
]
WORLD = cluster(queue("shut", state="Closed"), queue("tree"), queue("twig", "tree"), queue("leaf", "tree"))


@pytest.mark.parametrize(("sent", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_row_of_the_table_is_refused_in_its_words(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/jobs/validate", sent, context=WORLD) == expected


def test_limits_stand_in_for_requests_that_are_missing_altogether() -> None:
    whole = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 2}}}]
    assert texts("/jobs/validate", job(task(topologyPolicy="restricted", containers=whole))) == []


def test_a_queue_that_was_made_a_moment_ago_takes_jobs() -> None:
    """Its controller may not have opened it yet; a file with a queue and its job should apply in one go."""
    assert texts("/jobs/validate", job(task(), queue="new"), context=cluster(queue("new", state=""))) == []


def test_everything_is_told_at_once_with_field_value_and_way_out() -> None:
    bad = job(task("a", 1, minAvailable=2), task("a"), queue="nope", plugins={"magic": []})
    assert fields("/jobs/validate", bad) == [
        "spec.tasks[0].minAvailable",
        "spec.tasks[1].name",
        "spec.plugins.magic",
        "spec.queue",
    ]
    message = str(submitted("Job", bad).report)
    assert "(spec.tasks[0].minAvailable: 2; at most 1, or raise replicas)" in message


POLICIES: list[tuple[list[dict[str, Any]], list[str]]] = [
    (
        [{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}],
        ["must not specify event and exitCode simultaneously"],
    ),
    ([{"action": "AbortJob"}], ["either event and exitCode should be specified"]),
    (
        [{"event": "Nope", "action": "AbortJob"}],
        ['spec.policies: Invalid value: "Nope": invalid policy event'],
    ),
    (
        [{"event": "PodFailed", "action": "Nope"}],
        ['spec.policies: Invalid value: "Nope": invalid policy action'],
    ),
    ([{"event": "PodFailed"}], ['spec.policies: Invalid value: "": invalid policy action']),
    (
        [{"event": "PodFailed", "action": "AbortJob"}, {"events": ["PodFailed"], "action": "RestartJob"}],
        ["duplicate event PodFailed  across different policy"],
    ),
    ([{"exitCode": 0, "action": "AbortJob"}], ["0 is not a valid error code"]),
    ([{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3}], ["duplicate exitCode 3"]),
    (
        [{"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}],
        ["if there's * here, no other policy should be here"],
    ),
    ([{"event": "PodFailed", "events": ["PodFailed"], "action": "RestartPartition"}], []),
    ([{"exitCode": 3, "action": "Nope"}], []),
    ([{"event": "PodPending", "action": "AbortJob", "timeout": "1h30m"}], []),
    *(
        (
            [{"event": "PodPending", "action": "AbortJob", "timeout": text}],
            [f'spec.policies.timeout: Invalid value: "{text}": must be a duration'],
        )
        for text in ("10 minutes", "1d", "9999999999h")
    ),
    (
        [{"event": "OutOfSync", "action": "AbortJob"}],
        ['spec.policies: Invalid value: "OutOfSync": invalid policy event'],
    ),
]


@pytest.mark.parametrize(("policies", "expected"), POLICIES)
def test_policies_of_a_job(policies: list[dict[str, Any]], expected: list[str]) -> None:
    assert texts("/jobs/validate", job(task(), policies=policies)) == expected


def test_policies_of_a_task_are_called_by_their_path() -> None:
    bad = job(task(policies=[{"event": "Nope", "action": "AbortJob"}]))
    assert texts("/jobs/validate", bad) == [
        'spec.tasks.policies: Invalid value: "Nope": invalid policy event'
    ]
    assert fields("/jobs/validate", bad) == ["spec.tasks[0].policies[0].event"]


FIXED = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)
BEFORE = job(task("a", 2, minAvailable=2), minAvailable=2, priorityClassName="low", queue="default")
UPDATES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("the same", BEFORE, []),
    ("more replicas", job(task("a", 4, minAvailable=3), minAvailable=3, priorityClassName="low"), []),
    ("another priority", job(task("a", 2, minAvailable=2), minAvailable=2, priorityClassName="high"), []),
    (
        "what means the same",
        job(task("a", 2, minAvailable=2, policies=[]), minAvailable=2, plugins={}, maxRetry=0),
        [],
    ),
    (
        "fewer than none",
        job(task("a", -1, minAvailable=-1), minAvailable=-1),
        [
            "'replicas' must be >= 0 in task: a",
            "'minAvailable' must be >= 0 in task: a",
            "job 'minAvailable' must be >= 0",
        ],
    ),
    (
        "a minimum too large",
        job(task("a", 2, minAvailable=3), minAvailable=2),
        ["'minAvailable' must be <= 'replicas' in task: a"],
    ),
    (
        "a total too large",
        job(task("a", 2, minAvailable=2), minAvailable=3),
        ["job 'minAvailable' must not be greater than total replicas"],
    ),
    (
        "another task",
        job(task("a", 2, minAvailable=2), task("b")),
        ["job updates may not add or remove tasks"],
    ),
    ("another queue", job(task("a", 2, minAvailable=2), minAvailable=2, queue="other"), [FIXED]),
    (
        "another image",
        job(task("a", 2, minAvailable=2, containers=[{"name": "main", "image": "new"}]), minAvailable=2),
        [FIXED],
    ),
    (
        "both tiers",
        job(task("a", 2, minAvailable=2), minAvailable=2, networkTopology=TIERS),
        [BOTH_TIERS, FIXED],
    ),
]


@pytest.mark.parametrize(("sent", "expected"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_what_may_change_in_a_job(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/jobs/validate", sent, old=BEFORE, operation="UPDATE") == expected


def test_quantities_count_by_value() -> None:
    def with_cpu(cpu: str | int) -> dict[str, Any]:
        containers = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
        return job(task("a", 1, containers=containers))

    assert texts("/jobs/validate", with_cpu(1), old=with_cpu("1000m"), operation="UPDATE") == []
    assert texts("/jobs/validate", with_cpu(1), old=with_cpu("1001m"), operation="UPDATE") == [FIXED]


def test_a_generated_claim_name_does_not_count_as_a_change() -> None:
    old = job(task("a"), volumes=[{"mountPath": "/d", "volumeClaim": {}, "volumeClaimName": "made"}])
    new = job(task("a"), volumes=[{"mountPath": "/d", "volumeClaim": {}}])
    assert texts("/jobs/validate", new, old=old, operation="UPDATE") == []
