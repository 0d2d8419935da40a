"""Questions are answered between cycles, of the cluster as the last cycle left it, and cost the cycles little."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from stromboli.engine.cycle import Outcome
from stromboli.scheduler.explain import explanations
from stromboli.scheduler.explain.decision_history import DecisionHistory
from stromboli.scheduler.explain.explain_paths import Question
from stromboli.scheduler.explain.explanations import MAX_QUESTIONS, Explanations, TooManyQuestions
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.object_answers import ObjectAnswers
from stromboli.scheduler.thread_seam import ThreadSeam, Unavailable
from tests.manifests import group, node, pod, queue
from tests.properties.living import LivingWorld, engine

TRAIN = Question("podgroups", "default", "train")
DEFAULT = Question("queues", "", "default")


def waiting_world() -> LivingWorld:
    objects = [queue(), node("n1"), group("train", 2), *(pod(f"train-{n}", "train", cpu=8) for n in (0, 1))]
    return LivingWorld(objects, lambda: engine("gang, predicates", actions="enqueue, allocate"))


class Story:
    """A seam, and a thread in place of the cycle that a test controls."""

    def __init__(self) -> None:
        self.seam = ThreadSeam()
        self.unchanged = True
        self.threads: list[str] = []
        answers = ObjectAnswers(DecisionHistory())
        self.asked: list[Question] = []

        class Noting(ObjectAnswers):
            def of(inner, question: Question, outcome: Outcome) -> LeaderAnswer:
                self.threads.append(threading.current_thread().name)
                self.asked.append(question)
                return answers.of(question, outcome)

        self.explanations = Explanations(self.seam, Noting(DecisionHistory()), lambda: self.unchanged)

    async def calls_arrived(self) -> None:
        """Wait until the cycle's thread is called."""
        async with asyncio.timeout(60):
            while not self.seam.changes.arrived.is_set():
                await asyncio.sleep(0)

    def in_thread(self, work: Callable[[], object]) -> asyncio.Future[Any]:
        def run() -> None:
            threading.current_thread().name = "cycles"
            work()

        return asyncio.get_running_loop().run_in_executor(None, run)


def test_a_question_is_answered_at_once_if_nothing_has_changed_since_the_cycle() -> None:
    async def scenario() -> LeaderAnswer:
        story = Story()
        story.explanations.cycle_ended(waiting_world().cycle())
        asking = asyncio.create_task(story.explanations.answer(DEFAULT))
        await story.calls_arrived()
        await story.in_thread(story.seam.run_calls)
        answer = await asking
        assert story.threads == ["cycles"]
        return answer

    assert asyncio.run(scenario()).known


def test_a_job_that_waits_is_tried_once_more_for_the_answer() -> None:
    async def scenario() -> LeaderAnswer:
        story, world = Story(), waiting_world()
        for _ in range(3):
            story.explanations.cycle_ended(world.step())
        assert world.cycle().repeated
        asking = asyncio.create_task(story.explanations.answer(TRAIN))
        await story.calls_arrived()
        await story.in_thread(story.seam.run_calls)
        assert story.explanations.is_postponed
        outcome = world.cycle()
        assert not outcome.repeated
        await story.in_thread(lambda: story.explanations.cycle_ended(outcome))
        return await asking

    answer = asyncio.run(scenario())
    assert answer.explanation is not None
    assert answer.explanation.gate == "nodes"


def test_a_question_during_a_cycle_is_answered_after_it() -> None:
    async def scenario() -> None:
        story, world = Story(), waiting_world()
        cycling = threading.Event()
        running = story.in_thread(lambda: cycling.wait(20))
        asking = asyncio.create_task(story.explanations.answer(TRAIN))
        await story.calls_arrived()
        assert not story.asked
        cycling.set()
        await running

        def next_round() -> None:
            story.seam.run_calls()
            story.explanations.cycle_ended(world.cycle())

        await story.in_thread(next_round)
        assert (await asking).known

    asyncio.run(scenario())


def test_after_a_change_the_next_cycle_is_waited_for() -> None:
    async def scenario() -> None:
        story, world = Story(), waiting_world()
        story.explanations.cycle_ended(world.cycle())
        story.unchanged = False
        asking = asyncio.create_task(story.explanations.answer(TRAIN))
        await story.calls_arrived()
        await story.in_thread(story.seam.run_calls)
        await asyncio.sleep(0.05)
        assert not asking.done()
        assert story.explanations.is_postponed
        world.put(node("n2", cpu=16))
        outcome = world.cycle()
        await story.in_thread(lambda: story.explanations.cycle_ended(outcome))
        answer = await asking
        assert answer.explanation is None, "with the new node it starts"
        assert not story.explanations.is_postponed

    asyncio.run(scenario())


def test_a_question_that_waits_too_long_fails_and_costs_nothing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(explanations, "ANSWER_TIMEOUT", 0.05)

    async def scenario() -> None:
        story = Story()
        story.explanations.cycle_ended(waiting_world().cycle())
        with pytest.raises(Unavailable, match="no answer within"):
            await story.explanations.answer(TRAIN)
        await story.in_thread(story.seam.run_calls)
        assert not story.asked

    asyncio.run(scenario())


def test_too_many_questions_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "ANSWER_TIMEOUT", 0.2)

    async def scenario() -> list[type[BaseException]]:
        story = Story()
        asked = [story.explanations.answer(TRAIN) for _ in range(MAX_QUESTIONS + 3)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        return [type(result) for result in results if isinstance(result, BaseException)]

    refused = asyncio.run(scenario())
    assert refused.count(TooManyQuestions) == 3
    assert refused.count(Unavailable) == MAX_QUESTIONS


def test_answers_that_take_long_leave_the_cycles_most_of_the_time() -> None:
    async def scenario() -> float:
        story = Story()
        slow = 0.02
        compute = story.explanations._answers.of

        def slowly(question: Question, outcome: Outcome) -> LeaderAnswer:
            time.sleep(slow)
            return compute(question, outcome)

        story.explanations._answers.of = slowly  # type: ignore[method-assign]
        story.explanations.cycle_ended(waiting_world().cycle())
        stopped = threading.Event()

        def serve() -> None:
            while not stopped.wait(0.001):
                story.seam.run_calls()

        serving = story.in_thread(serve)
        begin = time.monotonic()
        for _ in range(4):
            await story.explanations.answer(DEFAULT)
        seconds = time.monotonic() - begin
        stopped.set()
        await serving
        return seconds

    assert asyncio.run(scenario()) >= 3 * 4 * 0.02


def test_a_failure_is_raised_to_the_caller_and_not_in_the_cycle() -> None:
    async def scenario() -> None:
        story = Story()

        def fail(question: Question, outcome: Outcome) -> LeaderAnswer:
            raise ZeroDivisionError

        story.explanations._answers.of = fail  # type: ignore[method-assign]
        story.explanations.cycle_ended(waiting_world().cycle())
        asking = asyncio.create_task(story.explanations.answer(DEFAULT))
        await story.calls_arrived()
        await story.in_thread(story.seam.run_calls)
        with pytest.raises(ZeroDivisionError):
            await asking

    with suppress(asyncio.CancelledError):
        asyncio.run(scenario())
