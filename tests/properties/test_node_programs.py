"""A compiled program computes for a node what its node functions compute with arrays, to the last bit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.engine.placement import usage_evaluation
from stromboli.engine.placement.node_fit import fits, fits_amounts
from stromboli.engine.placement.node_functions import BadAnswer, Column, NodeFilter, Nodes, NodeScore, passes
from stromboli.engine.placement.node_program import (
    MAX_OPERATIONS,
    Program,
    RecordedColumn,
    RecordedNodes,
    Recorder,
)
from stromboli.engine.placement.scoring import Part, utilisation
from stromboli.engine.placement.usage_evaluation import UsageEvaluation
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import MAX_NUMBER, Columns
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.nodeorder import plugin as nodeorder
from stromboli.plugins.predicates import plugin as predicates
from stromboli.testing import World
from tests.manifests import group, node, pod, task_named
from tests.properties.strategies import examples

Score = Callable[[Task, Nodes], Column]
NUMBERS = [0, 1, -1, 3, 110, 1000, 32_000, 2**31, 2**40, 2**45 + 1, MAX_NUMBER - 1, 1 - MAX_NUMBER]
TOO_LARGE = [MAX_NUMBER, 2**61, -(2**61)]


def three_resources(task: Task, nodes: Nodes) -> Column:
    """As `balanced_allocation` of a pod with GPUs, whatever the pod asks for."""
    used = nodes.view[3:6] + np.array([[[0], [0], [0]], [[500], [2**30], [1]]])
    return nodeorder._balance(used, nodes.view_allocatable[3:6])[1]


def scarcity(task: Task, nodes: Nodes) -> Column:
    present = nodes.zeros()
    present += np.where(nodes.allocatable[MEMORY] > 0, 3, 0.0)
    suitable = nodes.all()
    suitable &= nodes.allocatable[CPU] != 0
    return np.where(suitable, 1.0 - present / 7, 0.0)


def writes_to_a_part(task: Task, nodes: Nodes) -> Column:
    shares = nodes.idle / 2
    cpu = shares[CPU]
    cpu += 1
    return shares[CPU]


def writes_to_a_whole_that_is_shown_elsewhere(task: Task, nodes: Nodes) -> Column:
    shares = nodes.idle / 2
    cpu = shares[CPU]
    shares += 1
    return cpu


SCORES: dict[str, Score] = {
    "least": nodeorder.least_allocated,
    "most": nodeorder.most_allocated,
    "balanced": nodeorder.balanced_allocation,
    "balanced with GPUs": three_resources,
    "binpack": lambda task, nodes: utilisation(task, nodes, [Part(CPU, 1), Part(MEMORY, 3)]) * 100,
    "spread out": lambda task, nodes: utilisation(task, nodes, [Part(CPU, 2, pack=False)]) * 100,
    "scarcity": scarcity,
    "room": lambda task, nodes: nodes.zeros() + fits_amounts({CPU: 500, MEMORY: 2}, nodes.future_idle),
    "fits": lambda task, nodes: np.where(fits(task, nodes.idle), 5, nodes.idle[CPU] // 7),
    "slots": lambda task, nodes: node_passes(predicates.pod_slots, task, nodes) * 1.5,
    "shares": lambda task, nodes: nodes.used[CPU] / nodes.allocatable[CPU] - nodes.idle[MEMORY] / 3,
    "guarded": lambda task, nodes: np.divide(
        nodes.used[CPU], nodes.allocatable[CPU], out=nodes.zeros(), where=nodes.allocatable[CPU] > 0
    ),
    "clipped": lambda task, nodes: np.clip(nodes.idle[CPU] / 1000 - 2, -0.5, 100.0) ** 2,
    "root": lambda task, nodes: np.sqrt(np.abs(nodes.idle[MEMORY].astype(np.float64))),
    "large": lambda task, nodes: (nodes.idle[CPU] + nodes.idle[MEMORY] + nodes.used[CPU]) / 3,
    "a part that is written to": writes_to_a_part,
    "a whole that is written to": writes_to_a_whole_that_is_shown_elsewhere,
    "negative": lambda task, nodes: -nodes.pipelined[CPU] * (nodes.releasing[CPU] >= 1),
}


def node_passes(checks: Callable[..., Iterable[Any]], task: Task, nodes: Nodes) -> Column:
    return passes(NodeFilter(checks, "test"), task, nodes).later


def world_of(**request: Any) -> tuple[Cluster, Task]:
    world = World().add(group("g"), *(node(f"n{number}", gpu=2) for number in range(4)))
    world.add(pod("p", "g", **request))
    return world.cluster, task_named(world.cluster, "p")


def program_of(columns: Columns, task: Task, score: Score) -> Program | None:
    recorder = Recorder()
    try:
        with np.errstate(all="ignore"):
            return recorder.program([score(task, RecordedNodes(recorder, columns, 0))])
    except Exception:
        return None


class TestPrograms:
    @pytest.mark.parametrize("name", SCORES)
    @given(st.lists(st.sampled_from(NUMBERS), min_size=8, max_size=8), st.randoms(use_true_random=False))
    @example([0] * 8, None)
    @examples(25)
    def test_a_program_says_what_arrays_say(self, name: str, pool: list[int], chance: Any) -> None:
        cluster, task = world_of(cpu="500m", memory="1Gi", gpu=1)
        table = cluster.columns._table
        table[:] = [
            [chance.choice(pool) if chance else 0 for _ in range(table.shape[1])] for _ in range(len(table))
        ]
        program = program_of(cluster.columns, task, SCORES[name])
        assert program is not None
        with np.errstate(all="ignore"):
            expected = np.asarray(SCORES[name](task, Nodes(cluster.columns)))
        for row in range(len(cluster.columns)):
            numbers = cluster.columns.numbers(row)
            assert numbers is not None
            try:
                (said,) = program(numbers, row)
            except ArithmeticError:
                continue  # a division by zero: arrays are asked
            assert said == expected[row]
            assert isinstance(said, int) == np.issubdtype(expected.dtype, np.integer)

    @pytest.mark.parametrize("number", TOO_LARGE)
    def test_nodes_with_numbers_that_may_wrap_around_are_left_to_arrays(self, number: int) -> None:
        cluster, _ = world_of()
        cluster.columns._table[5, 2] = number
        assert cluster.columns.numbers(2) is None
        assert cluster.columns.numbers(1) is not None


def swallows(task: Task, nodes: Nodes) -> Column:
    try:
        return nodes.zeros() + max(nodes.idle[CPU])
    except Exception:
        return nodes.zeros()


def writes_to_numbers(task: Task, nodes: Nodes) -> Column:
    idle = nodes.idle
    idle += 1
    return idle[CPU]


def computes_without_end(task: Task, nodes: Nodes) -> Column:
    total = nodes.zeros()
    for number in range(MAX_OPERATIONS):
        total += nodes.idle[CPU] * float(number)
    return total


UNRECORDABLE: dict[str, Score] = {
    "a branch": lambda task, nodes: nodes.zeros() if nodes.idle[CPU][0] > 3 else nodes.zeros() + 1,
    "a loop": lambda task, nodes: np.array([float(idle) for idle in nodes.idle[CPU]]),
    "a swallowed failure": swallows,
    "an extreme over nodes": lambda task, nodes: nodes.idle[CPU] / nodes.idle[CPU].max(),
    "a column of the cluster": lambda task, nodes: nodes.pick(nodes.columns.idle[CPU]),
    "a value per node": lambda task, nodes: nodes.each(lambda node: len(node.name)),
    "a label": lambda task, nodes: nodes.label("zone")[0],
    "a choice of nodes": lambda task, nodes: nodes.idle[CPU][nodes.idle[CPU] > 0],
    "floor division of floats": lambda task, nodes: nodes.idle[CPU] // 0.3,
    "a logarithm": lambda task, nodes: np.log(nodes.idle[CPU] + 1.0),
    "small floats": lambda task, nodes: nodes.idle[CPU].astype(np.float32),
    "large whole numbers": lambda task, nodes: nodes.idle[CPU] * nodes.idle[MEMORY] // 1000,
    "comparing what may be no number": lambda task, nodes: np.minimum(
        nodes.idle[CPU] / (nodes.used[CPU] / 7), 1
    ),
    "comparing large whole numbers with floats": lambda task, nodes: 1.0 * (nodes.used[MEMORY] * 100 > 0.5),
    "infinity": lambda task, nodes: np.where(nodes.idle[CPU] > 0, np.inf, 0.0),
    "a sum over nodes": lambda task, nodes: nodes.zeros() + (nodes.idle[CPU] > 3).sum(axis=0),
    "the first node": lambda task, nodes: nodes.idle[CPU] / nodes.idle[CPU, :1],
    "nodes in another order": lambda task, nodes: nodes.idle[CPU][::-1],
    "nodes by number": lambda task, nodes: nodes.idle[CPU][[0]],
    "pairs of nodes": lambda task, nodes: (nodes.idle[CPU][:, None] - nodes.idle[CPU])[0],
    "numbers that are written to": writes_to_numbers,
    "very much": computes_without_end,
    "bits": lambda task, nodes: nodes.idle[CPU] & 7,
    "an array of its own": lambda task, nodes: np.zeros(len(nodes)),
}


class TestWhatCannotBeRecorded:
    @pytest.mark.parametrize("name", UNRECORDABLE)
    def test_is_left_to_arrays(self, name: str) -> None:
        cluster, task = world_of()
        assert program_of(cluster.columns, task, UNRECORDABLE[name]) is None


class TestEvaluations:
    """An evaluation with a program refuses what one without refuses, and agrees with it otherwise."""

    @pytest.fixture(params=[1, 10**9], ids=["compiled", "arrays"])
    def evaluation(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[Cluster, Task, Score], UsageEvaluation]:
        monkeypatch.setattr(usage_evaluation, "COMPILED_AFTER", request.param)

        def build(cluster: Cluster, task: Task, score: Score) -> UsageEvaluation:
            scores = [NodeScore(score, plugin="test", reads="usage")]
            made = UsageEvaluation(cluster.columns, task.shape, [], scores, True, None)
            made.start(task)
            self.occupy(cluster, "n0")
            made.catch_up(task)
            assert (made._program is not None) == (request.param == 1)
            return made

        return build

    def occupy(self, cluster: Cluster, name: str) -> None:
        """Another task comes to a node."""
        other = task_named(cluster, f"other-{name}")
        cluster.move(other, Status.ALLOCATED, cluster.nodes[name])

    def cluster(self) -> tuple[Cluster, Task]:
        world = World().add(group("g"), *(node(f"n{number}", cpu=2) for number in range(3)))
        world.add(pod("p", "g", cpu="1"), *(pod(f"other-n{number}", "g", cpu="2") for number in range(3)))
        return world.cluster, task_named(world.cluster, "p")

    def test_nodes_that_changed_are_evaluated_again(
        self, evaluation: Callable[[Cluster, Task, Score], UsageEvaluation]
    ) -> None:
        cluster, task = self.cluster()
        made = evaluation(cluster, task, lambda task, nodes: nodes.idle[CPU] / 8)
        self.occupy(cluster, "n1")
        made.catch_up(task)
        assert made.now.tolist() == [-np.inf, -np.inf, 250.0]
        assert made.scores.tolist() == [0.0, 0.0, 250.0]

    def test_a_list_of_changes_that_nobody_reads_does_not_grow(
        self, evaluation: Callable[[Cluster, Task, Score], UsageEvaluation]
    ) -> None:
        cluster, task = self.cluster()
        made = evaluation(cluster, task, lambda task, nodes: nodes.idle[CPU] / 8)
        made.changed = []
        for _ in range(usage_evaluation.FEW + 1):
            cluster.columns.promise(1, {MEMORY: 1}, 1)
            made.catch_up(task)
        assert made.changed is None

    def test_a_score_that_is_no_number_is_refused(
        self, evaluation: Callable[[Cluster, Task, Score], UsageEvaluation]
    ) -> None:
        cluster, task = self.cluster()
        made = evaluation(cluster, task, lambda task, nodes: nodes.zeros() / (nodes.pipelined[MEMORY] - 1))
        cluster.columns.promise(1, {MEMORY: 1}, 1)
        with np.errstate(all="ignore"), pytest.raises(BadAnswer, match="got nan for n1"):
            made.catch_up(task)

    def test_a_score_beyond_the_bound_is_refused(
        self, evaluation: Callable[[Cluster, Task, Score], UsageEvaluation]
    ) -> None:
        cluster, task = self.cluster()
        made = evaluation(cluster, task, lambda task, nodes: 1e99 * nodes.pipelined[MEMORY])
        cluster.columns.promise(1, {MEMORY: 11}, 1)
        with pytest.raises(BadAnswer, match=r"at most 1e\+100, got 1\.1e\+100 for n1"):
            made.catch_up(task)

    def test_numbers_that_wrap_around_do_so_with_and_without_a_program(
        self, evaluation: Callable[[Cluster, Task, Score], UsageEvaluation]
    ) -> None:
        cluster, task = self.cluster()
        made = evaluation(cluster, task, lambda task, nodes: nodes.pipelined[MEMORY] * 1000)
        cluster.columns.promise(1, {MEMORY: 2**61}, 1)
        made.catch_up(task)
        assert made.scores.tolist() == [0.0, 0.0, 0.0]


class TestCompiling:
    """A program is used only where it says of the first nodes what arrays said of them."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(usage_evaluation, "COMPILED_AFTER", 1)

    def is_compiled(self, score: Score) -> bool:
        cluster, task = world_of()
        scores = [NodeScore(score, plugin="test", reads="usage")]
        made = UsageEvaluation(cluster.columns, task.shape, [], scores, True, None)
        with np.errstate(all="ignore"):
            made.start(task)
            cluster.columns.promise(3, {MEMORY: 1}, 1)
            made.catch_up(task)
        return made._program is not None

    def test_a_score_of_each_node_by_itself_is_compiled(self) -> None:
        assert self.is_compiled(lambda task, nodes: nodes.idle[CPU] / 8)

    def test_nodes_that_divide_by_zero_do_not_keep_others_from_it(self) -> None:
        def guarded(task: Task, nodes: Nodes) -> Column:
            share = nodes.idle[CPU] / nodes.pipelined[MEMORY]
            return np.where(nodes.pipelined[MEMORY] > 0, share + share, 0.0)

        assert self.is_compiled(guarded)

    def test_a_score_that_depends_on_how_many_nodes_there_are_is_not(self) -> None:
        assert not self.is_compiled(lambda task, nodes: nodes.idle[CPU] / len(nodes))

    def test_a_score_that_differs_in_each_call_is_not(self) -> None:
        draw = np.random.default_rng(7)
        assert not self.is_compiled(lambda task, nodes: nodes.idle[CPU] * draw.random())

    def test_a_score_that_looks_at_the_type_of_columns_is_not(self) -> None:
        assert not self.is_compiled(
            lambda task, nodes: nodes.zeros() + isinstance(nodes.idle, np.ndarray) * 1.0
        )

    def test_a_score_that_cannot_be_recorded_is_not_and_an_unexpected_error_is_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def expects_an_array(task: Task, nodes: Nodes) -> Column:
            if isinstance(nodes.idle, RecordedColumn):
                raise TypeError("an array is expected")
            return nodes.idle[CPU] / 8

        def branches(task: Task, nodes: Nodes) -> Column:
            return nodes.zeros() if nodes.idle[CPU][0] > 3 else nodes.zeros() + 1

        caplog.set_level(logging.DEBUG, logger="stromboli")
        assert not self.is_compiled(branches)
        assert caplog.messages == []
        assert not self.is_compiled(expects_an_array)
        assert ["cannot be compiled" in message for message in caplog.messages] == [True]
        assert caplog.records[0].exc_info is not None


class TestAuthors:
    """A node function sees numbers in every call, and prints or branches on them as on those of arrays."""

    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(usage_evaluation, "COMPILED_AFTER", 1)

    def seen_by(self, look: Callable[[Any], Any]) -> list[Any]:
        """What a score sees of the free CPU of a node that changes twice; the second call is recorded."""
        cluster, task = world_of()
        seen: list[Any] = []

        def score(task: Task, nodes: Nodes) -> Column:
            seen.append(look(nodes.idle[CPU]))
            return nodes.idle[CPU] / 8

        made = UsageEvaluation(
            cluster.columns, task.shape, [], [NodeScore(score, "test", "usage")], True, None
        )
        made.start(task)
        seen.clear()
        for _ in range(2):
            cluster.columns.promise(3, {MEMORY: 1}, 1)
            made.catch_up(task)
        return seen

    @pytest.mark.parametrize(
        "look", [str, repr, "{}".format, lambda column: bool(column[0] > 3), max, list, np.array]
    )
    def test_a_score_that_looks_at_numbers_sees_them_in_every_call(self, look: Callable[[Any], Any]) -> None:
        assert self.seen_by(look) == [look(np.array([4000]))] * 3

    def test_the_recorded_call_shows_numbers(self) -> None:
        cluster, task = world_of()
        shown: list[str] = []

        def score(task: Task, nodes: Nodes) -> Column:
            result = nodes.zeros() + nodes.idle[CPU] / 8
            shown.append(f"{type(nodes.idle).__name__} {nodes.idle[CPU]} {result}")
            return result

        assert program_of(cluster.columns, task, score) is None
        assert shown == ["RecordedColumn [4000] [500.]"]

    def test_operations_with_two_results_work(self) -> None:
        cluster, _ = world_of()
        nodes: Any = RecordedNodes(Recorder(), cluster.columns, 0)
        quotient, rest = divmod(nodes.idle[CPU], 3000)
        assert (quotient.tolist(), rest.tolist()) == ([1], [1000])

    def test_numbers_of_nodes_cannot_be_written_to(self) -> None:
        cluster, _ = world_of()
        nodes: Any = RecordedNodes(Recorder(), cluster.columns, 0)
        with pytest.raises(ValueError, match="read-only"):
            nodes.idle += 1
        with pytest.raises(ValueError, match="read-only"):
            nodes.idle[CPU] = 1
