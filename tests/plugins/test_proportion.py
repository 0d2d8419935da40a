"""proportion: weighted shares between queues, filled like water (spec 03 6)."""

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.api.types.scheduling import QueueSpec
from stromboli.model.amounts import excess, total_of
from stromboli.model.dimensions import CPU, MEMORY, PODS
from stromboli.model.queue import Queue
from stromboli.plugins.proportion import Share, fill
from stromboli.testing import World
from tests.manifests import policy

PLUGINS = "priority gang | predicates proportion"


def queue(name, weight, cpu, memory, pods, guarantee=None, capability=None):
    made = Queue(name)
    made.object = QueueObject(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=weight))
    made.pending = {CPU: cpu, MEMORY: memory, PODS: pods}
    made.guarantee = guarantee or {}
    made.capability = capability or {}
    return made


def shares_of(queues, total):
    unpromised = excess(total, total_of(queue.guarantee for queue in queues))
    shares = [Share(queue, unpromised, queue.pending) for queue in queues]
    fill(shares, total)
    return [share.deserved for share in shares]


def test_water_fills_by_weight_up_to_need_limit_and_guarantee():
    queues = [
        queue("a", 1, 9000, 3000, 9),
        queue("b", 2, 1000, 1000, 1, guarantee={CPU: 2000}),
        queue("c", 1, 9000, 3000, 9, capability={CPU: 2500}),
    ]
    assert shares_of(queues, {CPU: 10000, MEMORY: 10000, PODS: 100}) == [
        {CPU: 5500, MEMORY: 3000, PODS: 9},
        {CPU: 2000, MEMORY: 1000, PODS: 1},
        {CPU: 2500, MEMORY: 3000, PODS: 9},
    ]


def test_what_one_queue_does_not_need_flows_on():
    needy, content = shares_of(
        [queue("needy", 1, 9000, 100, 9), queue("content", 3, 1000, 100, 1)],
        {CPU: 8000, MEMORY: 1000, PODS: 50},
    )
    assert (needy[CPU], content[CPU]) == (7000, 1000)


def test_a_queue_without_requests_deserves_nothing():
    assert shares_of([queue("idle", 1, 0, 0, 0)], {CPU: 1000, MEMORY: 1000}) == [{CPU: 0, MEMORY: 0}]


def test_a_queue_gets_no_more_than_it_deserves():
    world = World(nodes="n1 cpu=8,memory=64Gi,pods=110", queues="a weight=1; b weight=3")
    world.job("left", queue="a", pods=8, minimum=1, cpu=1)
    world.job("right", queue="b", pods=8, minimum=1, cpu=1)
    assert world.run(plugins=PLUGINS).bound_per_job == {"default/left": 2, "default/right": 6}


def test_a_closed_queue_admits_no_job():
    world = World(nodes="n1 cpu=8,memory=64Gi,pods=110")
    world.add({"kind": "Queue", "metadata": {"name": "shut"}, "status": {"state": "Closed"}})
    world.job("late", queue="shut", cpu=1, min_resources={"cpu": 1})
    result = world.run(plugins=PLUGINS)
    assert result.phases == {"default/late": "Pending"}
    assert result.binds == {}


def test_the_gate_counts_jobs_admitted_in_this_cycle():
    world = World(nodes="n1 cpu=4,memory=64Gi,pods=110", queues="q")
    for name in ("first", "second"):
        world.job(name, queue="q", pods=3, cpu=1, min_resources={"cpu": 3})
    result = world.run("enqueue", plugins=PLUGINS)
    assert result.phases == {"default/first": "Inqueue", "default/second": "Pending"}


def test_a_refusal_at_the_gate_names_what_is_missing_once():
    world = World(nodes="n1 cpu=1,memory=64Gi,pods=110", queues="q")
    world.job("big", queue="q", cpu=2, min_resources={"cpu": 2, "nvidia.com/gpu": 1})
    first = world.run("enqueue", plugins=PLUGINS)
    messages = [
        decision.message for decision in first.decisions if getattr(decision, "reason", "") == "Unschedulable"
    ]
    assert "queue resource quota insufficient: insufficient cpu, insufficient nvidia.com/gpu" in messages
    assert world.step().decisions == []


def test_what_a_guarantee_keeps_for_others_is_out_of_reach():
    world = World(nodes="n1 cpu=4,memory=64Gi,pods=110", queues="mine")
    world.add(
        {
            "kind": "Queue",
            "metadata": {"name": "theirs"},
            "spec": {"guarantee": {"resource": {"cpu": "3"}}},
        }
    )
    world.job("job", queue="mine", cpu=2, min_resources={"cpu": 2})
    assert world.run("enqueue", plugins=PLUGINS).phases == {"default/job": "Pending"}


def test_a_guarantee_of_zero_is_a_limit_where_all_is_guaranteed_to_others():
    everything = queue("owner", 1, 0, 0, 0, guarantee={3: 4000})
    nothing = queue("guest", 1, 0, 0, 1, guarantee={3: 0})
    nothing.pending = {CPU: 0, MEMORY: 0, PODS: 1, 3: 1000}
    assert shares_of([everything, nothing], {CPU: 1000, MEMORY: 1000, PODS: 9, 3: 4000})[1].get(3, 0) == 0


@pytest.mark.parametrize("cpu", [6, 2])
def test_a_job_takes_what_was_cleared_for_it_though_the_share_of_its_queue_has_fallen(cpu: int) -> None:
    """With 2 CPUs its queue still has more than its share."""
    hold = {"fewestVictims": True, "holdFor": "5m"}
    text = policy("allocate, preempt", "priority | predicates proportion", preempt=hold)
    here = World("n1 cpu=8", "a; b", policy=text)
    here.job("low", pods=8, minimum=0, cpu=1, queue="b", running_on=["n1"] * 8)
    here.job("urgent", cpu=cpu, queue="b", priority=1)
    assert len(here.step().evicted) == cpu
    here.job("new", pods=8, minimum=1, cpu=1, queue="a")
    assert "default/urgent" in here.step().bound_per_job
