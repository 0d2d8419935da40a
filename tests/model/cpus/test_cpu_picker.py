"""The CPUs that are taken, against a naive picker."""

from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.types.numa_topology import CpuDetail
from stromboli.model.cpus.cpu_picker import reserved_cpus, take_cpus
from stromboli.model.cpus.cpu_topology import CpuTopology, cpu_numbers, format_cpu_set, parse_cpu_set
from tests.plugins.numa_aware import naive_cpus
from tests.plugins.numa_aware.naive_cpus import Details, mask


def machine(sockets: int, cores: int, threads: int = 1, unique_cores: bool = False) -> Details:
    """A machine whose threads are numbered as Linux does: the first thread of every core first."""
    details = {}
    for thread in range(threads):
        for socket in range(sockets):
            for core in range(cores):
                cpu = (thread * sockets + socket) * cores + core
                details[cpu] = CpuDetail(socket, socket, socket * cores + core if unique_cores else core)
    return details


machines = st.builds(machine, st.integers(1, 3), st.integers(1, 4), st.integers(1, 2), st.booleans())
odd = st.dictionaries(
    st.integers(0, 11),
    st.builds(CpuDetail, st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)),
    min_size=1,
)


@given(machines | odd, st.sets(st.integers(0, 25)), st.integers(-1, 14))
@example(machine(2, 4, 2), set(range(16)), 2)
def test_the_cpus_are_those_of_the_naive_picker(details: Details, available: set[int], needed: int) -> None:
    expected = naive_cpus.take(details, available, needed)

    taken = take_cpus(CpuTopology(details), mask(available), needed)

    assert (None if taken is None else set(cpu_numbers(taken))) == expected


def test_a_whole_socket_is_taken_where_as_much_is_needed() -> None:
    assert format_cpu_set(take_cpus(CpuTopology(machine(2, 4)), 0xFF, 5) or 0) == "0-4"


def test_a_core_number_is_taken_on_every_socket() -> None:
    """# quirk: spec 04 7: more than asked for, as exporters count cores anew in each socket."""
    topology = CpuTopology(machine(2, 4, threads=2))
    assert format_cpu_set(take_cpus(topology, topology.cpus, 2) or 0) == "0,4,8,12"


def test_what_is_not_there_cannot_be_taken() -> None:
    topology = CpuTopology(machine(1, 4))
    assert take_cpus(topology, parse_cpu_set("0-2"), 4) is None
    assert take_cpus(topology, parse_cpu_set("90-99"), 1) is None


def test_the_system_keeps_whole_cpus_and_none_if_it_asks_for_more_than_there_are() -> None:
    topology = CpuTopology(machine(2, 4, unique_cores=True))
    assert format_cpu_set(reserved_cpus(topology, 2)) == "0-1"
    assert reserved_cpus(topology, 9) == 0


def test_a_node_of_eight_thousand_cpus_is_picked_from_in_no_time() -> None:
    details = {cpu: CpuDetail(cpu % 64, cpu % 4096, cpu // 2) for cpu in range(8192)}
    topology = CpuTopology(details)
    taken = take_cpus(topology, topology.cpus & ~1, 5000)
    assert taken is not None
    assert taken.bit_count() >= 5000
