"""Questions to the scheduler of an embedded cluster that it cannot answer now."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.explain_responses import ClusterExplanations
from stromboli.embedded.rbac.policy_rules import User
from stromboli.scheduler.explain.explain_paths import Question
from stromboli.scheduler.explain.explanations import TooManyQuestions
from stromboli.scheduler.thread_seam import Unavailable


class Everybody:
    """Allows everything."""

    def check(self, user: Any, attributes: Any) -> None: ...

    def check_path(self, user: Any, path: str, verb: str) -> None: ...


def refusal(explanations: ClusterExplanations, path: str = "/explain/queues/default") -> int:
    authorizer: Any = Everybody()
    with pytest.raises(StatusError) as refused:
        asyncio.run(explanations.respond(path, {}, User("ann"), authorizer))
    return refused.value.code


@pytest.mark.parametrize(
    ("failure", "code"), [(TooManyQuestions("others wait"), 429), (Unavailable("a long cycle"), 503)]
)
def test_a_scheduler_that_cannot_answer_now_refuses_as_elsewhere(failure: Exception, code: int) -> None:
    async def ask(question: Question) -> Any:
        raise failure

    explanations = ClusterExplanations()
    explanations.connect(ask)
    assert refusal(explanations) == code


def test_a_scheduler_that_has_not_started_is_not_asked() -> None:
    for path in ("/explain/queues/default", "/explain/cycles", "/explain/policy"):
        assert refusal(ClusterExplanations(), path) == 503
    assert refusal(ClusterExplanations(), "/explain/secrets/default/token") == 400
