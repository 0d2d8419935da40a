"""What the leader told viewers: how often it is asked, what is kept, and what happens when another one leads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from stromboli.cli.dashboard import leader_answers
from stromboli.cli.dashboard.leader_answers import (
    CYCLES_SECONDS,
    MOST_ASKING_VIEWERS,
    MOST_KEPT_CYCLES,
    UNREACHABLE_SECONDS,
    LeaderAnswers,
)
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.leader.leader_query import Unreachable
from stromboli.scheduler.explain.cycle_documents import CycleEntry, CycleList
from stromboli.scheduler.explain.policy_document import PolicyDocument
from tests.cli.dashboard.telling_leader import TellingLeader


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def decided(*numbers: int) -> list[CycleEntry]:
    return [CycleEntry(number, 100.0 + number, last_number=number) for number in numbers]


def idle(first: int, last: int) -> CycleEntry:
    return CycleEntry(first, 100.0 + first, "idle", last, 100.0 + last, last - first + 1)


def numbers(answer: CycleList | Unreachable) -> list[tuple[int, int]]:
    assert isinstance(answer, CycleList), answer
    return [(entry.number, entry.last_number) for entry in answer.cycles]


def test_the_leader_is_asked_for_what_is_new_and_once_for_pages_of_the_same_second():
    leader, clock = TellingLeader(decided(1, 2)), Clock()

    async def story(viewers: Sequence[Viewer]) -> None:
        answers = LeaderAnswers(clock)
        await asyncio.gather(*(answers.cycles(viewers[0]) for _ in range(5)))
        assert leader.asked == ["/explain/cycles"]
        leader.entries += decided(3)
        assert numbers(await answers.cycles(viewers[0])) == [(1, 1), (2, 2)]
        clock.now += CYCLES_SECONDS
        assert numbers(await answers.cycles(viewers[0])) == [(1, 1), (2, 2), (3, 3)]
        assert leader.asked == ["/explain/cycles", "/explain/cycles?after=2"]

    leader.run(story)


def test_a_run_that_has_become_longer_takes_its_own_place_and_forgotten_cycles_go():
    leader, clock = TellingLeader([*decided(1), idle(2, 4)]), Clock()

    async def story(viewers: Sequence[Viewer]) -> None:
        answers = LeaderAnswers(clock)
        await answers.cycles(viewers[0])
        leader.entries, leader.oldest = [idle(2, 9), *decided(10)], 2
        clock.now += CYCLES_SECONDS
        assert numbers(await answers.cycles(viewers[0])) == [(2, 9), (10, 10)]

    leader.run(story)


@pytest.mark.parametrize("newest", [2, 40])
def test_cycles_of_another_leader_take_the_place_of_those_of_the_last(newest: int):
    leader, clock = TellingLeader(decided(1, 2, 3)), Clock()

    async def story(viewers: Sequence[Viewer]) -> None:
        answers = LeaderAnswers(clock)
        await answers.cycles(viewers[0])
        leader.entries, leader.since = [*decided(1), idle(2, newest)], 200.0
        clock.now += CYCLES_SECONDS
        assert numbers(await answers.cycles(viewers[0])) == [(1, 1), (2, newest)]

    leader.run(story)


def test_each_viewer_is_answered_by_his_own_rights_and_a_refused_one_asks_less_often():
    leader, clock = TellingLeader(decided(1)), Clock()

    async def story(viewers: Sequence[Viewer]) -> None:
        ann, bob = viewers
        answers = LeaderAnswers(clock)
        assert isinstance(await answers.cycles(ann), CycleList)
        leader.refusal = 'users "bob" is forbidden: list pods: unknown to the scheduler'
        assert isinstance(await answers.cycles(bob), Unreachable)
        leader.refusal = ""
        clock.now += UNREACHABLE_SECONDS / 2
        assert isinstance(await answers.cycles(bob), Unreachable)
        clock.now += UNREACHABLE_SECONDS / 2
        assert isinstance(await answers.cycles(bob), CycleList)

    leader.run(story, "ann", "bob")


def test_a_leader_that_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leader_answers, "ANSWER_TIMEOUT", 0.05)
    leader = TellingLeader(decided(1), delay=0.4)

    async def story(viewers: Sequence[Viewer]) -> CycleList | Unreachable:
        return await LeaderAnswers().cycles(viewers[0])

    answer = leader.run(story)
    assert isinstance(answer, Unreachable)
    assert "has not answered" in answer.why


def test_answers_are_kept_for_so_many_viewers_and_of_so_many_cycles():
    leader = TellingLeader(decided(*range(1, MOST_KEPT_CYCLES + 11)))
    people = [f"viewer-{number}" for number in range(MOST_ASKING_VIEWERS + 3)]

    async def story(viewers: Sequence[Viewer]) -> None:
        answers = LeaderAnswers()
        for viewer in viewers:
            kept = await answers.cycles(viewer)
        assert len(numbers(kept)) == MOST_KEPT_CYCLES
        assert numbers(kept)[-1] == (MOST_KEPT_CYCLES + 10, MOST_KEPT_CYCLES + 10)
        assert len(answers) == MOST_ASKING_VIEWERS

    leader.run(story, *people)


def test_the_policy_is_asked_for_now_and_then():
    leader = TellingLeader(policy=PolicyDocument("policy.conf", 100.0, "sha256:0"))

    async def story(viewers: Sequence[Viewer]) -> None:
        answers = LeaderAnswers(Clock())
        for _ in range(3):
            told = await answers.policy(viewers[0])
        assert isinstance(told, PolicyDocument)
        assert told.source == "policy.conf"
        assert leader.asked == ["/explain/policy"]

    leader.run(story)
