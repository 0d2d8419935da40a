"""MutatingWebhookConfigurations, and what all webhook configurations have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from stromboli.api.cel.expression import CelError, Expression, ExpressionCache
from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.schemas.schema_problems import TOO_MANY, Problem, duplicate, invalid, required
from stromboli.embedded.kinds.kind import EXTENSION, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import count_printer

MAX_CONDITIONS = 64
"""Match conditions of a webhook, as on a real API server."""


class WebhookConfigurationStrategy(Strategy):
    has_generation = needs_version = True
    printer = count_printer("Name | Webhooks# | Age", "webhooks")

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        """Match conditions must be expressions that this server can evaluate."""
        return [
            problem
            for index, webhook in enumerate(content.get("webhooks") or ())
            for problem in _conditions(
                webhook.get("matchConditions") or [], f"webhooks[{index}].matchConditions"
            )
        ]

    def write_warnings(self, content: Content) -> tuple[str, ...]:
        """The webhooks of a configuration that cannot be asked."""
        return tuple(
            f'webhook "{webhook.get("name")}" has a clientConfig.service, and there is no network of services here:'
            " give a clientConfig.url; every request that it covers fails unless its failurePolicy is Ignore"
            for webhook in content.get("webhooks") or ()
            if (webhook.get("clientConfig") or {}).get("service")
        )


@lru_cache(1)
def _cache() -> ExpressionCache:
    return ExpressionCache(("object", "oldObject", "request"))


def compiled_condition(text: str) -> Expression:
    """The expression of a match condition."""
    return _cache().compiled(text)


def _conditions(conditions: list[dict[str, Any]], path: str) -> Iterator[Problem]:
    if len(conditions) > MAX_CONDITIONS:
        detail = f"Too many: {len(conditions)}: must have at most {MAX_CONDITIONS} items"
        yield Problem(path, TOO_MANY, detail)
        return
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        yield from _condition(condition, f"{path}[{index}]")
        name = condition.get("name") or ""
        if name in names:
            yield duplicate(f"{path}[{index}].name", name)
        names.add(name)


def _condition(condition: dict[str, Any], path: str) -> Iterator[Problem]:
    name, text = condition.get("name") or "", condition.get("expression") or ""
    if not name:
        yield required(f"{path}.name")
    for error in qualified_name_errors(name) if name else ():
        yield invalid(f"{path}.name", name, error)
    if not text.strip():
        yield required(f"{path}.expression")
        return
    try:
        compiled_condition(text)
    except CelError as error:
        yield invalid(f"{path}.expression", text, f"compilation failed: {error}")


KIND = builtin(
    "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    strategy=WebhookConfigurationStrategy(),
    **EXTENSION,
)
