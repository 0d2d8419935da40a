"""Answers questions about objects between two cycles: before the cluster changes, or after the next cycle.

The results of a cycle describe the cluster as that cycle left it. A question is answered at once if nothing has changed
since, and otherwise at the end of the next cycle, which starts soon. A question about a waiting job always waits for a
cycle: that cycle tries the job even if it would skip it otherwise, so the answer follows from the objects alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from stromboli.scheduler.explain.object_answers import ObjectAnswers
from stromboli.scheduler.thread_seam import ThreadSeam, Unavailable

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.scheduler.explain.explain_paths import Question
    from stromboli.scheduler.explain.leader_answer import LeaderAnswer

ANSWER_TIMEOUT = 10.0
"""Seconds within which the cycle's thread has to answer a question."""
MAX_QUESTIONS = 16
"""Questions that wait at the same time; further ones are rejected."""
REST_FACTOR = 4.0
"""The pause after an answer, as a multiple of the time that the answer took with its cycle."""
MAX_REST = 5.0
"""Seconds of the longest such pause."""


QUESTION_PATIENCE = 0.01
"""Seconds after which a cycle starts for a question that waits for one."""


class TooManyQuestions(Unavailable):
    """Too many questions wait for an answer."""


class Explanations:
    """Questions are asked on the event loop and answered in the cycle's thread."""

    def __init__(
        self,
        seam: ThreadSeam,
        answers: ObjectAnswers,
        is_unchanged: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_unchanged`: whether the cluster is as the last cycle left it; asked in the cycle's thread."""
        self._seam = seam
        self._answers = answers
        self._is_unchanged = is_unchanged
        self._clock = clock
        self._outcome: Outcome | None = None
        self._postponed: list[Callable[[], None]] = []
        """Calls for the end of the next cycle."""
        self._asking = asyncio.Lock()
        self._waiting = 0
        self._rested_at = 0.0
        """When the next question may be asked."""

    # -- on the event loop

    async def answer(self, question: Question) -> LeaderAnswer:
        """What the scheduler knows of an object; `Unavailable` if it cannot be answered now."""
        if self._waiting >= MAX_QUESTIONS:
            raise TooManyQuestions(f"{MAX_QUESTIONS} requests are already pending; try again")
        self._waiting += 1
        try:
            return await asyncio.wait_for(self._in_turn(question), ANSWER_TIMEOUT)
        except TimeoutError:
            raise Unavailable(
                f"no answer within {ANSWER_TIMEOUT:g} seconds: the cycle is slow or too many requests are pending"
            ) from None
        finally:
            self._waiting -= 1

    async def _in_turn(self, question: Question) -> LeaderAnswer:
        async with self._asking:
            await asyncio.sleep(max(self._rested_at - self._clock(), 0.0))
            future: Future[tuple[LeaderAnswer, float]] = Future()

            def call() -> None:
                self._run(question, future)

            self._seam.to_cycle(call)
            answer, seconds = await asyncio.wrap_future(future)
            self._rested_at = self._clock() + min(REST_FACTOR * seconds, MAX_REST)
            return answer

    # -- in the cycle's thread

    @property
    def is_postponed(self) -> bool:
        """Whether a question waits for the end of a cycle."""
        return bool(self._postponed)

    def cycle_ended(self, outcome: Outcome) -> None:
        """Answer what was postponed, before anything changes again."""
        self._outcome = outcome
        postponed, self._postponed = self._postponed, []
        for call in postponed:
            call()

    def _run(self, question: Question, future: Future[tuple[LeaderAnswer, float]]) -> None:
        outcome = self._outcome
        if future.cancelled():
            return
        try:
            again = outcome is not None and self._answers.look_again(question, outcome.session.cluster)
        except Exception as error:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        if outcome is None or again or not self._is_unchanged():
            self._postponed.append(lambda: self._finish(question, future, with_cycle=again))
        else:
            self._finish(question, future)

    def _finish(
        self, question: Question, future: Future[tuple[LeaderAnswer, float]], with_cycle: bool = False
    ) -> None:
        if not future.set_running_or_notify_cancel():
            return
        outcome = self._outcome
        assert outcome is not None
        start = self._clock() - (sum(outcome.seconds.values()) if with_cycle else 0.0)
        try:
            answer = self._answers.of(question, outcome)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result((answer, self._clock() - start))
