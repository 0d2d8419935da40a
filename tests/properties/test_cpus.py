"""Whatever happens, no CPU is given twice, and what is counted in memory is what a restart would read."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.types.numa_topology import Numatopology
from stromboli.model.cpus.cpu_ledger import CpuGrant
from stromboli.model.cpus.cpu_topology import parse_cpu_set
from stromboli.testing import World
from tests.manifests import group, node, policy, priority_class, queue
from tests.number_of_examples import scaled
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology
from tests.properties.grant_worlds import GrantWorld, job_objects
from tests.properties.held_grants import ledger_sums
from tests.properties.living import deeds
from tests.properties.strategies import examples

POLICIES = ("best-effort", "restricted", "single-numa-node")
NODES = ("m", "n")
POLICY = policy("enqueue, allocate", "gang | predicates numa-aware")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("job"), st.integers(1, 4), st.integers(1, 4), st.sampled_from(("", *POLICIES[1:]))),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("list"), st.sampled_from(NODES)),
    ),
    min_size=3,
    max_size=10,
)


class Machines:
    """A cluster whose kubelets give pods the CPUs that were chosen, and list them when they are told to."""

    def __init__(self, policies: tuple[str, str]):
        self.policies = dict(zip(NODES, policies, strict=True))
        self.listed: dict[str, set[str]] = {name: set() for name in NODES}
        self.world = World(policy=POLICY).add(*(node(name, cpu=8) for name in NODES))
        for name in NODES:
            self.publish(name)
        self.jobs = 0

    def grants(self) -> dict[str, tuple[str, int]]:
        """Node and CPUs by the uid of the pod."""
        return {
            task.uid: (task.node.name, parse_cpu_set(grant.cpus))
            for task in self.world.cluster.tasks.values()
            for grant in task.grants
            if isinstance(grant, CpuGrant) and task.node is not None
        }

    def topology(self, name: str) -> dict[str, Any]:
        grants = self.grants()
        listed = {uid for uid in self.listed[name] if uid in grants}
        taken = {cpu for uid in listed for cpu in range(8) if grants[uid][1] >> cpu & 1}
        free = ",".join(str(cpu) for cpu in range(8) if cpu not in taken)
        topology = numa_topology(name, self.policies[name], listed=[{"uid": uid} for uid in sorted(listed)])
        topology["spec"]["numares"] = {"cpu": {"allocatable": free}}
        return topology

    def publish(self, name: str) -> None:
        self.world.add(self.topology(name))

    def step(self, step: tuple[Any, ...]) -> None:
        running = sorted(uid for uid in self.grants())
        match step:
            case ("job", pods, cpus, asked):
                self.jobs += 1
                self.world.add(group(f"j{self.jobs}", pods))
                for index in range(pods):
                    self.world.add(
                        numa_pod(f"j{self.jobs}-{index}", cpus, policy=asked, group=f"j{self.jobs}")
                    )
            case ("end", number) if running:
                task = self.world.cluster.tasks[running[number % len(running)]]
                where = task.node
                self.world.finish(task.key)
                if where is not None and task.uid in self.listed[where.name]:
                    self.publish(where.name)
            case ("list", name):
                self.listed[name] |= {uid for uid, (on, _) in self.grants().items() if on == name}
                self.publish(name)
        self.world.step()
        self.world.rehearsal.sync()

    def restarted(self) -> World:
        """A scheduler that reads all objects anew."""
        world = World().add(*(node(name, cpu=8) for name in NODES), *(self.topology(name) for name in NODES))
        for task in self.world.cluster.tasks.values():
            if task.node is not None:
                notes = {key: text for grant in task.grants for key, text in dict(grant.annotations).items()}
                cpus = int(task.request[0]) // 1000
                world.add(
                    numa_pod(
                        task.name,
                        cpus,
                        group=task.job.name if task.job else "",
                        on=task.node.name,
                        annotations=notes,
                    )
                )
        return world


@settings(max_examples=scaled(15))
@given(st.tuples(st.sampled_from(POLICIES), st.sampled_from(POLICIES)), steps)
def test_no_cpu_is_given_twice_and_a_restart_forgets_none(
    policies: tuple[str, str], happenings: list[Any]
) -> None:
    machines = Machines(policies)
    for happening in happenings:
        machines.step(happening)
        given_on: dict[str, int] = dict.fromkeys(NODES, 0)
        for name, cpus in machines.grants().values():
            assert not given_on[name] & cpus, "a CPU was given twice"
            given_on[name] |= cpus
        restarted = machines.restarted().cluster.cpus
        for name in NODES:
            assert machines.world.cluster.cpus.free(name) == 0xFF & ~given_on[name]
            assert restarted.free(name) == machines.world.cluster.cpus.free(name)


class ChangingTopologies:
    """A cluster in which Numatopologies come and go, the first and the last one too."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        nodes = [node(name, cpu=8, memory="32Gi") for name in NODES]
        classes = priority_class("high", 100), priority_class("low", 1)
        self.world = GrantWorld([queue("default"), *classes, *nodes])

    def happen(self, number: int) -> None:
        what = self.chance.choice(("job", "job", "end", "change", "come or go", "come or go"))
        if what == "job":
            urgency = "low" if number < 4 else "high"
            for manifest in job_objects(f"j{number}", self.chance, ("numa", "plain"), urgency):
                self.world.put(manifest)
        elif what == "end" and (pods := list(self.world.pods())):
            self.world.delete(self.chance.choice(pods))
        elif what == "change":
            self.put_topology(self.chance.choice(NODES))
        elif what == "come or go":
            known = [each for each in self.world.objects.values() if isinstance(each, Numatopology)]
            for topology in known:
                self.world.drop(topology)
            for name in NODES if not known else ():
                self.put_topology(name)

    def put_topology(self, name: str) -> None:
        manager = self.chance.choice(("static", "static", "static", "none"))
        self.world.put(numa_topology(name, self.chance.choice(POLICIES), manager=manager))

    def check(self) -> None:
        """A cycle decides as one of a scheduler that starts now."""
        world = self.world
        fresh = world.rebuilt_intake(world.objects.values()).cluster
        expected = world.make_engine().cycle(fresh, world.now)
        outcome = world.cycle()
        assert deeds(outcome) == deeds(expected)
        assert ledger_sums(world.intake.cluster) == ledger_sums(fresh)
        world.come_true(outcome.decisions)
        world.bury()


@given(st.integers(0, 2**32))
@examples(25)
def test_the_first_numatopology_may_be_created_and_the_last_deleted_at_any_time(seed: int) -> None:
    changing = ChangingTopologies(seed)
    for number in range(10):
        changing.happen(number)
        changing.check()
