"""The Job that a request becomes: tasks by role, plugins, policies, limits; and that admission takes it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.admission.reviewing import texts
from tests.submission.requests import container, job, pod_spec, slurm_job, variables


def tasks(manifest: dict[str, Any]) -> dict[str, int]:
    return {task["name"]: task["replicas"] for task in manifest["spec"]["tasks"]}


def test_pods_of_a_gang_start_together_and_know_their_rank() -> None:
    manifest = job("python", "train.py", replicas="4", gpus="2", memory="8Gi")
    assert (manifest["spec"]["minAvailable"], tasks(manifest)) == (4, {"worker": 4})
    rank = next(each for each in container(manifest)["env"] if each["name"] == "STROMBOLI_RANK")
    assert rank["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.annotations['volcano.sh/task-index']"
    assert variables(manifest)["STROMBOLI_WORLD_SIZE"] == "4"
    assert container(manifest)["resources"] == {
        "requests": {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "8Gi", "nvidia.com/gpu": "2"},
    }
    assert container(manifest)["command"] == ["python", "train.py"]


def test_pods_of_a_gang_meet_at_the_first_without_any_plugin_of_a_framework() -> None:
    manifest = job("python", "train.py", replicas="4")
    known = variables(manifest)
    assert manifest["spec"]["plugins"] == {"svc": []}
    assert (known["WORLD_SIZE"], known["LOCAL_RANK"], known["MASTER_PORT"]) == ("4", "0", "24711")
    assert known["MASTER_ADDR"] == "train-x2x4b-worker-0.train-x2x4b"
    assert indexed(manifest) == {"STROMBOLI_INDEX", "STROMBOLI_RANK", "RANK"}


def indexed(manifest: dict[str, Any]) -> set[str]:
    """Variables with the index of the pod."""
    path = "metadata.annotations['volcano.sh/task-index']"
    fields = [each for each in container(manifest)["env"] if "valueFrom" in each]
    return {each["name"] for each in fields if each["valueFrom"]["fieldRef"]["fieldPath"] == path}


@pytest.mark.parametrize(
    "settings",
    [{}, {"array": "0-3"}, {"replicas": "2", "plugin": "mpi"}, {"replicas": "2", "plugin": "ray"}],
    ids=["one pod", "array", "mpi", "ray"],
)
def test_jobs_that_are_no_gang_of_equal_processes_have_no_ranks(settings: dict[str, str]) -> None:
    manifest = job("python", "train.py", **settings)
    assert not {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"} & {
        *variables(manifest),
        *indexed(manifest),
    }


def test_the_plugin_of_pytorch_sets_the_ranks_but_the_local_one() -> None:
    manifest = job("python", "train.py", replicas="2", plugin="pytorch")
    for task in (0, 1):
        assert variables(manifest, task)["LOCAL_RANK"] == "0"
        assert not {"WORLD_SIZE", "MASTER_ADDR"} & variables(manifest, task).keys()


def test_variables_of_the_user_come_before_those_of_the_job() -> None:
    manifest = job("true", replicas="2", env=("RANK=7", "MASTER_PORT=1", "PYTHONUNBUFFERED="))
    known = variables(manifest)
    assert (known["RANK"], known["MASTER_PORT"], known["PYTHONUNBUFFERED"]) == ("7", "1", "")
    assert "RANK" not in indexed(manifest)


@pytest.mark.parametrize(
    ("replicas", "plugins", "has_master"),
    [
        ("1000", {"svc": []}, True),
        ("1001", {"svc": ["--inject-hosts-env=false"]}, True),
        ("5001", None, False),
    ],
)
def test_a_large_gang_has_no_variables_with_all_hosts(
    replicas: str, plugins: dict[str, list[str]] | None, has_master: bool
) -> None:
    manifest = job("true", replicas=replicas)
    assert manifest["spec"].get("plugins") == plugins
    assert ("MASTER_ADDR" in variables(manifest)) == has_master


def test_python_prints_lines_at_once_and_a_terminal_is_allocated_where_requested() -> None:
    assert variables(job("python", "train.py"))["PYTHONUNBUFFERED"] == "1"
    assert "tty" not in container(job("true"))
    assert container(job("true", tty=True))["tty"] is True
    assert "tty" not in container(job("mpirun", "a", replicas="2", plugin="mpi", tty=True), 1)


def test_a_pod_that_fails_ends_the_job_and_a_gang_that_loses_a_pod_starts_again() -> None:
    failed = {"event": "PodFailed", "action": "TerminateJob"}
    lost = {"event": "PodEvicted", "action": "RestartJob"}
    assert job("true")["spec"]["policies"] == [failed]
    assert job("true", replicas="2")["spec"]["policies"] == [failed, lost]
    assert job("true", replicas="2", requeue=False)["spec"]["policies"] == [failed]
    assert job("true", replicas="2", gang="1")["spec"]["policies"] == [failed]


def test_a_smaller_gang_leaves_pods_that_may_come_later() -> None:
    manifest = job("true", replicas="4", gang="2")
    assert manifest["spec"]["minAvailable"] == manifest["spec"]["tasks"][0]["minAvailable"] == 2


def test_a_time_limit_is_told_to_backfill_and_kept_by_the_node() -> None:
    manifest = job("true", time="90m")
    assert manifest["metadata"]["annotations"] == {"stromboli.sh/time-limit": "1h30m"}
    assert pod_spec(manifest)["activeDeadlineSeconds"] == 5400


def test_an_array_is_a_task_of_independent_pods() -> None:
    manifest = job("./one.sh", array="0-9%3")
    spec = manifest["spec"]
    assert (spec["minAvailable"], spec["minSuccess"], tasks(manifest)) == (1, 10, {"worker": 10})
    assert "policies" not in spec
    assert manifest["metadata"]["annotations"] == {"stromboli.sh/parallelism": "3"}
    assert container(manifest)["command"] == ["./one.sh"]
    assert variables(manifest)["SLURM_ARRAY_TASK_MAX"] == "9"


def test_a_job_that_waits_for_others_has_a_gate() -> None:
    manifest = job("true", after=("prepare", "afterany:clean"))
    assert manifest["metadata"]["annotations"] == {"stromboli.sh/after": "afterok:prepare,afterany:clean"}
    assert pod_spec(manifest)["schedulingGates"] == [{"name": "stromboli.sh/after"}]


@pytest.mark.parametrize(
    ("plugin", "roles", "plugins"),
    [
        ("pytorch", {"master": 1, "worker": 2}, {"pytorch": ["--port=24711"], "svc": []}),
        ("mpi", {"master": 1, "worker": 3}, {"mpi": [], "ssh": [], "svc": []}),
        ("tensorflow", {"worker": 3}, {"tensorflow": [], "svc": []}),
        ("ray", {"head": 1, "worker": 2}, {"ray": [], "svc": []}),
        ("ssh", {"worker": 3}, {"ssh": [], "svc": []}),
    ],
)
def test_a_framework_has_its_roles(plugin: str, roles: dict[str, int], plugins: dict[str, list[str]]) -> None:
    manifest = job("python", "train.py", replicas="3", plugin=plugin)
    assert (tasks(manifest), manifest["spec"]["plugins"]) == (roles, plugins)
    assert manifest["spec"]["minAvailable"] == sum(roles.values())


def test_the_master_of_mpi_runs_the_command_and_completes_the_job() -> None:
    manifest = job("mpirun", "./app", replicas="2", plugin="mpi", gpus="1")
    master, worker = container(manifest), container(manifest, 1)
    assert master["command"] == ["mpirun", "./app"]
    assert variables(manifest)["OMPI_MCA_orte_default_hostfile"] == "/etc/volcano/worker.host"
    assert "limits" not in master["resources"]
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "sshd" in worker["command"][2]
    assert manifest["spec"]["tasks"][0]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]


def test_the_head_of_ray_starts_ray_and_then_the_command() -> None:
    manifest = job("python", "tune.py", replicas="2", plugin="ray")
    shell = container(manifest)["command"]
    assert shell[:2] == ["sh", "-c"]
    assert shell[-2:] == ["python", "tune.py"]
    assert "ray start --head" in shell[2]
    assert container(manifest, 1)["name"] == "worker"


def test_what_looks_like_a_variable_of_kubernetes_is_handed_on_as_it_is() -> None:
    words = ("sh", "-c", "echo $(date) $$ $HOME")
    assert container(job(*words))["command"] == ["sh", "-c", "echo $$(date) $$$$ $$HOME"]
    assert container(job("echo", "$HOME"))["command"] == ["echo", "$HOME"]
    assert variables(job("true", env=("A=$(B)",)))["A"] == "$$(B)"


def test_a_script_knows_the_hosts_of_its_job_that_have_names() -> None:
    name = "true-x2x4b"
    both = f"{name}-worker-0.{name},{name}-worker-1.{name}"
    script = "#!/bin/sh\n"
    assert variables(job("true", replicas="2", script=script))["SLURM_JOB_NODELIST"] == both
    assert variables(job("true", replicas="2", script=script, plugin="mpi"))["SLURM_JOB_NODELIST"] == both
    for settings in ({}, {"array": "0-3"}):
        assert variables(job("true", script=script, **settings))["SLURM_JOB_NODELIST"] == "localhost"


MANIFESTS = {
    "plain": lambda: job("true"),
    "gang": lambda: job("true", replicas="4", gang="2", gpus="1", memory="1Gi", time="1h", priority="high"),
    "array": lambda: job("true", array="1,5,9%2"),
    "after": lambda: job("true", after=("a",)),
    "script": lambda: slurm_job("-N 2 --ntasks-per-node=2 -o out-%j.txt -e err-%t.txt -t 10"),
    **{
        name: (lambda name=name: job("a", replicas="2", plugin=name))
        for name in ("pytorch", "mpi", "ray", "ssh")
    },
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_admission_takes_it(name: str) -> None:
    manifest = MANIFESTS[name]()
    assert texts("/jobs/validate", manifest) == []
