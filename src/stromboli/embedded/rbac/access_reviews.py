"""Access reviews, as `kubectl auth can-i` creates them."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.rbac.authorizer import MAX_RULES, Authorizer
from stromboli.embedded.rbac.policy_rules import Attributes, PolicyRule, User

Content = dict[str, Any]

_RESOURCE_ATTRIBUTES = ("verb", "group", "resource", "subresource", "name", "namespace")


class BadReview(ValueError):
    """A review without attributes, or with two kinds of them."""


def complete_review(
    authorizer: Authorizer, user: User, kind: str, review: Content, namespace: str = ""
) -> Content:
    """The review with its status filled in; `namespace` is that of the request, for local ones."""
    spec = review.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadReview("spec: expected an object")
    match kind:
        case "SelfSubjectRulesReview":
            status = _rules_status(authorizer.rules_for(user, str(spec.get("namespace") or "")))
        case "SelfSubjectReview":
            status = {"userInfo": user.info()}
        case "SelfSubjectAccessReview":
            status = _access_status(authorizer, user, spec)
        case _:
            status = _access_status(authorizer, _subject(spec), spec, namespace)
    return {**review, "kind": kind, "metadata": review.get("metadata") or {}, "status": status}


def _access_status(authorizer: Authorizer, user: User, spec: Content, namespace: str = "") -> Content:
    attributes = _attributes(spec)
    if namespace and attributes.namespace != namespace:
        raise BadReview(f'spec.resourceAttributes.namespace: "{attributes.namespace}", must be "{namespace}"')
    decision = authorizer.authorize(user, attributes)
    return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _attributes(spec: Content) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        raise BadReview("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
    raw = resource if resource is not None else path
    if not isinstance(raw, dict):
        raise BadReview("spec: attributes must be an object")
    values = {key: str(value or "") for key, value in raw.items()}
    if path is not None:
        return Attributes(values.get("verb", ""), path=values.get("path", "") or "/")
    return Attributes(**{field: values[field] for field in _RESOURCE_ATTRIBUTES if field in values})


def _subject(spec: Content) -> User:
    name, groups = spec.get("user"), spec.get("groups")
    if not name and not groups:
        raise BadReview("spec.user: at least one of user and groups must be given")
    return User(str(name or ""), tuple(map(str, groups or ())))


def _rules_status(rules: list[PolicyRule]) -> Content:
    """Resource rules and non-resource rules apart."""
    resources: list[Content] = []
    paths: list[Content] = []
    for rule in rules:
        if rule.resources:
            entry: Content = {"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources}
            resources.append(
                {**entry, "resourceNames": rule.resource_names} if rule.resource_names else entry
            )
        if rule.non_resource_urls:
            paths.append({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls})
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": len(rules) >= MAX_RULES}
