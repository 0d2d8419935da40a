"""The NUMA nodes for a container, against a search through all sets of them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.types.numa_topology import CpuDetail
from stromboli.model.cpus.cpu_topology import CpuTopology
from stromboli.plugins.numa_aware import Hint, admits, best_hint
from tests.plugins.numa_aware import naive_cpus
from tests.plugins.numa_aware.naive_cpus import Details, mask

POLICIES = ("best-effort", "restricted", "single-numa-node")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Details, set[int]]:
    numa_nodes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 63]), min_size=1, max_size=5, unique=True))
    details = {
        cpu: CpuDetail(numa=draw(st.sampled_from(numa_nodes)))
        for cpu in draw(st.sets(st.integers(0, 15), min_size=1))
    }
    return details, draw(st.sets(st.integers(0, 17)))


@given(cases(), st.sampled_from(POLICIES), st.integers(1, 12))
@example(({0: CpuDetail(), 1: CpuDetail(1)}, {0, 16, 17}), "restricted", 2)
def test_the_best_set_is_that_of_a_search_through_all(
    case: tuple[Details, set[int]], policy: str, request: int
) -> None:
    details, free = case

    expected, preferred = naive_cpus.best_hint(policy, details, free, request)

    hint = best_hint(policy, CpuTopology(details), mask(free), request)
    assert hint == Hint(mask(expected), preferred)


def test_forty_numa_nodes_cost_nothing() -> None:
    topology = CpuTopology({cpu: CpuDetail(numa=cpu // 4) for cpu in range(160)})

    assert best_hint("restricted", topology, topology.cpus, 79) == Hint((1 << 20) - 1, True)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_container_without_whole_cpus_may_have_any(policy: str) -> None:
    hint = best_hint(policy, CpuTopology({0: CpuDetail(0), 1: CpuDetail(1)}), 0, 0)
    assert hint == Hint(0b11, True)
    assert admits(policy, hint)


def test_only_best_effort_takes_more_numa_nodes_than_it_should() -> None:
    hint = Hint(0b11, False)
    assert [policy for policy in POLICIES if admits(policy, hint)] == ["best-effort"]
