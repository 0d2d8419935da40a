"""Cgroups: settings of containers, what is found where, and, where they may be written, processes in them for real."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.exec_process import run_command
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian, remove_cgroups
from stromboli.embedded.nodes.real.resources import cgroups
from stromboli.embedded.nodes.real.resources.cgroups import (
    CgroupTree,
    ContainerCgroup,
    NoCgroups,
    find_cgroups,
)
from stromboli.embedded.nodes.real.resources.container_limits import MAX_PIDS, cgroup_settings, has_limits
from tests.embedded.nodes.node_services import running_nodes
from tests.embedded.nodes.real.resources.test_pod_resources import EVENTS, event


def settings(**resources):
    return cgroup_settings({"resources": resources})


def test_limits_become_settings_of_the_cgroup():
    limited = settings(limits={"cpu": "1500m", "memory": "64Mi"}, requests={"cpu": "1"})
    assert limited == {
        "cpu.max": "150000 100000",
        "cpu.weight": "39",
        "memory.max": str(64 * 1024 * 1024),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(MAX_PIDS),
    }


def test_a_container_without_limits_is_bounded_in_its_processes_alone():
    assert settings() == {"cpu.weight": "1", "memory.oom.group": "1", "pids.max": str(MAX_PIDS)}
    assert not has_limits({"resources": {"limits": {"nvidia.com/gpu": "1"}}})
    assert has_limits({"resources": {"limits": {"cpu": "1"}}})


@pytest.mark.parametrize(("limit", "quota"), [("1m", 1000), ("1G", 10**13), ("1P", 10**13)])
def test_the_least_and_the_greatest_limit_are_those_that_the_kernel_takes(limit, quota):
    assert settings(limits={"cpu": limit})["cpu.max"] == f"{quota} 100000"


def test_a_cgroup_whose_settings_the_kernel_refuses_is_not_left(tmp_path, monkeypatch):
    def refuse(file, text):
        if file.name == "cpu.max":
            raise OSError(22, "Invalid argument")

    with monkeypatch.context() as kernel:
        kernel.setattr(cgroups.Path, "write_text", refuse)
        kernel.setattr(cgroups.Path, "exists", lambda file: True)
        with pytest.raises(OSError, match="Invalid argument"):
            CgroupTree(tmp_path).create("uid", "main", {"pids.max": "1", "cpu.max": "x"})
    assert list(tmp_path.iterdir()) == []


# -- finding


def proc(folder, own="/"):
    """Of a process whose cgroups of version 2 are mounted in `folder/cgroup`."""
    place = folder / "proc"
    place.mkdir(exist_ok=True)
    (folder / "cgroup" / own.lstrip("/")).mkdir(parents=True, exist_ok=True)
    (place / "mountinfo").write_text(f"35 24 0:30 / {folder / 'cgroup'} rw,relatime - cgroup2 cgroup2 rw\n")
    (place / "cgroup").write_text(f"1:name=systemd:/\n0::{own}\n")
    return place


def test_a_machine_without_version_2_has_none(tmp_path):
    with pytest.raises(NoCgroups, match="only Linux"):
        find_cgroups("x", tmp_path)
    place = proc(tmp_path)
    (place / "mountinfo").write_text("30 24 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
    with pytest.raises(NoCgroups, match="not mounted"):
        find_cgroups("x", place)


def test_controllers_of_version_1_are_missed(tmp_path):
    place = proc(tmp_path)
    (tmp_path / "cgroup" / "cgroup.controllers").write_text("hugetlb cpu\n")
    with pytest.raises(NoCgroups, match="without the controllers memory, pids"):
        find_cgroups("x", place)


def test_a_cgroup_with_processes_of_others_is_left_alone(tmp_path):
    place = proc(tmp_path, "/session.scope")
    own = tmp_path / "cgroup" / "session.scope"
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.type").write_text("domain\n")
    (own / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    with pytest.raises(
        NoCgroups, match=r"session\.scope: other processes .*Delegate=yes.*; .*cgroup: without"
    ):
        find_cgroups("x", place)


def test_alone_in_a_delegated_cgroup_we_move_below_it(tmp_path):
    place = proc(tmp_path, "/up.service")
    own = tmp_path / "cgroup" / "up.service"
    (own / "cgroup.controllers").write_text("cpu memory pids io\n")
    (own / "cgroup.type").write_text("domain\n")
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    tree = find_cgroups("x", place)
    assert tree.root == own / "x"
    assert (own / "stromboli-up" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_usage_and_death_by_memory_are_read_from_its_files(tmp_path):
    cgroup = ContainerCgroup(tmp_path)
    assert cgroup.reading() is None
    assert not cgroup.was_out_of_memory()
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 1000\ninactive_file 2000\n")
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 0\noom_group_kill 1\n")
    assert cgroup.reading() == (2.5, 3000)
    assert cgroup.was_out_of_memory()


# -- for real, with whatever controllers there are


@pytest.fixture
def real_tree(tmp_path, monkeypatch):
    """A tree below the cgroup of version 2 of this machine, without controllers where it has none."""
    monkeypatch.setattr(cgroups, "CONTROLLERS", frozenset())
    try:
        tree = find_cgroups(f"stromboli-test-{os.getpid()}")
    except NoCgroups as error:
        pytest.skip(f"no cgroups: {error}")
    yield tree
    tree.close()
    assert not tree.root.exists()


def test_containers_and_their_commands_run_inside_their_cgroup_and_nothing_escapes(tmp_path, real_tree):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_cgroups=lambda name: real_tree) as cluster:
            script = "cat /proc/self/cgroup; env -i setsid sleep 987 & echo pid $!; sleep 0.2; exit 3"
            await cluster.pod("p", command=["sh", "-c", script])
            pod = await cluster.phase("p", "Failed")
            assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
            lines = (await cluster.log("p")).splitlines()
            [own] = [line for line in lines if line.startswith("0::")]
            assert own.endswith(f"/{real_tree.root.name}/{pod['metadata']['uid']}/main")
            [left] = [int(line.split()[1]) for line in lines if line.startswith("pid")]
            assert (
                not Path(f"/proc/{left}/cmdline").exists() or not Path(f"/proc/{left}/cmdline").read_bytes()
            )
            assert list(real_tree.root.glob("*-*")) == []
            await cluster.pod("missing", command=["/no/such/command"])
            assert "/no/such/command" in str((await cluster.phase("missing", "Failed"))["status"])

    asyncio.run(scenario())


def test_further_commands_run_inside_the_cgroup_of_their_container(tmp_path, real_tree):
    async def scenario():
        cgroup, guardian = real_tree.create("pod", "main", {}), ProcessGuardian()
        launch = ContainerLaunch(["sleep", "987"], tmp_path, {"PATH": os.environ["PATH"], "A": "b"}, cgroup)
        running = await ContainerProcess.start(launch, guardian, LogFile(tmp_path / "0.log"))
        try:
            command = ["sh", "-c", "cat /proc/self/cgroup; env"]
            return (await run_command(running, command, 20, 10_000)).output.decode()
        finally:
            running.kill()
            await running.wait()
            await cgroup.remove()
            guardian.close()

    output = asyncio.run(scenario())
    assert f"/{real_tree.root.name}/pod/main\n" in output
    assert "\nA=b\n" in output
    assert "LC_CTYPE" not in output  # which the launcher must not leave behind


@pytest.mark.slow
def test_a_container_that_the_kernel_killed_for_its_memory_says_so(tmp_path, monkeypatch):
    """A folder of plain files, since this machine may have no cgroups with a limit of memory."""
    monkeypatch.setattr(
        cgroups, "remove_cgroups", lambda root, seconds: not shutil.rmtree(root, ignore_errors=True)
    )
    tree = CgroupTree(tmp_path / "cgroup")
    tree.root.mkdir()

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_cgroups=lambda name: tree) as cluster:
            killed = (
                f"for own in {tree.root}/*/main; do echo oom_kill 1 > $own/memory.events; done; kill -9 $$$$"
            )
            limits = {"resources": {"limits": {"memory": "64Mi"}}}
            await cluster.pod("fat", command=["sh", "-c", killed], container=limits)
            state = (await cluster.phase("fat", "Failed"))["status"]["containerStatuses"][0]["state"]
            assert (state["terminated"]["reason"], state["terminated"]["exitCode"]) == ("OOMKilled", 137)

    asyncio.run(scenario())


def test_limits_that_are_not_enforced_are_logged_once_and_shown_by_each_pod(tmp_path, caplog):
    def find(name):
        raise NoCgroups("/sys/fs/cgroup: without the controllers memory")

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_cgroups=find) as cluster:
            for name in ("free", "a", "b", "pod-level"):
                limited = {"resources": {"limits": {"cpu": "1"}}}
                limits = limited if name in ("a", "b") else {}
                init = {"name": "first", "image": "none", "command": ["true"], **limits}
                spec = {"initContainers": [init], **(limited if name == "pod-level" else {})}
                await cluster.pod(name, command=["true"], container=limits, spec=spec)
                status = (await cluster.phase(name, "Succeeded"))["status"]
                enforced = [
                    condition
                    for condition in status["conditions"]
                    if condition["type"] == "stromboli.sh/LimitsEnforced"
                ]
                assert [(each["status"], each["reason"]) for each in enforced] == (
                    [] if name == "free" else [("False", "LimitsNotEnforced")]
                )
                assert all("without the controllers memory" in each["message"] for each in enforced)
            assert "without the controllers memory" in await event(cluster, "b", "LimitsNotEnforced")
            items = json.loads(await cluster.client.list(EVENTS, "default"))["items"]
            told = [each for each in items if each["reason"] == "LimitsNotEnforced"]
            counts = [(each["involvedObject"]["name"], each["count"]) for each in told]
            assert counts == [("a", 1), ("b", 1), ("pod-level", 1)]

    asyncio.run(scenario())
    [message] = [message for message in caplog.messages if "limits" in message]
    assert message.endswith("not enforced here: /sys/fs/cgroup: without the controllers memory")


def test_what_a_former_run_left_is_killed_and_removed(real_tree):
    cgroup = real_tree.create("pod", "main", {})
    enter = f"echo 0 > {cgroup.processes}; exec sleep 987"
    with subprocess.Popen(["sh", "-c", enter], start_new_session=True) as left:
        while str(left.pid) not in cgroup.processes.read_text().split():
            assert left.poll() is None
        assert find_cgroups(real_tree.root.name).root == real_tree.root
        assert left.wait(10) == -signal.SIGKILL
    assert not cgroup.path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="cgroups")
def test_a_tree_that_is_not_there_needs_no_removal(tmp_path):
    assert remove_cgroups(str(tmp_path / "none"), 0.0)
    CgroupTree(tmp_path / "none").close()
