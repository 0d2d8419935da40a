"""OpenB lists: what they say, the order in which pods arrive, and what becomes of nodes and pods."""

from math import inf

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.types.node import Node
from stromboli.model.cards.device_config import BUILT_IN
from stromboli.model.cards.registrations import Models, read_registrations
from stromboli.simulator.workloads.openb_arrivals import SeededSequence, arrivals
from stromboli.simulator.workloads.openb_lists import OpenbPod, read_openb_nodes, read_openb_pods
from stromboli.simulator.workloads.openb_workload import arriving_workload, read_openb, recorded_workload
from stromboli.simulator.workloads.workload_errors import WorkloadError
from tests.number_of_examples import scaled

NODES = (
    "sn,cpu_milli,memory_mib,gpu,model\nb,64000,262144,2,T4\na,32000,131072,1,V100M16\nc,96000,393216,0,\n"
)
PODS = """num_gpu,name,gpu_milli,cpu_milli,memory_mib,gpu_spec,qos,creation_time,deletion_time,scheduled_time
1,one,460,6000,12288,V100M16|T4,LS,100,700,200
2,two,1000,8000,4096,,LS,50,40,
0,none,0,4000,1024,T4,BE,60,,
"""


class Given:
    """A sequence that gives out what it was given."""

    def __init__(self, *drawn):
        self.drawn = list(drawn)

    def shuffled(self, count):
        return list(reversed(range(count)))

    def below(self, bound):
        drawn = self.drawn.pop(0)
        assert drawn < bound
        return drawn

    def ranks(self, count):
        return [(index + 1) % count for index in range(count)]


@pytest.fixture
def lists(tmp_path):
    def read(nodes=NODES, pods=PODS):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "pods.csv").write_text(pods)
        return read_openb(str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv"))

    return read


def pod(name, milli=1000, gpus=1):
    return OpenbPod(name, 1000, 0, gpus, milli)


# -- lists


def test_columns_may_stand_in_any_order_with_others_beside_them(lists):
    one, two, none = lists().pods
    assert (one.name, one.cpu_milli, one.memory_mib, one.gpus, one.gpu_milli) == ("one", 6000, 12288, 1, 460)
    assert (one.models, one.created, one.scheduled, one.deleted) == (("V100M16", "T4"), 100, 200, 700)
    assert (two.gpu_demand, none.gpu_demand, two.models) == (2000, 0, ())


def test_a_list_may_lack_models_memory_and_parts_of_gpus_and_quote_its_fields(lists):
    read = lists(
        'memory_mib,sn,cpu_milli\n1024,"n,1",1000\n',
        '\ufeffname,cpu_milli,num_gpu\n"a ""b""",1000.0,2\n\n',
    )
    assert (read.nodes[0].name, read.nodes[0].gpus) == ("n,1", 0)
    assert (read.pods[0].name, read.pods[0].gpu_milli, read.pods[0].models) == ('a "b"', 1000, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no row"),
        ("name,cpu_milli,num_gpu\n", "there is no row"),
        ("name,cpu\na,1\n", "pods.csv:1: there is no column cpu_milli, num_gpu; its header has name, cpu"),
        ("name,cpu_milli,num_gpu,name\na,1,1,b\n", "two columns 'name'"),
        ("name,cpu_milli,num_gpu\na,-1,1\n", "pods.csv:2: cpu_milli: '-1' is no whole number from 0 to"),
        ("name,cpu_milli,num_gpu\na,1.5,1\n", "'1.5' is no whole number"),
        ("name,cpu_milli,num_gpu\na,nan,1\n", "'nan' is no whole number"),
        ("name,cpu_milli,num_gpu\na,1,1e9\n", "num_gpu: '1e9' is no whole number from 0 to 1024"),
        ("name,cpu_milli,num_gpu,gpu_milli\na,1,1,1001\n", "gpu_milli: '1001'"),
        ("name,cpu_milli,num_gpu,gpu_milli\na,1,1,0\n", "gpu_milli: 0 of a GPU"),
        ("name,cpu_milli,num_gpu\n,1,1\n", "name: a name is missing"),
        ("name,cpu_milli,num_gpu\na,1,1,1\n", "pods.csv:2: 4 fields below a header of 3"),
        ('name,cpu_milli,num_gpu\n"a,1,1\n', "unexpected end of data"),
        ("name,cpu_milli,num_gpu,creation_time\na,1,1,soon\n", "creation_time: 'soon' is no time"),
    ],
)
def test_what_a_list_may_not_hold_is_told_with_its_line(tmp_path, text, problem):
    file = tmp_path / "pods.csv"
    file.write_text(text)
    with pytest.raises(WorkloadError) as error:
        read_openb_pods(str(file))
    assert problem in str(error.value)


def test_a_list_that_is_not_there_is_told():
    with pytest.raises(WorkloadError, match=r"nodes\.csv: cannot be read"):
        read_openb_nodes("nodes.csv")


# -- arrivals


def test_pods_are_drawn_from_the_list_sorted_by_name_until_a_gpu_of_the_next_would_be_too_much():
    pods = [pod("b", gpus=2), pod("a", 500)]
    arriving = arrivals(pods, 4000, 1.0, Given(0, 1, 0))
    # a, b: 2,500; a again: 3,000; b, whose one GPU still fits: 5,000; a: too much
    assert [each.name for each in arriving] == ["b", "a", "a-tuned-0", "b-tuned-1"]


def test_a_list_that_asks_for_too_much_is_thinned_and_keeps_its_order():
    pods = [pod(name) for name in "abcd"]
    arriving = arrivals(pods, 2000, 1.25, Given(1, 0))
    assert [each.name for each in arriving] == ["b", "a"]


@pytest.mark.parametrize(("capacity", "load"), [(2000, 1.0), (2000, 0), (0, 1.3)])
def test_a_list_that_is_as_long_as_it_should_be_is_only_shuffled(capacity, load):
    assert [each.name for each in arrivals([pod("a"), pod("b")], capacity, load, Given())] == ["b", "a"]


@settings(max_examples=scaled(40))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1000)), min_size=1, max_size=12),
    st.integers(1, 30),
    st.floats(0.1, 2),
    st.integers(0, 99),
)
def test_as_much_is_asked_for_as_the_load_says(demands, gpus, load, seed):
    pods = [pod(f"p{number}", part if count else 0, count) for number, (count, part) in enumerate(demands)]
    capacity, before = gpus * 1000, sum(each.gpu_demand for each in pods)
    arriving = arrivals(pods, capacity, load, SeededSequence(seed))
    demand = sum(each.gpu_demand for each in arriving)
    largest = max(each.gpu_demand for each in pods)
    if before > load * capacity:
        assert load * capacity - largest <= demand <= load * capacity
    elif before:
        assert load * capacity - 1000 <= demand <= load * capacity + largest
    assert len({each.name for each in arriving}) == len(arriving)


def test_a_list_without_gpus_is_taken_as_it_is():
    assert len(arrivals([pod("a", 0, 0)], 1000, 1.3, Given())) == 1


def test_the_same_seed_is_the_same_order():
    first, second, other = (SeededSequence(seed) for seed in (1, 1, 2))
    assert first.shuffled(50) == second.shuffled(50) != other.shuffled(50)
    assert sorted(first.ranks(50)) == list(range(50))
    assert first.shuffled(5) == [4, 3, 0, 1, 2], "it is so on every machine"


# -- workload


def test_pods_arrive_one_at_a_time_and_never_leave(lists):
    workload = arriving_workload(lists(), 0, Given())
    assert [(job.name, job.submit_time) for job in workload.jobs] == [("two", 0), ("one", 1), ("none", 2)]
    assert {job.run_time for job in workload.jobs} == {inf}
    assert workload.jobs[1].requests == {
        "cpu": "6000m",
        "memory": "12288Mi",
        "volcano.sh/vgpu-number": 1,
        "volcano.sh/vgpu-memory": 460,
    }
    assert workload.jobs[2].requests == {"cpu": "4000m", "memory": "1024Mi"}


def test_the_load_is_relative_to_the_gpus_of_the_nodes_given(lists):
    pods = "name,cpu_milli,num_gpu\na,1,1\nb,1,1\n"
    workload = arriving_workload(lists(pods=pods), 1.0, Given(0, 0))
    assert len(workload.jobs) == 3
    assert workload.notes == ("1 pod drawn again, so that 100.0% of the cluster's GPUs are asked for",)
    thinned = arriving_workload(lists("sn,cpu_milli,memory_mib,gpu\na,1,1,1\n", pods), 1.0, Given(0))
    assert len(thinned.jobs) == 1


def test_nodes_are_created_in_the_order_of_their_ranks(lists):
    nodes = arriving_workload(lists(), 0, Given()).nodes
    created = {node["metadata"]["name"]: node["metadata"]["creationTimestamp"] for node in nodes}
    assert sorted(created, key=created.get) == ["c", "a", "b"]


def test_cards_are_registered_in_thousandths_with_their_model(lists):
    manifests = {node["metadata"]["name"]: node for node in arriving_workload(lists(), 0, Given()).nodes}
    node = msgspec.convert(manifests["b"], Node)
    (registration,), problems = read_registrations(node, Models(BUILT_IN, vgpu=True))
    assert problems == []
    assert [(card.memory, card.count, card.type) for card in registration.cards] == [
        (1000, 1000, "NVIDIA-T4")
    ] * 2
    assert "annotations" not in manifests["c"]["metadata"] or not manifests["c"]["metadata"]["annotations"]


def test_models_are_asked_for_by_the_label_of_nodes(lists):
    workload = arriving_workload(lists(), 0, Given())
    two, one, none = workload.jobs
    (term,) = one.spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["V100M16", "T4"]}
    ]
    assert not two.spec
    assert not none.spec, "without GPUs it may go on any node"
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in workload.nodes}
    assert (labels["a"]["nvidia.com/gpu.product"], "nvidia.com/gpu.product" in labels["c"]) == (
        "V100M16",
        False,
    )


def test_a_model_that_is_listed_twice_makes_another_kind_of_pod_and_is_asked_for_once(lists):
    """The published lists have such pods, and typical pods are counted by what stands there."""
    read = lists(pods="name,cpu_milli,num_gpu,gpu_spec\na,1,1,T4|T4\nb,1,1, T4 |\n")
    assert [pod.models for pod in read.pods] == [("T4", "T4"), ("T4",)]
    asked = {str(job.spec) for job in arriving_workload(read, 0, Given()).jobs}
    assert len(asked) == 1
    assert "'values': ['T4']" in asked.pop()


def test_names_that_kubernetes_does_not_take_or_that_come_twice_are_changed(lists):
    pods = "name,cpu_milli,num_gpu\nPod_1,1,0\npod-1,1,0\n***,1,0\n"
    workload = arriving_workload(lists(pods=pods), 0, Given())
    assert sorted(job.name for job in workload.jobs) == ["pod-1", "pod-1.2", "unnamed"]


def test_a_list_can_be_played_by_its_own_times(lists):
    workload = recorded_workload(lists())
    assert [(job.name, job.submit_time, job.run_time) for job in workload.jobs] == [
        ("none", 10, inf),
        ("one", 50, 500),
    ]
    assert workload.notes == ("1 of 3 pods left out: no creation time, or deleted before they ran",)
