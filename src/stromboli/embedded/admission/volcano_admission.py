"""Volcano's admission webhooks, built in: defaults and validation of jobs, queues and pod groups."""

from __future__ import annotations

from stromboli.admission.rules.admission_table import (
    DELETE,
    REVIEWS,
    Review,
    message,
    validate,
    with_defaults,
)
from stromboli.admission.rules.queue_jobs import unfinished_job
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.scheduling import Queue
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record

QUEUES = "queues.scheduling.volcano.sh"
MEMBERS = {"podgroups.scheduling.volcano.sh": "PodGroup", "jobs.batch.volcano.sh": "Job"}
"""Kinds of objects that need their queue."""


class VolcanoAdmission:
    """The rules of `stromboli.admission`, with queues and namespaces from the store."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._reviews_by_kind: dict[tuple[str, str], list[Review]] = {}
        for review in REVIEWS.values():
            if (
                review.path != "/pods/mutate" or settings.scheduling_gates
            ):  # there are no resource groups here
                key = (review.resource.group, review.resource.kind)
                self._reviews_by_kind.setdefault(key, []).append(review)
        self._queues = QueueIndex()
        for record in store.list(QUEUES):
            self._put(record)
        store.on_apply(self._on_apply)

    def covers(self, request: WriteRequest) -> bool:
        """Whether there are rules for a write."""
        return not request.subresource and bool(self._reviews(request))

    def _reviews(self, request: WriteRequest) -> list[Review]:
        kind = request.kind
        reviews = self._reviews_by_kind.get((kind.group, kind.kind), ())
        return [review for review in reviews if request.operation in review.operations]

    def admit(self, request: WriteRequest, content: Content | None, old: Content | None) -> Content | None:
        """The object with defaults; an error as a webhook would answer if it is invalid."""
        context = self._context(request, content)
        for review in self._reviews(request):
            if content is not None:
                content = with_defaults(review, content, context, old)
            reviewed = old if request.operation == "DELETE" else content
            report = validate(review, reviewed, old, request.operation, context)
            if report:
                raise StatusError(400, message(review, report))
        return content

    def _context(self, request: WriteRequest, content: Content | None) -> Context:
        record = None
        if request.kind.kind == "PodGroup" and content is not None:
            record = self._store.get("namespaces", "", request.namespace)
        annotations = record.object()["metadata"].get("annotations") if record is not None else None
        queue = annotations.get(names.QUEUE_NAME) if isinstance(annotations, dict) else None
        return Context(self._queues, queue, self._settings, self._unfinished_job(request))

    def _unfinished_job(self, request: WriteRequest) -> str:
        """Find a job that needs a queue that is being deleted."""
        is_deletion = request.kind.kind == "Queue" and request.operation == DELETE
        if not is_deletion or not self._settings.queue_allocated_pods_check:
            return ""
        jobs = (
            unfinished_job(request.name, kind, (record.data for record in self._store.list(resource)))
            for resource, kind in MEMBERS.items()
        )
        return next(filter(None, jobs), "")

    def _on_apply(self, change: Change) -> None:
        if change.key.resource != QUEUES:
            return
        if change.after is None:
            self._queues.drop(change.key.name)
        else:
            self._put(change.after)

    def _put(self, record: Record) -> None:
        try:
            self._queues.put(decode_as(Queue, record.data))
        except BadObject:
            self._queues.drop(record.key.name)
