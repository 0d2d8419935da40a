"""Volcano's admission, built in: what jobs, queues and groups are completed with, and what they are refused for."""

from __future__ import annotations

from typing import Any

from stromboli.admission.rules.admission_table import REVIEWS, Review, message, validate, with_defaults
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.scheduling import Queue
from stromboli.embedded.admission.webhooks import Question
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record

_REVIEWS: dict[tuple[str, str], list[Review]] = {}
for _review in REVIEWS.values():
    if _review.path != "/pods/mutate":  # there are no resource groups here
        _REVIEWS.setdefault((_review.resource.group, _review.resource.kind), []).append(_review)
QUEUES = "queues.scheduling.volcano.sh"

Content = dict[str, Any]


class VolcanoRules:
    """The rules of `stromboli.admission`, with what the store knows around an object."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._queues = QueueIndex()
        for record in store.all(QUEUES):
            self._put(record)
        store.observe(self._applied)

    def cover(self, question: Question) -> bool:
        """Whether there are rules for a write."""
        return not question.part and bool(self._reviews(question))

    def _reviews(self, question: Question) -> list[Review]:
        kind = question.kind
        found = _REVIEWS.get((kind.group, kind.kind), ())
        return [review for review in found if question.operation in review.operations]

    def apply(self, question: Question, content: Content | None, old: Content | None) -> Content | None:
        """The object, completed; refused as a webhook would if something is wrong with it."""
        context = self._context(question, content)
        for review in self._reviews(question):
            if content is not None:
                content = with_defaults(review, content, context)
            thing = old if question.operation == "DELETE" else content
            report = validate(review, thing, old, question.operation, context)
            if report:
                raise Refusal(400, message(review, report))
        return content

    def _context(self, question: Question, content: Content | None) -> Context:
        space = None
        if question.kind.kind == "PodGroup" and content is not None:
            space = self._store.get("namespaces", "", question.namespace)
        marks = space.object()["metadata"].get("annotations") if space is not None else None
        queue = marks.get(names.QUEUE_NAME) if isinstance(marks, dict) else None
        return Context(self._queues, queue, self._settings)

    def _applied(self, change: Change) -> None:
        if change.key.resource != QUEUES:
            return
        if change.after is None:
            self._queues.drop(change.key.name)
        else:
            self._put(change.after)

    def _put(self, record: Record) -> None:
        try:
            queue = decode_as(Queue, record.data)
        except BadObject:
            self._queues.drop(record.key.name)  # nobody can use it as it is
            return
        if isinstance(queue, Queue):
            self._queues.put(queue)
