"""The active policy as the leader reports it: updated in the cycle's thread, read on the event loop."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.api.errors import printable
from stromboli.policy.arguments import declared
from stromboli.policy.policy_problems import PlacedMessage
from stromboli.scheduler.explain.policy_document import (
    ActionInForce,
    PluginInForce,
    PolicyDocument,
    PolicyMessage,
    RefusedEdit,
    SetAside,
)
from stromboli.scheduler.thread_seam import Unavailable

if TYPE_CHECKING:
    from stromboli.engine.failing_plugins import Culprit, DisabledSince
    from stromboli.policy.policy import PluginEntry, Policy
    from stromboli.scheduling_loop import RefusedPolicy, Scheduler

MAX_POLICY_TEXT = 100_000
"""Characters of the text of a policy that are reported."""
MAX_POLICY_ENTRIES = 100
"""Plugins, and as many actions, keys of `metrics`, and orders or scores that are set aside."""
MAX_ARGUMENTS = 4096
"""Bytes of the arguments of a plugin or an action as JSON; larger ones are omitted."""
MAX_POLICY_MESSAGES = 50
"""Warnings, or errors."""
MAX_POLICY_MESSAGE = 500
"""Characters of each of them."""
HIDDEN = "(hidden)"
_SECRET = "elasticsearch.password"
_SECRET_LINES = re.compile(r"""(elasticsearch\.password["']?\s*:)[^\n]*""")
_MAX_INTEGER = 2**53
"""The largest integer that every reader of JSON represents exactly."""


class PolicyRecord:
    """The document, kept up to date."""

    def __init__(self) -> None:
        self._document: PolicyDocument | None = None
        self._noted: tuple[object, ...] = ()
        """What the document was made from."""

    def note(self, scheduler: Scheduler) -> None:
        """Update the document after a cycle; called in its thread."""
        engine = scheduler.engine
        policy, since, refused = engine.policy, scheduler.policy_since, scheduler.refused
        set_aside = dict(engine.set_aside)
        noted = (policy, since, refused, set_aside)
        if not self._noted or self._noted[0] is not policy or self._noted[1:] != noted[1:]:
            self._document = policy_document(policy, since, refused, set_aside)
            self._noted = noted

    def document(self) -> PolicyDocument:
        """The document; called from any thread. Raises `Unavailable` before the first cycle."""
        document = self._document
        if document is None:
            raise Unavailable("no cycle has completed yet")
        return document


def policy_document(
    policy: Policy, since: float, refused: RefusedPolicy | None, set_aside: Mapping[Culprit, DisabledSince]
) -> PolicyDocument:
    """The active policy, with the errors of its last edit and the failed orders and scores."""
    text = _encodable(_without_secret(policy))
    actions = policy.actions[:MAX_POLICY_ENTRIES]
    tiers = _tiers(policy)
    return PolicyDocument(
        source=_line(policy.source_name),
        loaded=since,
        digest="sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        text=text[:MAX_POLICY_TEXT],
        text_left_out=max(len(text) - MAX_POLICY_TEXT, 0),
        actions=[_action(name, policy.configurations.get(name)) for name in actions],
        more_actions=len(policy.actions) - len(actions),
        tiers=tiers,
        more_plugins=len(policy.plugins) - sum(map(len, tiers)),
        metrics={
            _line(key): _line(value if key != _SECRET else HIDDEN)
            for key, value in islice(policy.metrics.items(), MAX_POLICY_ENTRIES)
        },
        warnings=_messages(policy.warnings),
        more_warnings=max(len(policy.warnings) - MAX_POLICY_MESSAGES, 0),
        refused=_refused(refused) if refused is not None else None,
        set_aside=[
            SetAside(_line(plugin), _line(point), lapse.since, _line(lapse.why))
            for (plugin, point), lapse in islice(set_aside.items(), MAX_POLICY_ENTRIES)
        ],
    )


# -- the text


def _without_secret(policy: Policy) -> str:
    """The text without the password of a source of node usage: reading it needs other permissions."""
    secret = policy.metrics.get(_SECRET, "")
    text = _SECRET_LINES.sub(rf"\1 {HIDDEN}", policy.source)
    return HIDDEN if secret and secret in text else text


def _line(text: str) -> str:
    return printable(text[:MAX_POLICY_MESSAGE])


def _encodable(text: str) -> str:
    """The text without surrogates, which JSON cannot encode."""
    return text.encode(errors="replace").decode()


# -- plugins and actions


def _tiers(policy: Policy) -> list[list[PluginInForce]]:
    left, tiers = MAX_POLICY_ENTRIES, []
    for tier in policy.tiers[:MAX_POLICY_ENTRIES]:
        tiers.append([_plugin(entry) for entry in tier[:left]])
        left -= len(tiers[-1])
    return tiers


def _plugin(entry: PluginEntry) -> PluginInForce:
    arguments, left_out = _shown_arguments(entry.arguments)
    off = [switch for switch, on in entry.switches.items() if not on]
    return PluginInForce(_line(entry.name), arguments, left_out, off)


def _action(name: str, arguments: Any) -> ActionInForce:
    return ActionInForce(_line(name), *_shown_arguments(arguments))


def _shown_arguments(arguments: Any) -> tuple[dict[str, Any], bool]:
    """Arguments as JSON values, and whether they are too long to be reported."""
    plain = _settings(arguments) if is_dataclass(arguments) else {}
    if len(msgspec.json.encode(plain)) > MAX_ARGUMENTS:
        return {}, True
    return plain, False


def _settings(arguments: Any) -> dict[str, Any]:
    """Arguments by the keys of the configuration file."""
    settings: dict[str, Any] = {}
    for argument in declared(type(arguments)):
        value = getattr(arguments, argument.field)
        if argument.open_ended:
            settings |= {_encodable(argument.key + name): _plain(each) for name, each in value.items()}
        else:
            settings[argument.key] = _plain(value)
    return settings


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < _MAX_INTEGER else str(value)
    if isinstance(value, Mapping):
        return {_encodable(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return _settings(value) if is_dataclass(value) else _encodable(str(value))


# -- messages


def _refused(refused: RefusedPolicy) -> RefusedEdit:
    errors = _messages(refused.errors)
    more = len(refused.errors) - len(errors)
    return RefusedEdit(refused.time, _line(refused.source_name), errors, more, refused.is_latest)


def _messages(texts: Iterable[str]) -> list[PolicyMessage]:
    return [_message(text) for text in islice(texts, MAX_POLICY_MESSAGES)]


def _message(text: str) -> PolicyMessage:
    if isinstance(text, PlacedMessage):
        return PolicyMessage(_line(text.message), text.line)
    return PolicyMessage(_line(text))
