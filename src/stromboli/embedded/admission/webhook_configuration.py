"""Webhook configurations as they are stored, and which writes their rules cover."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.admission.match_conditions import MatchCondition
from stromboli.embedded.admission.write_request import WriteRequest


class Rule(msgspec.Struct, rename="camel"):
    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"

    def covers(self, request: WriteRequest) -> bool:
        kind = request.kind
        scope = "Namespaced" if kind.namespaced else "Cluster"
        return (
            _contains(self.operations, request.operation)
            and _contains(self.api_groups, kind.group)
            and _contains(self.api_versions, kind.version)
            and self.scope in ("*", scope)
            and any(_is_resource(pattern, kind.plural, request.subresource) for pattern in self.resources)
        )


def _contains(patterns: Iterable[str], value: str) -> bool:
    return any(pattern in ("*", value) for pattern in patterns)


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    name, _, suffix = pattern.partition("/")
    if pattern == "*/*":
        return True
    return name in ("*", plural) and (suffix == subresource or (suffix == "*" and bool(subresource)))


class WebhookClientConfig(msgspec.Struct, rename="camel"):
    url: str = ""
    ca_bundle: str = ""


class Webhook(msgspec.Struct, rename="camel"):
    """One entry of a configuration."""

    name: str = ""
    client_config: WebhookClientConfig = field(default_factory=WebhookClientConfig)
    rules: tuple[Rule, ...] = ()
    failure_policy: str = "Fail"
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_conditions: tuple[MatchCondition, ...] = ()
    timeout_seconds: int = 10
    side_effects: str = ""

    def covers(self, request: WriteRequest) -> bool:
        return any(rule.covers(request) for rule in self.rules)


class WebhookConfiguration(msgspec.Struct):
    webhooks: tuple[Webhook, ...] = ()
