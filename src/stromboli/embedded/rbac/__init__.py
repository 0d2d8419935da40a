"""Role-based access control: roles and bindings as Kubernetes' RBAC authorizer reads them. Pure, no I/O.

`Authorizer` is given roles and bindings and decides requests; `access_reviews` answers what `kubectl auth can-i` asks;
`bootstrap_policy` returns the roles and bindings that a cluster starts with.
"""

from stromboli.embedded.rbac.access_reviews import REVIEWS, BadReview, complete_review
from stromboli.embedded.rbac.authorizer import Authorizer, Decision, forbidden_message
from stromboli.embedded.rbac.bootstrap_roles import bootstrap_policy
from stromboli.embedded.rbac.escalation import escalation_error
from stromboli.embedded.rbac.policy_rules import GROUP, Attributes, User

__all__ = [
    "GROUP",
    "REVIEWS",
    "Attributes",
    "Authorizer",
    "BadReview",
    "Decision",
    "User",
    "bootstrap_policy",
    "complete_review",
    "escalation_error",
    "forbidden_message",
]
