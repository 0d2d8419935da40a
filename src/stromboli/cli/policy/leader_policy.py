"""What the leader says of the policy in force: since when, what was wrong with the last edit, what is set aside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.cli.cli_errors import print_note, print_warning
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.embedded.tables.age_text import duration_text

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.scheduler.explain.policy_document import PolicyDocument


async def print_leader_policy(session: ClusterSession, text: str) -> None:
    """On standard error, if the leader tells; `text` is what is kept for it."""
    from stromboli.cli.leader.leader_query import Unreachable, ask_policy

    answer = await ask_policy(session)
    if isinstance(answer, Unreachable):
        return
    print_note(shown(_in_force(answer, text)))
    for warning in _warnings(answer):
        print_warning(shown(warning))


def _in_force(policy: PolicyDocument, text: str) -> str:
    is_other = policy.text.strip() != text.strip() and not policy.text_left_out
    version = "another version of " if is_other and text.strip() else ""
    age = duration_text(time.time() - policy.loaded)
    return f"{version}{policy.source} has been in force for {age}, says the leader {policy.leader}"


def _warnings(policy: PolicyDocument) -> Iterator[str]:
    refused = policy.refused
    if refused is not None and refused.is_latest:
        yield f"the last edit of {refused.source} was refused {_ago(refused.time)}: another policy is in force"
        for error in refused.errors:
            yield (
                f"{refused.source}:{error.line}: {error.text}"
                if error.line
                else f"{refused.source}: {error.text}"
            )
        if refused.more_errors:
            yield f"{refused.source}: and {refused.more_errors} errors more"
    for lapse in policy.set_aside:
        yield f"plugin {lapse.plugin}: {lapse.point} was set aside {_ago(lapse.since)}: {lapse.why}"


def _ago(moment: float) -> str:
    return f"{duration_text(time.time() - moment)} ago"
