"""Conditions in CEL for a webhook to be asked (`matchConditions`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.cel.expression import CelError, CostBudget, EvaluationError
from stromboli.embedded.kinds.builtin.mutating_webhook_configuration import compiled_condition


class MatchCondition(msgspec.Struct):
    name: str = ""
    expression: str = ""


class MatchError(ValueError):
    """Conditions of which none is false, and one cannot be evaluated."""


def conditions_match(conditions: Iterable[MatchCondition], request: dict[str, Any]) -> bool:
    """Whether all conditions hold for the request of an AdmissionReview; they share a budget."""
    variables = {
        "object": request["object"],
        "oldObject": request["oldObject"],
        "request": {key: value for key, value in request.items() if key not in ("object", "oldObject")},
    }
    budget = CostBudget()
    failure = None
    for condition in conditions:
        try:
            if not compiled_condition(condition.expression).evaluate(variables, budget):
                return False
        except (CelError, EvaluationError) as error:
            failure = failure or MatchError(
                f'match condition "{condition.name}" cannot be evaluated: {error}'
            )
    if failure is not None:
        raise failure
    return True
