"""Whether the policy in force is right."""

from __future__ import annotations

from pathlib import Path

from stromboli.cli.check.check_result import CheckResult, failed, ok, skipped, warning
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.policy.policy_place import DEFAULT_KEY, find_policy
from stromboli.extensions import load_catalog
from stromboli.kube.request import ApiError
from stromboli.policy.policy import PolicyError, load_policy

CHECK = "policy"
MEND = "stromboli policy show --in-force > policy.yaml; mend it; stromboli policy apply policy.yaml"
UNKNOWN = ": unknown plugin "
"""In what is said of a plugin that nobody knows."""


async def check_policy(
    session: ClusterSession, namespace: str, plugins_dir: Path | None = None
) -> list[CheckResult]:
    """What `policy check` says of it; plugins of the cluster's own are known here by their folder alone."""
    try:
        place = await find_policy(session, DEFAULT_KEY._replace(namespace=namespace))
    except ApiError as error:
        return [skipped(CHECK, refusal_text(error))]
    except ClusterError as error:
        return [skipped(CHECK, str(error))]
    if not place.text.strip():
        return [
            warning(
                CHECK,
                f"{place.origin} has none, so the built-in one is in force",
                "stromboli policy apply FILE",
            )
        ]
    try:
        policy = load_policy(place.text, load_catalog(plugins_dir), place.origin, lenient=True)
    except PolicyError as error:
        return [failed(CHECK, text, _remedy(text)) for text in error.errors[:5]]
    if policy.warnings:
        return [warning(CHECK, text, _remedy(text)) for text in policy.warnings[:5]]
    return [ok(CHECK, f"{place.origin}: {', '.join(policy.actions)}")]


def _remedy(text: str) -> str:
    """A plugin that is not known here may well be known to the scheduler."""
    return f"if it is your own, stromboli check --plugins-dir DIR; else {MEND}" if UNKNOWN in text else MEND
