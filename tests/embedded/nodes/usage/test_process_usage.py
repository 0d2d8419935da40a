"""What processes use, by those of this machine."""

import subprocess
import time

import pytest

from stromboli.embedded.nodes.usage.process_usage import PROC, read_processes

pytestmark = pytest.mark.skipif(not (PROC / "self" / "stat").exists(), reason="no /proc here")

BUSY = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"


class Session:
    """A script with a session of its own, as a container has."""

    def __init__(self, script):
        self.script = script

    def __enter__(self):
        self.process = subprocess.Popen(
            ["sh", "-c", f"{self.script}; echo done; exec sleep 100"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.process.stdout.readline()
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_container_has_what_its_processes_used_also_those_that_ended():
    with Session(BUSY) as busy, Session(f"sh -c '{BUSY}'") as child, Session("true") as idle:
        readings = read_processes([busy, child, idle])
        assert readings.keys() == {busy, child, idle}
        assert readings[busy].cpu_seconds >= 0.05
        assert readings[child].cpu_seconds >= 0.05
        assert readings[idle].cpu_seconds < 0.05
        assert all(64 << 10 < reading.memory < 1 << 30 for reading in readings.values())


def test_a_process_with_a_session_of_its_own_belongs_to_whoever_started_it():
    with Session("setsid sh -c 'sleep 50 & wait' & true") as leader, Session("true") as other:
        alone = read_processes([other])[other].memory
        until(lambda: read_processes([leader])[leader].memory > 2 * alone)


def test_what_is_gone_has_no_reading():
    with Session("true") as leader:
        pass
    assert read_processes([leader, 2**22 + 1]) == {}
    assert read_processes([]) == {}
