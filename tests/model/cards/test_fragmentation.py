"""Fragmentation in columns equals the definition of the paper for each node, to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.model.cards.fragmentation import (
    MAX_LISTED_TASKS,
    MAX_TYPICAL_TASKS,
    Fragmentation,
    NodeFragmentation,
    TypicalTask,
    most_frequent,
)
from stromboli.model.cards.gpu_columns import ANY_MODEL, GpuColumns, GpuModels
from stromboli.model.cluster import Cluster
from stromboli.model.lookup_objects import LookupObjects
from tests.plugins.gpu_packing.textbook_packing import Shape, fragmentation

MODELS = ("A10", "T4")
SHARES = st.sampled_from([0, 50, 460, 540, 1000])
NODES = st.lists(
    st.tuples(st.integers(0, 64_000), st.lists(SHARES, min_size=3, max_size=3), st.sampled_from(MODELS)),
    min_size=1,
    max_size=6,
)
TASKS = st.dictionaries(
    st.builds(
        lambda cpu, gpus, share, models: TypicalTask(
            cpu, share if gpus else 0, gpus, GpuModels(models if gpus else ())
        ),
        st.integers(0, 64).map(lambda cpus: 1000 * cpus),
        st.integers(0, 3),
        st.sampled_from([50, 460, 540, 1000]),
        st.sampled_from([(), ("A10",), MODELS]),
    ),
    st.integers(1, 1000),
    min_size=1,
    max_size=12,
)


@given(NODES, TASKS)
@example([(64_000, [1000, 0, 460], "T4")], {TypicalTask(1000, 460, 1): 3, TypicalTask(500): 1})
def test_a_column_of_nodes_is_as_fragmented_as_each_of_them(
    nodes: list[tuple[int, list[int], str]], counts: dict[TypicalTask, int]
) -> None:
    typical = most_frequent(counts)
    shapes = [
        (Shape(task.cpu, task.share, task.gpus, "|".join(task.models.models)), weight)
        for task, weight in typical
    ]
    allowed = [[task.models.allow(model, "") for _, _, model in nodes] for task, _ in typical if task.gpus]
    column = Fragmentation(typical).of(
        np.array([cpu for cpu, _, _ in nodes]),
        np.array([free for _, free, _ in nodes]),
        np.array(allowed, dtype=bool).reshape(len(allowed), len(nodes)),
    )
    assert column.tolist() == [fragmentation(cpu, free, model, shapes) for cpu, free, model in nodes]


@given(NODES, TASKS)
@example([(64_000, [1000, 0, 460], "T4"), (2000, [460, 1000, 0], "T4")], {TypicalTask(1000, 460, 1): 3})
def test_a_state_that_was_met_before_is_as_fragmented_as_it_is_anew(
    nodes: list[tuple[int, list[int], str]], counts: dict[TypicalTask, int]
) -> None:
    typical = most_frequent({task._replace(models=ANY_MODEL): count for task, count in counts.items()})
    rows = np.arange(len(nodes))
    cpu = np.array([cpu for cpu, _, _ in nodes])
    free = np.array([free for _, free, _ in nodes])
    remembering = NodeFragmentation(GpuColumns(Cluster(LookupObjects())), typical)
    remembering.of(rows, cpu, free[:, ::-1])
    expected = Fragmentation(typical).of(cpu, free)
    assert remembering.of(rows, cpu, free).tolist() == expected.tolist()


def test_the_most_frequent_tasks_cover_a_fraction_and_the_larger_of_equals_is_first() -> None:
    small, large, rare = TypicalTask(1000, 1000, 1), TypicalTask(2000, 1000, 1), TypicalTask(9000)
    chosen = most_frequent({small: 48, large: 48, rare: 4}, 0.95)
    assert [(task, round(weight, 6)) for task, weight in chosen] == [(large, 0.5), (small, 0.5)]
    assert most_frequent({}) == ()


def test_no_more_tasks_are_typical_than_can_be_counted_quickly() -> None:
    counts = {TypicalTask(cpu): 1 for cpu in range(2000)}
    assert len(most_frequent(counts)) == MAX_LISTED_TASKS
    assert len(most_frequent(counts, most=MAX_TYPICAL_TASKS)) == MAX_TYPICAL_TASKS
