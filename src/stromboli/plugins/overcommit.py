"""Admit jobs up to a multiple of what the cluster has (spec 03 11)."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.engine.queue_limits import AdmittedJobs
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, lacking, minus, plus, shift, times
from stromboli.model.cluster import Dirty
from stromboli.model.job import Job
from stromboli.model.remedy import Why
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class OvercommitArguments:
    """By how much admitted jobs may exceed the size of the cluster."""

    factor: float = arg(
        "overcommit-factor",
        1.2,
        "Factor of the cluster's capacity that may be admitted.",
        check=at_least(1),
    )


class Overcommit(Plugin):
    """Limits the admitted jobs by the capacity of the whole cluster times a factor."""

    name = "overcommit"
    guards_room = True
    Arguments = OvercommitArguments
    arguments: OvercommitArguments

    def __init__(self, arguments: OvercommitArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.idle: Amounts = {}
        """The multiple of the cluster less what its nodes use, at the opening of the session."""
        self.inqueue: Amounts = {}
        """The sum of what is reserved for admitted jobs."""
        self._reserved: dict[Job, Amounts] = {}
        self._jobs = AdmittedJobs()
        self._clock = -1

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything:
            self.inqueue, self._reserved = {}, {}
        for job in self._jobs.opening(session.needs, dirty):
            # quirk: spec 03 11: in full, even if parts already run
            self._reserve(job, session.needs.reserved(job, in_full=True) if job.visible else {})
        columns = session.cluster.columns
        if dirty.everything or columns.clock != self._clock:
            self._clock = columns.clock
            used = minus(session.total, columns.free)  # an overbooked node does not reduce other nodes
            self.idle = minus(times(session.total, self.arguments.factor), used)

    def job_enqueueable(self, job: Job) -> Vote:
        wanted = self.session.needs.least(job)
        if wanted is None:
            return Vote.PERMIT
        yielded = self._jobs.yielded_to(job)
        inqueue = minus(self.inqueue, yielded) if yielded else self.inqueue
        short = lacking(plus(inqueue, wanted), self.idle, wanted)
        if not short or not self._jobs.holds_back(job, short):
            return Vote.PERMIT
        dims = self.session.cluster.dims
        listed = ", ".join(names.OVERUSED.format(resource=dims.names[dim]) for dim in dims.ordered(short))
        text = names.CLUSTER_OVERUSED.format(resources=listed)
        remedy = (
            "free capacity may be reserved for admitted jobs: wait until these and running jobs end, add nodes or"
            " request less"
        )
        why = Why(text, remedy, "ClusterOverused", title=names.CLUSTER_OVERUSED_TITLE)
        self.session.refuse(job, self.name, why)
        return Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        reserved = self.session.needs.reserved_on_admission(job)
        self._reserve(job, reserved)
        self._jobs.add(job, reserved)

    def _reserve(self, job: Job, amounts: Amounts) -> None:
        """Replace what is reserved for a job."""
        if amounts == self._reserved.get(job, _NOTHING):
            return
        shift(self.inqueue, self._reserved.pop(job, {}), -1)
        if amounts:
            shift(self.inqueue, amounts)
            self._reserved[job] = amounts


_NOTHING: Amounts = {}
