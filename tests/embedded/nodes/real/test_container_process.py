"""Processes, their output and their end; and that none is left behind."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from stromboli.daemon import connection_limits
from stromboli.embedded.nodes.real import process_guardian, process_stdio
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.process_guardian import ROOT, ProcessGuardian, kill_marked

PATIENCE = 60


def run(folder, *arguments, then=None):
    """How a process ends; after its first output it may be acted on."""

    async def scenario():
        guardian = ProcessGuardian()
        try:
            log = LogFile(folder / "0.log", lambda: 0.0)
            launch = ContainerLaunch(list(arguments), folder, {"PATH": os.environ["PATH"]})
            running = await ContainerProcess.start(launch, guardian, log)
            if then is not None:
                async with asyncio.timeout(PATIENCE):
                    while not logged_lines(folder):
                        await asyncio.sleep(0.01)
                then(running)
            return await asyncio.wait_for(running.wait(), PATIENCE)
        finally:
            guardian.close()

    return asyncio.run(scenario())


def logged_lines(folder):
    return [line.partition(" ")[2] for line in (folder / "0.log").read_text().splitlines()]


@pytest.mark.parametrize(
    ("script", "end", "lines"),
    [
        ("echo out; echo err >&2", (0, 0), ["out", "err"]),
        ("exit 3", (3, 0), []),
        ("kill -9 $$", (137, 9), []),
        ("pwd | xargs basename; (sleep 100; echo never) & echo quick", (0, 0), None),
    ],
)
def test_a_process_ends_as_it_does(tmp_path, script, end, lines):
    assert run(tmp_path, "sh", "-c", script) == end
    assert lines is None or logged_lines(tmp_path) == lines


def test_a_process_ends_even_if_a_process_that_it_left_running_holds_its_output(tmp_path, monkeypatch):
    monkeypatch.setattr(process_stdio, "OUTPUT_WAIT", 0.2)
    pid = tmp_path / "pid"
    left = f"setsid sh -c 'echo $$ > {pid}; exec sleep 987' &"
    assert run(tmp_path, "sh", "-c", f"{left} until [ -s {pid} ]; do sleep 0.02; done; exit 4") == (4, 0)
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_process_may_end_in_order(tmp_path):
    script = "trap 'echo bye; exit 7' TERM; echo ready; while true; do sleep 0.02; done"
    assert run(tmp_path, "sh", "-c", script, then=ContainerProcess.terminate) == (7, 0)
    assert logged_lines(tmp_path)[-1] == "bye"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets limits of other processes")
def test_a_process_may_open_as_many_files_as_we_could_before_we_raised_the_limit(tmp_path, monkeypatch):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
    monkeypatch.setattr(connection_limits, "INHERITED_DESCRIPTORS", limit)
    script = f'until [ "$(ulimit -Sn)" = {limit} ]; do sleep 0.02; done; exit 5'
    assert run(tmp_path, "sh", "-c", script) == (5, 0)


def test_a_killed_process_takes_its_children_along(tmp_path):
    assert run(tmp_path, "sh", "-c", "sleep 987 & echo $!; wait", then=ContainerProcess.kill) == (137, 9)
    child = int(logged_lines(tmp_path)[0])
    deadline = time.monotonic() + PATIENCE
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(child)


def test_a_command_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ContainerError, match="/no/such/thing"):
        run(tmp_path, "/no/such/thing")


def test_a_process_that_nobody_would_kill_after_us_does_not_run(tmp_path, monkeypatch):
    """As many files are open as may be, say, when its guardian is to start."""

    def no_guardian(self, line):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(ProcessGuardian, "_send", no_guardian)
    with pytest.raises(ContainerError, match="Too many open files") as failure:
        run(tmp_path, "sh", "-c", "echo $$ > pid; exec sleep 987")
    assert failure.value.reason == "CreateContainerError"
    if (tmp_path / "pid").exists():
        assert not _lives(int((tmp_path / "pid").read_text()))


def test_nothing_outlives_us_even_if_we_are_killed(tmp_path):
    code = """
import subprocess, sys, time
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
child = subprocess.Popen(["sleep", "987"], start_new_session=True)
guardian = ProcessGuardian()
guardian.add(child.pid)
print(child.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with parent:
        child = int(parent.stdout.readline())
        assert _lives(child)
        parent.kill()
    deadline = time.monotonic() + PATIENCE
    while _lives(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(child)


def test_a_guardian_that_died_is_replaced_by_one_that_knows_all(tmp_path):
    guardian = ProcessGuardian()
    first, second = (subprocess.Popen(["sleep", "987"], start_new_session=True) for _ in range(2))
    with first, second:
        guardian.add(first.pid)
        guardian._process.kill()
        guardian._process.wait()
        guardian.add(second.pid)
        guardian.close()
        assert {first.wait(PATIENCE), second.wait(PATIENCE)} == {-9}


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_who_left_the_group_is_known_by_the_root(tmp_path):
    roots = [str(tmp_path / "pods" / "a" / "root"), str(tmp_path / "pods" / "ab" / "root"), "elsewhere"]
    strays = [subprocess.Popen(["sleep", "987"], start_new_session=True, env={ROOT: root}) for root in roots]
    try:
        kill_marked([roots[0]])
        assert strays[0].wait(PATIENCE) == -9
        kill_marked(["", "/"])
        assert strays[1].poll() is None
        guardian = ProcessGuardian(str(tmp_path / "pods"))
        guardian.add(strays[0].pid)
        guardian.close()
        assert strays[1].wait(PATIENCE) == -9
        assert strays[2].poll() is None
    finally:
        for pid in strays:
            pid.kill()
            pid.wait()


def test_a_guardian_that_cannot_be_started_now_is_an_error_of_the_system(tmp_path, monkeypatch):
    """The user has as many processes as may be, say; the error is the same as that of a lock that is taken."""

    def no_process(*arguments, **options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(process_guardian.subprocess, "Popen", no_process)
    guardian = ProcessGuardian(str(tmp_path / "pods"))
    with pytest.raises(BlockingIOError):
        guardian.add(os.getpid())
    assert guardian.former_ended()


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_a_terminal_that_is_not_all_to_be_had_leaves_no_file_open(monkeypatch):
    def no_file(descriptor):
        raise OSError(24, "Too many open files")

    async def scenario():
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(process_stdio.os, "dup", no_file)
        with pytest.raises(OSError, match="Too many"):
            await process_stdio.ProcessStdio.pseudo_terminal()
        await asyncio.sleep(0.01)
        assert len(os.listdir("/proc/self/fd")) <= before

    asyncio.run(scenario())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device without room")
def test_a_full_disk_costs_the_log_and_not_the_run(tmp_path):
    (tmp_path / "0.log").symlink_to("/dev/full")
    assert run(tmp_path, "sh", "-c", "echo lost; printf rest; exit 5") == (5, 0)


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:  # a zombie is dead, whoever has yet to fetch it
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return sys.platform != "linux"
