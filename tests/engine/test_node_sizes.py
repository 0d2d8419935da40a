"""Whether pods of several shapes fit on empty nodes together."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np

from stromboli.engine.node_sizes import Kind, cannot_fit


def kinds_of(pods: list[tuple[int, ...]], nodes: list[tuple[int, ...]]) -> list[Kind]:
    """Each request once, with the nodes that are large enough for it."""
    return [
        Kind(
            pods.count(request),
            dict(enumerate(request)),
            np.array(
                [all(size >= amount for size, amount in zip(node, request, strict=True)) for node in nodes]
            ),
        )
        for request in dict.fromkeys(pods)
    ]


def is_refused(pods: list[tuple[int, ...]], nodes: list[tuple[int, ...]]) -> bool:
    return cannot_fit(kinds_of(pods, nodes), np.array(nodes, dtype=np.int64).T)


def test_pieces_that_do_not_fit_are_refused_although_their_sum_does() -> None:
    assert is_refused([(3,), (3,), (2,)], [(4,), (4,)])
    assert not is_refused([(3,), (3,), (1,), (1,)], [(4,), (4,)])


def test_a_kind_that_is_placed_best_on_the_last_nodes_is_not_refused() -> None:
    """The first nodes are the only ones for the second kind."""
    pods = [(2, 0)] * 2 + [(1, 1)] * 2
    assert not is_refused(pods, [(2, 2), (2, 0), (2, 0)])


def test_the_answer_is_that_of_all_ways_to_place_the_pods() -> None:
    random = Random(1)
    refused = 0
    for _ in range(300):
        nodes = [(random.randint(1, 4), random.randint(0, 3)) for _ in range(random.randint(1, 3))]
        pods = [(random.randint(1, 3), random.randint(0, 2)) for _ in range(random.randint(1, 5))]
        expected = not any(
            fit(pods, nodes, places) for places in product(range(len(nodes)), repeat=len(pods))
        )
        assert is_refused(pods, nodes) == expected, (pods, nodes)
        refused += expected
    assert 50 < refused < 250


def fit(pods: list[tuple[int, ...]], nodes: list[tuple[int, ...]], places: tuple[int, ...]) -> bool:
    left = [list(node) for node in nodes]
    for request, place in zip(pods, places, strict=True):
        left[place] = [free - amount for free, amount in zip(left[place], request, strict=True)]
    return all(free >= 0 for node in left for free in node)


def test_a_search_that_takes_too_long_refuses_nothing() -> None:
    nodes = [(100 + index,) for index in range(15)]
    pods = [(51 + index % 5,) for index in range(16)]
    assert not is_refused(pods, nodes)
