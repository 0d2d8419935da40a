"""Cards of pods: no card twice, no card lost, whatever the order of starts, ends, kills, restarts and failures."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.embedded.nodes.machine import gpu_manager
from stromboli.embedded.nodes.machine.gpu_allocator import (
    GpuAllocator,
    GpusUnavailable,
    divide,
    gpu_variables,
    needed_gpus,
)
from stromboli.embedded.nodes.machine.gpu_locks import GpuLocks
from stromboli.embedded.nodes.machine.gpu_manager import GpuManager
from stromboli.embedded.nodes.machine.nvidia_smi import Gpu, NvidiaSmiError
from tests.embedded.nodes.node_pods import pod
from tests.number_of_examples import scaled

CARDS = ["A", "B", "C", "D"]
FOLDER = Path("/pods/p")


def container(name, count, **more):
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": str(count)} if count else {}}, **more}


def asking(*counts, inits=(), name="p", sidecars=()):
    """Init containers, then sidecars, then containers."""
    first = [container(f"i{number}", count) for number, count in enumerate(inits)]
    first += [container(f"s{n}", count, restartPolicy="Always") for n, count in enumerate(sidecars)]
    mains = [container(f"c{number}", count) for number, count in enumerate(counts)]
    return pod(name, spec={"initContainers": first, "containers": mains})


def test_each_container_has_its_own_cards_and_init_containers_use_them_before():
    assert divide(asking(1, 2), CARDS) == {"c0": ("A",), "c1": ("B", "C")}
    assert divide(asking(1, 0, inits=[2]), CARDS) == {"i0": ("A", "B"), "c0": ("A",)}
    assert divide(asking(2, inits=[1, 3]), CARDS) == {"i0": ("A",), "i1": ("A", "B", "C"), "c0": ("A", "B")}
    assert divide(asking(1, inits=[2], sidecars=[1]), CARDS) == {"i0": ("A", "B"), "s0": ("A",), "c0": ("B",)}
    assert divide(asking(3, 2), CARDS) is None


@given(
    st.lists(st.integers(0, 3), max_size=3),
    st.lists(st.integers(0, 3), max_size=2),
    st.lists(st.integers(0, 3)),
)
def test_a_pod_needs_what_its_containers_have_at_a_time(inits, sidecars, counts):
    request = asking(*counts[:3], inits=inits, sidecars=sidecars)
    needed = needed_gpus(request)
    cards = [str(number) for number in range(needed)]
    division = divide(request, cards)
    assert needed == max([sum(counts[:3]) + sum(sidecars), *inits])
    assert divide(request, cards[1:]) is None or not needed
    together = [card for name, given in division.items() if name[0] in "cs" for card in given]
    assert len(together) == len(set(together))


def test_a_pod_that_cannot_have_its_cards_is_refused_in_the_words_of_a_kubelet():
    allocator = GpuAllocator(CARDS)
    allocator.allocate(asking(3))
    with pytest.raises(GpusUnavailable, match="Requested: 2, Available: 1") as refusal:
        allocator.allocate(asking(2, name="q"))
    assert not refusal.value.temporary


def test_cards_of_a_pod_that_is_gone_are_waited_for():
    allocator = GpuAllocator(CARDS)
    grant = allocator.allocate(asking(4))
    grant.leaving = True
    with pytest.raises(GpusUnavailable, match="default/p") as refusal:
        allocator.allocate(asking(1, name="q"))
    assert refusal.value.temporary
    allocator.release(grant)
    assert allocator.allocate(asking(1, name="q")).cards == {"A"}


def test_no_card_hides_all_from_cuda_and_cannot_be_taken_for_unset():
    assert gpu_variables(()) == {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"}
    assert gpu_variables(("A", "B")) == dict.fromkeys(
        ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"), "A,B"
    )


def locks(folder: Path) -> GpuLocks:
    return GpuLocks(folder / "locks", FOLDER.parent, lambda pod: False)


class Machine:
    """Cards, pods with processes that may outlive them, and the manager, which may be killed and started again."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.working = list(CARDS)
        self.processes: list[frozenset[str]] = []
        """The cards that processes have, one entry for a pod."""
        self.start()

    def start(self) -> None:
        self.locks = locks(self.record.parent)
        self.manager = GpuManager(self.record, self.locks, self.find, clock=lambda: 0.0)
        self.grants = {}
        self.leaving = self.manager.former

    def find(self) -> list[Gpu]:
        return [Gpu(number, card, "x", 1) for number, card in enumerate(self.working)]

    def act(self, action: str, number: int) -> None:
        match action:
            case "start" if number not in self.grants:
                self.start_pod(number)
            case "end" if number in self.grants:
                self.end(self.grants.pop(number))
            case "force" if number in self.grants:
                grant = self.grants.pop(number)
                self.manager.leave(grant)
                self.leaving.append(grant)
            case "gone" if self.leaving:
                self.end(self.leaving.pop())
            case "kill":  # -9: processes live on
                self.locks.close()
                self.start()
            case "fail":
                self.working = [card for card in self.working if card != CARDS[number % 4]]
                asyncio.run(self.manager.look())
            case "repair":
                self.working = list(CARDS)
                asyncio.run(self.manager.look())

    def start_pod(self, number: int) -> None:
        request = asking(1 + number % 3, inits=[number % 2], name=f"p{number}")
        running = [card for cards in self.processes for card in cards]
        free = [card for card in self.working if card not in running]
        try:
            grant = asyncio.run(self.manager.allocate(request, FOLDER))
        except GpusUnavailable:
            assert len(free) < needed_gpus(request), "a card was lost"
            return
        assert grant.cards <= set(free), "a card was given twice, or does not work"
        self.grants[number] = grant
        self.processes.append(grant.cards)

    def end(self, grant) -> None:
        self.processes.remove(grant.cards)
        self.manager.release(grant)


ACTIONS = st.sampled_from(["start", "start", "start", "end", "force", "gone", "kill", "fail", "repair"])


@settings(max_examples=scaled(60), deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 5)), max_size=30))
def test_no_card_is_given_twice_and_none_is_lost(tmp_path_factory, actions):
    machine = Machine(tmp_path_factory.mktemp("gpus") / "gpus.json")
    for action, number in actions:
        machine.act(action, number)
    for grant in [*machine.grants.values(), *machine.leaving]:
        machine.end(grant)
    machine.act("repair", 0)
    assert asyncio.run(machine.manager.allocate(asking(4, name="all"), FOLDER)).cards == set(CARDS)


def manager(folder, find=lambda: [Gpu(0, "A", "x", 1)]):
    return GpuManager(folder / "gpus.json", locks(folder), find)


def test_pods_that_start_in_the_same_moment_have_different_cards(tmp_path):
    async def scenario():
        both = manager(tmp_path, lambda: [Gpu(number, card, "x", 1) for number, card in enumerate(CARDS)])
        starts = [both.allocate(asking(1, name=f"p{number}"), FOLDER) for number in range(4)]
        return [grant.cards for grant in await asyncio.gather(*starts)]

    assert sorted(map(sorted, asyncio.run(scenario()))) == [["A"], ["B"], ["C"], ["D"]]


def test_the_record_can_be_read_and_is_not_lost_by_a_kill(tmp_path):
    first = manager(tmp_path)
    asyncio.run(first.allocate(asking(1), FOLDER))
    assert json.loads((tmp_path / "gpus.json").read_text()) == [
        {"uid": "uid-p", "pod": "default/p", "containers": {"c0": ["A"]}}
    ]
    first.close()
    again = manager(tmp_path)
    with pytest.raises(GpusUnavailable, match="default/p"):
        asyncio.run(again.allocate(asking(1, name="q"), FOLDER))
    again.release(again.former[0])
    assert asyncio.run(again.allocate(asking(1, name="q"), FOLDER)).cards == {"A"}


@pytest.mark.parametrize("content", ["", "{", '{"uid": 1}', '[{"uid": "u"}]'])
def test_a_damaged_record_stops_nobody(tmp_path, content, caplog):
    (tmp_path / "gpus.json").write_text(content)
    assert asyncio.run(manager(tmp_path).allocate(asking(1), FOLDER)).cards == {"A"}
    assert "gpus.json" in caplog.text


def test_a_pod_without_cards_asks_nobody(tmp_path):
    def find():
        raise AssertionError("nvidia-smi was asked")

    assert asyncio.run(manager(tmp_path, find).allocate(asking(0), FOLDER)) is None
    assert not (tmp_path / "gpus.json").exists()


def test_cards_that_cannot_be_listed_are_waited_for(tmp_path):
    def find():
        raise NvidiaSmiError("nvidia-smi does not answer")

    with pytest.raises(GpusUnavailable, match="does not answer") as refusal:
        asyncio.run(manager(tmp_path, find).allocate(asking(1), FOLDER))
    assert refusal.value.temporary


def test_a_record_that_cannot_be_written_starts_nothing(tmp_path):
    async def scenario():
        gpus = manager(tmp_path)
        (tmp_path / "gpus.new").mkdir()
        with pytest.raises(GpusUnavailable, match="cannot be written"):
            await gpus.allocate(asking(1), FOLDER)
        (tmp_path / "gpus.new").rmdir()
        return await gpus.allocate(asking(1), FOLDER)

    assert asyncio.run(scenario()).cards == {"A"}


def test_cards_are_looked_at_again_after_a_while_alone(tmp_path):
    looks, now = [], [0.0]

    def find():
        looks.append(now[0])
        return [Gpu(0, "A", "x", 1)][: 2 - len(looks)]

    async def scenario():
        gpus = GpuManager(tmp_path / "gpus.json", locks(tmp_path), find, clock=lambda: now[0])
        for time in (0.0, 1.0, gpu_manager.CHECK_AFTER + 1):
            now[0] = time
            gpus.release(await gpus.allocate(asking(1), FOLDER))

    with pytest.raises(GpusUnavailable, match="Available: 0"):
        asyncio.run(scenario())
    assert looks == [0.0, gpu_manager.CHECK_AFTER + 1]
