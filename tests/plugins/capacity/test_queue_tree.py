"""capacity with a hierarchy: the numbers of the tree, worked out by hand, and trees that are broken (spec 03 8.1)."""

from itertools import pairwise

import pytest

from stromboli.engine.queue_limits import InqueueResources
from stromboli.model.amounts import UNLIMITED
from stromboli.model.dimensions import CPU, MEMORY, PODS, Dimensions
from stromboli.model.queue import Queue
from stromboli.plugins.capacity.queue_tree import QueueTree, queue_hierarchy
from tests.plugins.capacity.policies import queue

GPU = 3
TOTAL = {CPU: 10_000, MEMORY: 100, PODS: 50}


def grown(*queues: Queue, total: dict[int, float] | None = None) -> QueueTree:
    """The tree of these queues, below a root without limits unless one is given."""
    known = {queue.name: queue for queue in queues}
    tree = queue_hierarchy([known.setdefault("root", queue("root")), *queues], total or TOTAL)
    tree.sum_up(InqueueResources())
    return tree


def test_the_root_is_endless_in_all_that_any_node_has() -> None:
    root = queue("root")
    assert grown(root).of(root).limit == dict.fromkeys((CPU, MEMORY, PODS), UNLIMITED)


def test_a_root_that_limits_only_something_else_leaves_no_cpu_and_memory() -> None:
    root, leaf = queue("root", capability={GPU: 2_000}), queue("leaf")
    assert grown(root, leaf).of(leaf).limit == {CPU: 0, MEMORY: 0, GPU: 2_000}


def test_a_child_may_have_what_its_parent_may_less_what_is_guaranteed_to_its_siblings() -> None:
    top = queue("top", capability={CPU: 8_000})
    queue_one = queue("one", "top", guarantee={CPU: 1_000})
    queue_two = queue("two", "top", guarantee={CPU: 3_000}, capability={CPU: 6_000, MEMORY: 40})
    below = queue("below", "one")
    tree = grown(top, queue_one, queue_two, below)
    assert tree.of(top).limit == {CPU: 8_000, MEMORY: UNLIMITED, PODS: UNLIMITED}
    assert tree.of(queue_one).limit[CPU] == 5_000  # 8 - (1 + 3) + 1
    assert tree.of(queue_two).limit == {CPU: 6_000, MEMORY: 40, PODS: UNLIMITED}  # 8 - 4 + 3 = 7, at most 6
    assert tree.of(below).limit[CPU] == 5_000


def test_limits_that_a_child_does_not_set_come_from_its_parent() -> None:
    top = queue("top", capability={CPU: 4_000, GPU: 1_000})
    leaf = queue("leaf", "top", capability={CPU: 0, MEMORY: 7})
    tree = grown(top, leaf, total={**TOTAL, GPU: 9_000})
    assert tree.of(leaf).limit == {CPU: 4_000, MEMORY: 7, PODS: UNLIMITED, GPU: 1_000}


def test_a_resource_that_no_node_has_is_out_of_reach_even_where_a_limit_names_it() -> None:
    leaf = queue("leaf", capability={GPU: 1_000})
    assert GPU not in grown(leaf).of(leaf).limit


def test_deserved_is_raised_to_the_guarantee_and_not_held_down_to_the_limit() -> None:
    leaf = queue("leaf", deserved={CPU: 99_000}, capability={CPU: 1_000}, guarantee={MEMORY: 5})
    assert grown(leaf).of(leaf).deserved == {CPU: 99_000, MEMORY: 5}


def test_the_root_deserves_what_its_children_deserve_together() -> None:
    root = queue("root", deserved={CPU: 1})
    tree = grown(root, queue("a", deserved={CPU: 1_000}), queue("b", guarantee={CPU: 2_000}))
    assert tree.of(root).deserved == {CPU: 3_000}
    assert tree.of(root).guarantee == {CPU: 2_000}


def test_a_queue_holds_what_is_held_at_and_below_it() -> None:
    root, top = queue("root"), queue("top", held={CPU: 1})
    tree = grown(root, top, queue("a", "top", held={CPU: 10}), queue("b", "top", held={CPU: 100, GPU: 1}))
    assert tree.of(top).held == {CPU: 111, GPU: 1}
    assert tree.of(root).held == {CPU: 111, GPU: 1}


# -- what does not lead to the root


def texts(tree: QueueTree) -> dict[Queue, str]:
    """Why queues take no jobs."""
    return {queue: fault.text for queue, fault in tree.detached.items()}


def test_a_queue_without_its_parent_is_out_with_its_children_alone() -> None:
    lost, kid, fine = queue("lost", "nowhere"), queue("kid", "lost"), queue("fine")
    tree = grown(lost, kid, fine)
    assert (tree.of(lost), tree.of(kid)) == (None, None)
    assert tree.of(fine) is not None
    why = 'the parent of queue "lost" does not exist: create "nowhere" or change spec.parent of "lost"'
    assert texts(tree) == {lost: why, kid: f'queue "kid" is cut off from the root: {why}'}


def test_a_cycle_is_out_with_all_queues_below_it_alone() -> None:
    a, b, c = queue("a", "c"), queue("b", "a"), queue("c", "b")
    kid, grandkid, self_made, fine = queue("0", "b"), queue("00", "0"), queue("me", "me"), queue("fine")
    tree = grown(a, b, c, kid, grandkid, self_made, fine)
    assert set(tree.detached) == {a, b, c, kid, grandkid, self_made}
    assert tree.of(fine) is not None
    assert ": a -> c -> b -> a;" in texts(tree)[a]
    assert ": me -> me;" in texts(tree)[self_made]
    assert texts(tree)[grandkid].startswith(
        'queue "00" is cut off from the root: the parents of queue "b" form'
    )


def test_without_a_root_the_tree_is_empty() -> None:
    leaf = queue("leaf")
    assert queue_hierarchy([leaf], TOTAL).detached.keys() == {leaf}


def test_a_parent_that_is_only_a_name_does_not_exist() -> None:
    leaf = queue("leaf", "ghost")
    assert leaf in grown(Queue("ghost"), leaf).detached


def test_queues_that_lie_too_deep_are_out_and_those_above_them_stay() -> None:
    names = ["root", *(f"q{depth:04}" for depth in range(2000))]
    chain = [queue(name, parent) for parent, name in pairwise(names)]
    tree = grown(*chain)
    assert len(tree.of(chain[63]).ancestors) == 64
    assert tree.of(chain[64]) is None
    why = 'queue "q0064" lies more than 64 levels below the root: set its spec.parent to a queue further up'
    assert texts(tree)[chain[64]] == why
    assert texts(tree)[chain[-1]] == f'queue "q1999" is cut off from the root: {why}'


def test_a_long_cycle_is_reported_in_a_few_words() -> None:
    names = [f"q{at}" for at in range(2000)]
    loop = [queue(name, parent) for parent, name in pairwise([*names, names[0]])]
    tree = grown(*loop)
    assert len(tree.detached) == 2000
    assert max(map(len, texts(tree).values())) < 250


# -- what does not fit


@pytest.mark.parametrize(
    ("queues", "text"),
    [
        (
            [queue("q", guarantee={CPU: 4_000}, capability={CPU: 2_000})],
            'queue "q": its guarantee of cpu 4 exceeds its capability of 2; lower the former or raise the latter',
        ),
        (
            [queue("top", capability={CPU: 2_000}), queue("q", "top", capability={CPU: 4_000})],
            'queue "q": its capability of cpu 4 exceeds that of its parent "top" of 2; lower the '
            "former or raise the latter",
        ),
        (
            [queue("top", deserved={CPU: 2_000}), *(queue(name, "top", deserved={CPU: 1_500}) for name in "ab")],
            'queue "top": its children\'s deserved together of cpu 3 exceeds its own deserved of 2; '
            "lower the former or raise the latter",
        ),
        (
            [queue("top", guarantee={CPU: 2_000}), *(queue(name, "top", guarantee={CPU: 1_500}) for name in "ab")],
            'queue "top": its children\'s guarantee together of cpu 3 exceeds its own guarantee of 2; '
            "lower the former or raise the latter",
        ),
    ],
)  # fmt: skip
def test_shares_that_do_not_fit_into_each_other_are_said_and_nothing_else(
    queues: list[Queue], text: str
) -> None:
    tree = grown(*queues)
    assert [warning.text(Dimensions()) for warning in tree.warnings] == [text]
    assert not tree.detached


def test_what_the_parent_does_not_mention_is_nothing_odd() -> None:
    assert grown(queue("top"), queue("q", "top", deserved={CPU: 1}, guarantee={CPU: 1})).warnings == []
