"""The real API server as the oracle of what is wrong with pods: the same fields, reasons and words."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from stromboli.api.schemas.pods.pod_validation import template_problems
from tests.api.schemas.bad_pods import BAD_PODS
from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.real_only


OTHER_WORDS = ("an operator", "an operator of a toleration")
"""Where we list the values that there are."""


@pytest.mark.parametrize("what", BAD_PODS)
def test_a_pod_is_refused_for_the_same_reasons(what: str, plane: ControlPlane, namespace: str) -> None:
    body: dict[str, Any] = {"metadata": {"name": "bad"}, "spec": BAD_PODS[what]}
    with pytest.raises(urllib.error.HTTPError) as refused:
        plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    with refused.value as answer:
        causes = json.loads(answer.read())["details"]["causes"]
    theirs = [_compared(what, cause) for cause in causes]
    ours = [_compared(what, problem.cause()) for problem in template_problems({"spec": BAD_PODS[what]}, "")]
    assert sorted(ours) == sorted(theirs)


def _compared(what: str, cause: dict[str, str]) -> str:
    """What both must say: of a missing field that it is required, else all."""
    field, reason = cause["field"].removeprefix("."), cause["reason"]
    if what in OTHER_WORDS:
        return field
    return f"{field}: {reason if reason == 'FieldValueRequired' else cause['message']}"
