"""Scores in proportion to the highest candidate, whichever nodes were candidates before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.placement.scoring import InProportion
from tests.properties.strategies import examples

NOBODY: Any = None
COLUMNS = st.lists(st.integers(-3, 9), min_size=4, max_size=4)
CANDIDATES = st.lists(st.booleans(), min_size=4, max_size=4)


def by_loop(raw: list[int], candidates: list[bool], reverse: bool) -> list[int]:
    most = max([0, *(score for score, is_candidate in zip(raw, candidates, strict=True) if is_candidate)])
    scaled = [score * 100 // most for score in raw] if most else raw
    return [100 - score for score in scaled] if reverse else scaled


class TestInProportion:
    @pytest.mark.parametrize("reverse", [False, True])
    @given(st.lists(st.tuples(COLUMNS, st.lists(CANDIDATES, min_size=1, max_size=4)), max_size=3))
    @examples(50)
    def test_scores_do_not_depend_on_earlier_calls(
        self, reverse: bool, calls: list[tuple[list[int], list[list[bool]]]]
    ) -> None:
        finish = InProportion(reverse)
        for scores, groups in calls:
            raw = np.array(scores, dtype=np.float64)
            for candidates in groups:
                final = finish(NOBODY, NOBODY, raw, np.array(candidates))
                assert final.tolist() == by_loop(scores, candidates, reverse)
