"""Whether evictions leave queues what is guaranteed to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.amounts import Amounts, Vector, less_equal, minus, shift
from stromboli.model.feed import TouchedJobs
from stromboli.model.queue import lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape


class QueueGuarantees:
    """Whether queues keep what is guaranteed to them; what they hold is kept up by the jobs that moves touch.

    Queues above the preemptor's do not count: what leaves one of their branches comes back in another. Nor does
    capacity that is only promised to a queue.
    """

    def __init__(self, session: Session):
        self._session = session
        self._touched = TouchedJobs(session.cluster.feed)
        self._counted: dict[Queue, Vector] = {}
        """What queues held when they were last counted, without those below them."""
        self._held: dict[Queue, Amounts] = {}
        """What queues hold together with those below them."""
        self._spared: dict[Queue, dict[Shape, bool]] = {}
        """Whether a queue could lose a task of a shape, as of what it holds now."""

    def hold(self, trial: Statement, preemptor: Queue | None) -> bool:
        """Whether no queue that lost tasks in a statement, nor any above it, is below its guarantee."""
        queues = dict.fromkeys(self._session.queue_of(victim) for victim in trial.evicted())
        return all(queue is None or self.hold_without(queue, preemptor, {}) for queue in queues)

    def hold_without(self, queue: Queue, preemptor: Queue | None, lost: Vector) -> bool:
        """Whether a queue and those above it would keep their guarantees if the queue lost some amount."""
        queues = self._session.cluster.queues
        gaining = lineage(preemptor, queues) if preemptor is not None else []
        guaranteed = [above for above in lineage(queue, queues) if above.guarantee and above not in gaining]
        if not guaranteed:
            return True
        self._update()
        return all(
            less_equal(above.guarantee, minus(self._held.get(above, {}), lost)) for above in guaranteed
        )

    def can_spare(self, preemptor: Queue | None) -> Callable[[Queue | None, Iterable[Shape]], bool]:
        """A quick check whether a queue itself could spare a task of one of some shapes; as of now."""
        self._update()
        gaining = lineage(preemptor, self._session.cluster.queues) if preemptor is not None else []

        def check(queue: Queue | None, shapes: Iterable[Shape]) -> bool:
            if queue is None or not queue.guarantee or queue in gaining:
                return True
            known = self._spared.setdefault(queue, {})
            for shape in shapes:
                if shape not in known:
                    left = minus(self._held.get(queue, {}), shape.request)
                    known[shape] = less_equal(queue.guarantee, left)
                if known[shape]:
                    return True
            return False

        return check

    def _update(self) -> None:
        cluster = self._session.cluster
        touched = dict.fromkeys(job.queue for job in self._touched.take() if job.queue is not None)
        for queue in touched if self._counted else cluster.queues.values():
            gained = minus(queue.allocated, self._counted.get(queue, {}))
            self._counted[queue] = dict(queue.allocated)
            for above in lineage(queue, cluster.queues) if gained else ():
                shift(self._held.setdefault(above, {}), gained)
                self._spared.pop(above, None)
