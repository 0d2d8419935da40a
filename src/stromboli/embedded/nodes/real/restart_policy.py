"""Whether a container that terminated is restarted: the policy of its pod, or rules and a policy of its own."""

from __future__ import annotations

from stromboli.api import names
from stromboli.embedded.nodes.node_types import Content

NEVER = "Never"
ON_FAILURE = "OnFailure"


def restart_policy(spec: Content, pod_policy: str, init: bool = False) -> str:
    """A policy of its own goes before the pod's; an init container that succeeded is never restarted."""
    own = spec.get("restartPolicy")
    if own:
        return str(own)
    return ON_FAILURE if init and pod_policy != NEVER else pod_policy


def is_sidecar(spec: Content) -> bool:
    """Whether an init container runs beside the others."""
    return spec.get("restartPolicy") == names.RESTART_ALWAYS


def is_restarted(spec: Content, policy: str, code: int | None) -> bool:
    """The first rule for its exit code decides, else the policy does."""
    if any(_matches(rule.get("exitCodes") or {}, code or 0) for rule in spec.get("restartPolicyRules") or ()):
        return True
    return policy == names.RESTART_ALWAYS or (policy == ON_FAILURE and bool(code))


def _matches(exit_codes: Content, code: int) -> bool:
    values, operator = exit_codes.get("values") or (), exit_codes.get("operator")
    return (operator == "In" and code in values) or (operator == "NotIn" and code not in values)
