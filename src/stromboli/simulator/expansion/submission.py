"""What becomes of a manifest when it is submitted: defaults and checks of admission, and a uid."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

from stromboli.admission.rules.admission_table import REVIEWS, admit, message
from stromboli.admission.rules.rule_context import Context
from stromboli.api.errors import BadObject
from stromboli.api.types.volcano_job import Manifest
from stromboli.simulator.expansion.observed_objects import ObservedObjects

BATCH, FLOW = "batch.volcano.sh", "flow.volcano.sh"


def admitted(group: str, kind: str, content: Manifest, observed: ObservedObjects) -> Manifest:
    """A manifest with the defaults of admission; `BadObject` with its message if it is new and would be refused."""
    result = admit(group, kind, content, Context(observed.queues))
    if result.report and not content["metadata"].get("uid"):
        review = next(
            review
            for review in REVIEWS.values()
            if (review.resource.group, review.resource.kind) == (group, kind) and review.check is not None
        )
        raise BadObject("", message(review, result.report))
    return result.object


def stable_uid(kind: str, namespace: str, name: str) -> str:
    """The uid of an object that was never submitted."""
    return str(uuid5(NAMESPACE_URL, f"{kind}/{namespace}/{name}"))
