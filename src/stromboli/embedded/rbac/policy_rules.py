"""Policy rules, and the attributes of requests that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import msgspec

GROUP = "rbac.authorization.k8s.io"
ANY = "*"


class User(NamedTuple):
    """A user authenticated by a token or certificate."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def info(self) -> dict[str, Any]:
        """The UserInfo of reviews."""
        info = {"username": self.name, "groups": list(self.groups)}
        return {**info, "uid": self.uid} if self.uid else info


class Attributes(NamedTuple):
    """The attributes of a request: a verb on a resource, or on a non-resource path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def target(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class PolicyRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Verbs on resources, or on non-resource URLs."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, attributes: Attributes) -> bool:
        if attributes.verb not in self.verbs and ANY not in self.verbs:
            return False
        if attributes.path:
            return any(_path_matches(url, attributes.path) for url in self.non_resource_urls)
        return (
            (attributes.group in self.api_groups or ANY in self.api_groups)
            and self._covers(attributes)
            and (not self.resource_names or attributes.name in self.resource_names)
        )

    def _covers(self, attributes: Attributes) -> bool:
        resources = self.resources
        return (
            ANY in resources
            or attributes.target in resources
            or (bool(attributes.subresource) and f"{ANY}/{attributes.subresource}" in resources)
        )

    def permissions(self) -> Iterator[Attributes]:
        """The rule taken apart; a wildcard stays one."""
        for verb, path in product(self.verbs, self.non_resource_urls):
            yield Attributes(verb, path=path)
        names = self.resource_names or ("",)
        for verb, group, resource, name in product(self.verbs, self.api_groups, self.resources, names):
            plural, _, subresource = resource.partition("/")
            yield Attributes(verb, group, plural, subresource, name)


class RuleIndex:
    """Rules by the resources that they name, so that a request is compared with few of them."""

    def __init__(self, rules: tuple[PolicyRule, ...]) -> None:
        self.rules = rules
        self._by_resource: dict[str, list[PolicyRule]] = {}
        self._others: list[PolicyRule] = []
        """With wildcards, or of paths."""
        for rule in rules:
            if rule.non_resource_urls or any(resource.startswith(ANY) for resource in rule.resources):
                self._others.append(rule)
            else:
                for resource in set(rule.resources):
                    self._by_resource.setdefault(resource, []).append(rule)

    def candidates(self, attributes: Attributes) -> list[PolicyRule]:
        """The rules that may allow a request."""
        return [*self._by_resource.get(attributes.target, ()), *self._others]

    def allows(self, attributes: Attributes) -> bool:
        return any(rule.allows(attributes) for rule in self.candidates(attributes))


def _path_matches(rule: str, path: str) -> bool:
    if rule in (ANY, path):
        return True
    return rule.endswith(ANY) and path.startswith(rule.rstrip(ANY))


def rules_of(role: dict[str, Any]) -> tuple[PolicyRule, ...]:
    """The rules of a role itself; a malformed one allows nothing."""
    rules = []
    for raw in role.get("rules") or ():
        try:
            rules.append(msgspec.convert(_without_nulls(raw), PolicyRule))
        except (msgspec.ValidationError, AttributeError):
            continue
    return tuple(rules)


def _without_nulls(rule: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in rule.items() if value is not None}
