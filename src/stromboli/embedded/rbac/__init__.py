"""Who may do what: roles and bindings as Kubernetes' RBAC reads them, kept up as they change. Pure, no I/O.

`Rights` is told of roles and bindings and answers `allowed`; `reviews` answers what `kubectl auth can-i` asks;
`bootstrap` are the roles and bindings that a cluster starts with.
"""

from stromboli.embedded.rbac.access_reviews import REVIEWS, BadReview, answer
from stromboli.embedded.rbac.authorizer import Rights, Verdict, refusal
from stromboli.embedded.rbac.bootstrap_roles import bootstrap
from stromboli.embedded.rbac.escalation import escalation
from stromboli.embedded.rbac.policy_rules import GROUP, Asked, User

__all__ = [
    "GROUP",
    "REVIEWS",
    "Asked",
    "BadReview",
    "Rights",
    "User",
    "Verdict",
    "answer",
    "bootstrap",
    "escalation",
    "refusal",
]
