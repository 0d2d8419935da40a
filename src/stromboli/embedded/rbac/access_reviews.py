"""Access reviews: questions about rights, as `kubectl auth can-i` asks them, and their answers."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.rbac.authorizer import Authorizer
from stromboli.embedded.rbac.policy_rules import Attributes, PolicyRule, User

Thing = dict[str, Any]

REVIEWS = {
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "selfsubjectreviews": "SelfSubjectReview",
}


class BadReview(ValueError):
    """A question that asks nothing, or two things at once."""


def complete_review(rights: Authorizer, user: User, kind: str, review: Thing, namespace: str = "") -> Thing:
    """The review with its status filled in; `namespace` is that of the request, for local ones."""
    spec = review.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadReview("spec: expected an object")
    match kind:
        case "SelfSubjectRulesReview":
            status = _rules(rights.rules_for(user, str(spec.get("namespace") or "")))
        case "SelfSubjectReview":
            status = {"userInfo": _user_info(user)}
        case "SelfSubjectAccessReview":
            status = _verdict(rights, user, spec)
        case _:
            status = _verdict(rights, _subject(spec), spec, namespace)
    return {**review, "kind": kind, "metadata": review.get("metadata") or {}, "status": status}


def _verdict(rights: Authorizer, user: User, spec: Thing, namespace: str = "") -> Thing:
    asked = _asked(spec)
    if namespace and asked.namespace != namespace:
        raise BadReview(f'spec.resourceAttributes.namespace: "{asked.namespace}", must be "{namespace}"')
    verdict = rights.authorize(user, asked)
    return {"allowed": verdict.allowed, **({"reason": verdict.reason} if verdict.reason else {})}


def _asked(spec: Thing) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        raise BadReview("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
    given = resource if resource is not None else path
    if not isinstance(given, dict):
        raise BadReview("spec: attributes must be an object")
    words = {key: str(value or "") for key, value in given.items()}
    if path is not None:
        return Attributes(words.get("verb", ""), path=words.get("path", "") or "/")
    return Attributes(
        words.get("verb", ""),
        words.get("group", ""),
        words.get("resource", ""),
        words.get("subresource", ""),
        words.get("name", ""),
        words.get("namespace", ""),
    )


def _subject(spec: Thing) -> User:
    name, groups = spec.get("user"), spec.get("groups")
    if not name and not groups:
        raise BadReview("spec.user: at least one of user and groups must be given")
    return User(str(name or ""), tuple(map(str, groups or ())))


def _user_info(user: User) -> Thing:
    info: Thing = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra}
    return info


def _rules(rules: list[PolicyRule]) -> Thing:
    """Resource rules and path rules apart."""
    resource: list[Thing] = []
    paths: list[Thing] = []
    for rule in rules:
        if rule.resources:
            shown: Thing = {"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources}
            resource.append({**shown, "resourceNames": rule.resource_names} if rule.resource_names else shown)
        if rule.non_resource_urls:
            paths.append({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls})
    return {"resourceRules": resource, "nonResourceRules": paths, "incomplete": False}
