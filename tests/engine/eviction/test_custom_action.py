"""A custom evicting action: its candidates, and how a task is served. The search is shared."""

from __future__ import annotations

from dataclasses import replace

from stromboli.engine.catalog import Action, action
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.node_clearing import clear_first
from stromboli.engine.eviction.starving_jobs import evict_for_job, starving_jobs
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.engine.plugin import Bound, Plugin
from stromboli.engine.session import Session
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.simulator.explain.eviction_answers import EvictionAnswers
from stromboli.testing import World
from stromboli.testing.policy_text import known_extensions
from tests.manifests import group, policy


@action("yield", EvictionOptions, evicts_by="preemptable", preempts=True)
def yielding(session: Session) -> None:
    """Evict jobs that are annotated `example.com/yields` for any job that starves, in every queue."""
    options: EvictionOptions = session.arguments("yield")
    candidates = VictimCandidates(
        "preemptable",
        (Status.RUNNING,),
        lambda task, job: job is not task.job and "example.com/yields" in job.annotations,
        accepts=options.may_evict(session),
    )
    search = VictimSelection(session, candidates, options)
    for _, jobs in session.jobs_by_queue(starving_jobs(session, may_help=search.may_help)).visits():
        for job in jobs:
            evict_for_job(search, job, _serve)


def _serve(search: VictimSelection, task: Task, within: Domain | None) -> bool:
    parts = search.searches(task, within)
    return any(clear_first(part, task, part.nodes_by_score(task, within), within) for part in parts)


def test_an_action_evicts_with_what_the_other_evicting_actions_share() -> None:
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="mine; theirs")
    world.job("stays", cpu=2, minimum=0, queue="mine", running_on="n1")
    world.job(
        "yields",
        cpu=2,
        minimum=0,
        queue="theirs",
        running_on="n2",
        annotations={"example.com/yields": "true"},
    )
    world.job("new", cpu=2, queue="mine")
    result = world.run("enqueue, allocate, yield", "gang predicates nodeorder", action_functions=[yielding])
    assert result.evicted == ["default/yields-0"]
    assert result.pipelined == {"default/new-0": "n2"}


def test_it_evicts_nothing_for_a_gang_that_could_not_start_with_it() -> None:
    world = World(nodes="n1 cpu=2; n2 cpu=2", queues="mine; theirs")
    world.job(
        "yields",
        pods=2,
        cpu=2,
        minimum=0,
        queue="theirs",
        running_on="n1 n2",
        annotations={"example.com/yields": "true"},
    )
    world.job("new", pods=3, cpu=2, queue="mine")
    result = world.run("enqueue, allocate, yield", "gang predicates nodeorder", action_functions=[yielding])
    assert result.evicted == []


class Entitlement(Plugin):
    """Lets pods be evicted only for jobs that are annotated `example.com/entitled`."""

    name = "entitlement"

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return candidates if _is_entitled(task) else []

    def victim_bound(self, point: str, task: Task) -> Bound:
        entitled = _is_entitled(task)
        return Bound(entitled, lambda job: entitled)


def _is_entitled(task: Task) -> bool:
    return task.job is not None and "example.com/entitled" in task.job.annotations


def test_a_job_for_which_plugins_allow_victims_is_not_skipped_with_those_for_which_they_do_not() -> None:
    world = World(nodes="n1 cpu=2", queues="theirs")
    world.job("holds", cpu=2, minimum=0, queue="theirs", running_on="n1")
    world.job("first", cpu=2).job("second", cpu=2, annotations={"example.com/entitled": "true"})
    plugins = "gang entitlement predicates nodeorder"
    world.run("allocate, yield", plugins, plugin_classes=[Entitlement], action_functions=[yielding], cycles=3)
    yields = {"example.com/yields": "true"}
    world.add(group("holds", 0, queue="theirs", phase="Running", annotations=yields))
    assert world.step().evicted == ["default/holds-0"]


def test_its_evictions_count_in_metrics_as_those_of_built_in_actions() -> None:
    world = World(nodes="n1 cpu=2", queues="theirs")
    metrics = SchedulerMetrics(world.rehearsal.now)
    metrics.cycle(world.run("allocate, yield", "gang predicates", action_functions=[yielding]).outcome)
    assert 'stromboli_young_evictions_total{action="yield"} 0.0' in metrics.text().decode()
    yields = {"example.com/yields": "true"}
    world.job("yields", cpu=2, minimum=0, queue="theirs", running_on="n1", annotations=yields)
    metrics.cycle(world.job("new", cpu=2).step().outcome)
    assert "volcano_total_preemption_attempts 1.0" in metrics.text().decode()


def test_it_counts_as_a_way_to_start_for_a_job_at_the_gate() -> None:
    def admitted(**terms: str) -> bool:
        world = World(nodes="n1 cpu=2").job("holds", cpu=2, minimum=0, running_on="n1", priority=1)
        world.job("new", cpu=2, priority=9, min_resources={"cpu": 2})
        text = policy("enqueue, yield", "priority gang | overcommit predicates", enqueue=terms)
        return world.run(policy=text, action_functions=[yielding]).phases["default/new"] == "Inqueue"

    assert admitted(letUrgentThrough="true")
    assert not admitted()


def test_explanations_list_it_among_the_actions_that_evict() -> None:
    world = World(nodes="n1 cpu=2").job("holds", cpu=2, running_on="n1").job("new", cpu=2)
    result = world.run("allocate, yield", "gang predicates", action_functions=[yielding])
    new = next(task for task in world.cluster.tasks.values() if task.name == "new-0")
    answers = EvictionAnswers(result.outcome.session, new)
    assert answers.policy_text == "The policy can evict for waiting jobs: yield."


def _why_not_evicted(actions: str, functions: list[Action]) -> str:
    world = World(nodes="n1 cpu=4", queues="mine; theirs")
    world.job("holds", cpu=3, minimum=0, queue="theirs", running_on="n1")
    world.job("new", cpu=3, queue="mine")
    result = world.run(actions, "gang predicates", action_functions=functions)
    jobs = {job.name: job for job in world.cluster.jobs.values()}
    (new,) = jobs["new"].tasks.values()
    answers = EvictionAnswers(result.outcome.session, new)
    return answers.why_not(jobs["holds"], list(jobs["holds"].tasks.values()))


def test_explanations_report_that_it_does_not_take_from_a_job() -> None:
    both = replace(yielding, reclaims=True)
    assert _why_not_evicted("allocate, yield", [both]) == 'action "yield" does not take from this job'
    also = replace(both, name="concede", run=yielding.run)
    why = _why_not_evicted("allocate, yield, concede", [both, also])
    assert why == "none of the actions yield, concede takes from this job"


def test_an_action_of_which_the_search_is_not_known_may_take_from_any_job() -> None:
    silent = replace(yielding, reclaims=True, run=lambda session: None)
    why = _why_not_evicted("allocate, yield", [silent])
    assert why == "it may be evicted, but that would not free enough"


def test_built_in_actions_declare_for_which_jobs_they_evict() -> None:
    catalog = known_extensions()
    assert {"preempt", "gangpreempt"} <= {action.name for action in catalog.preempting}
    assert {"reclaim", "gangreclaim"} <= {action.name for action in catalog.reclaiming}
    assert {name for name, action in catalog.actions.items() if not action.for_waiting} == {"shuffle"}
