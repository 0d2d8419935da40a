"""Clusters of a user share the cards of a machine: none is given out by two at a time, whoever is killed."""

import asyncio
from pathlib import Path

import pytest

from stromboli.embedded.nodes.machine.gpu_allocator import GpusUnavailable
from stromboli.embedded.nodes.machine.gpu_locks import GpuLocks, locks_folder
from stromboli.embedded.nodes.machine.gpu_manager import GpuManager
from stromboli.embedded.nodes.machine.nvidia_smi import Gpu
from tests.embedded.nodes.node_pods import pod


@pytest.fixture
def running():
    """Folders of pods that have processes."""
    return set()


@pytest.fixture
def locks(tmp_path, running):
    return lambda cluster: GpuLocks(tmp_path / "locks", tmp_path / cluster, running.__contains__)


def asking(count):
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(count)}}}
    return pod("p", spec={"containers": [container]})


def test_a_card_belongs_to_one_cluster_at_a_time(tmp_path, locks):
    first, second = locks("a"), locks("b")
    assert first.lock({"GPU-0"}, tmp_path / "a" / "p") == set()
    assert second.lock({"GPU-0", "GPU-1"}, tmp_path / "b" / "q") == {"GPU-0"}
    assert first.lock({"GPU-1"}, tmp_path / "a" / "r") == set(), "it was locked though the other was not free"
    first.unlock({"GPU-0", "GPU-1"})
    assert second.lock({"GPU-0", "GPU-1"}, tmp_path / "b" / "q") == set()


def test_a_card_of_a_cluster_that_was_killed_is_free_when_the_processes_of_its_pod_are_gone(
    tmp_path, locks, running
):
    killed, other = locks("a"), locks("b")
    killed.lock({"GPU-0"}, tmp_path / "a" / "p")
    running.add(str(tmp_path / "a" / "p"))
    killed.close()
    assert other.lock({"GPU-0"}, tmp_path / "b" / "q") == {"GPU-0"}
    running.clear()
    assert other.lock({"GPU-0"}, tmp_path / "b" / "q") == set()


def test_a_cluster_that_is_started_again_goes_by_its_own_record(tmp_path, locks, running):
    """Its pods may have changed cards, so that a process of the former owner says nothing."""
    killed, again = locks("a"), locks("a")
    killed.lock({"GPU-0"}, tmp_path / "a" / "p")
    running.add(str(tmp_path / "a" / "p"))
    killed.close()
    assert again.lock({"GPU-0"}, tmp_path / "a" / "q") == set()


def test_a_pod_gets_cards_that_no_other_cluster_has_and_waits_for_those_that_one_has(tmp_path, locks):
    async def scenario():
        cards = [Gpu(number, f"GPU-{number}", "x", 1) for number in range(3)]
        first, second = (
            GpuManager(tmp_path / f"{cluster}.json", locks(cluster), lambda: cards) for cluster in "ab"
        )
        grant = await first.allocate(asking(1), tmp_path / "a" / "p")
        assert grant.cards == {"GPU-0"}
        other = await second.allocate(asking(2), tmp_path / "b" / "q")
        assert other.cards == {"GPU-1", "GPU-2"}
        with pytest.raises(GpusUnavailable, match="another cluster of yours have GPU-1, GPU-2") as refusal:
            await first.allocate(asking(1), tmp_path / "a" / "r")
        assert refusal.value.temporary
        second.release(other)
        assert (await first.allocate(asking(2), tmp_path / "a" / "r")).cards == {"GPU-1", "GPU-2"}

    asyncio.run(scenario())


def test_without_locks_no_card_is_given_out(tmp_path, locks):
    (tmp_path / "locks").write_text("no folder")
    gpus = GpuManager(tmp_path / "gpus.json", locks("a"), lambda: [Gpu(0, "GPU-0", "x", 1)])
    with pytest.raises(GpusUnavailable, match="locks: cannot be written: File exists") as refusal:
        asyncio.run(gpus.allocate(asking(1), tmp_path / "a" / "p"))
    assert refusal.value.temporary


def test_the_folder_is_the_same_for_all_clusters_of_a_user(monkeypatch, tmp_path):
    assert locks_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/stromboli/gpus")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locks_folder({}) == tmp_path / ".local" / "state" / "stromboli" / "gpus"
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert locks_folder({}).name.startswith("stromboli-gpus-")
