"""The vote on victims with `fewestVictims`: as many candidates as the plugins of one tier allow together.

Plugins that allow so many per gang or budget name the first ones they see, and together they may miss a candidate that
all of them would allow. So candidates are added one at a time, each if all allow it beside those before it. Where every
plugin of a tier votes in turn (`points.in_turn`) it is asked once about all candidates, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.attribution import plugin_of
from stromboli.engine.points import Choice, answers, tier_intersection, votes_in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.engine.attribution import Method
    from stromboli.engine.rules import Rules
    from stromboli.model.task import Task


class VictimVotes:
    """The vote of each tier at a victim point; the first tier that allows any candidate decides."""

    def __init__(self, rules: Rules, point: str):
        self._tiers = [
            (number, TierVote(methods)) for number, methods in rules.methods_by_tier(point) if methods
        ]

    def choose(self, task: Task, candidates: list[Task], last_tier: int | None = None) -> Choice:
        """The candidates that may go for a task, in their order; tiers after the last one are not asked."""
        for number, vote in self._tiers:
            if last_tier is not None and number > last_tier:
                break
            choice = vote.choose(task, candidates)
            if choice.victims:
                return choice._replace(tier=number)
        return Choice([])


class TierVote:
    """The vote of the plugins of one tier."""

    def __init__(self, methods: Sequence[Method]):
        self._methods = methods
        self._all_vote_in_turn = all(map(votes_in_turn, methods))
        self._vote = tier_intersection([methods])

    def choose(self, task: Task, candidates: list[Task]) -> Choice:
        """The candidates that all of these plugins allow together."""
        choice = self._all_at_once(task, candidates) if self._all_vote_in_turn else None
        return choice if choice is not None else self._one_at_a_time(task, candidates)

    def _all_at_once(self, task: Task, candidates: list[Task]) -> Choice | None:
        """The answer of the first plugin that spares any, if those after it allow all of it.

        None if they do not: in the place of a candidate that they spare, the first might name another.
        """
        left, voters, narrowed = candidates, [], False
        for method in self._methods:
            answer = next(answers((method,), (task, left)))
            if answer is None:
                continue
            voters.append(plugin_of(method))
            named = set(answer)
            kept = [candidate for candidate in left if candidate in named]
            if narrowed and len(kept) < len(left):
                return None
            narrowed = narrowed or len(kept) < len(left)
            left = kept
            if not left:
                break
        return Choice(left if voters else [], plugins=tuple(voters))

    def _one_at_a_time(self, task: Task, candidates: list[Task]) -> Choice:
        best = Choice([])
        for candidate in candidates:
            choice: Choice = self._vote(task, [*best.victims, candidate])
            if len(choice.victims) > len(best.victims):
                best = choice
        return best
