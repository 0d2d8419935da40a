"""Webhooks that were registered: which of them want to hear of a write, and what they say to it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
import msgspec
from msgspec import field

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, bad_request
from stromboli.embedded.patching.json_patch import json_patch
from stromboli.embedded.patching.patch_errors import PatchError
from stromboli.embedded.rbac import User
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change
from stromboli.kube.bounded_body import read_body

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
LARGEST = 8 * 1024 * 1024
"""Bytes of an answer."""

Content = dict[str, Any]


class Question(NamedTuple):
    """A write that others may have a say in."""

    operation: str
    kind: Kind
    namespace: str
    name: str
    part: str
    user: User
    dry_run: bool = False


class Rule(msgspec.Struct, rename="camel"):
    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"

    def covers(self, question: Question) -> bool:
        kind = question.kind
        scope = "Namespaced" if kind.namespaced else "Cluster"
        return (
            _one_of(question.operation, self.operations)
            and _one_of(kind.group, self.api_groups)
            and _one_of(kind.version, self.api_versions)
            and self.scope in ("*", scope)
            and any(_is_resource(one, kind.plural, question.part) for one in self.resources)
        )


def _one_of(value: str, listed: Iterable[str]) -> bool:
    return any(one in ("*", value) for one in listed)


def _is_resource(pattern: str, plural: str, part: str) -> bool:
    name, _, subresource = pattern.partition("/")
    if pattern == "*/*":
        return True
    return name in ("*", plural) and (subresource == part or (subresource == "*" and bool(part)))


class Where(msgspec.Struct, rename="camel"):
    url: str = ""
    service: dict[str, Any] | None = None
    ca_bundle: str = ""


class Hook(msgspec.Struct, rename="camel"):
    """One entry of a configuration."""

    name: str = ""
    client_config: Where = field(default_factory=Where)
    rules: tuple[Rule, ...] = ()
    failure_policy: str = "Fail"
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    timeout_seconds: int = 10
    side_effects: str = ""


class _Hooks(msgspec.Struct):
    webhooks: tuple[Hook, ...] = ()


class _Verdict(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    patch: str = ""
    status: dict[str, Any] | None = None
    warnings: tuple[str, ...] | None = None


class _Review(msgspec.Struct):
    response: _Verdict


class Webhooks:
    """All hooks, kept up with the store."""

    def __init__(self, store: Store):
        self._store = store
        self._hooks: dict[str, list[Hook]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._load()
        store.observe(self._applied)

    def _load(self) -> None:
        for resource in (MUTATING, VALIDATING):
            found: list[Hook] = []
            for record in self._store.all(resource):
                try:
                    found += msgspec.json.decode(record.data, type=_Hooks).webhooks
                except msgspec.DecodeError:
                    continue
            self._hooks[resource] = found

    def _applied(self, change: Change) -> None:
        if change.key.resource in (MUTATING, VALIDATING):
            self._load()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def wanted(self, question: Question) -> bool:
        """Whether any hook might want to hear of it."""
        return any(
            rule.covers(question)
            for hooks in self._hooks.values()
            for hook in hooks
            for rule in hook.rules
            if question.kind.group != GROUP
        )

    async def ask(
        self, question: Question, content: Content | None, old: Content | None
    ) -> tuple[Content, tuple[str, ...]]:
        """The object as hooks have changed it, if all agree, and what they want its author to know."""
        warnings: list[str] = []
        for hook in self._chosen(MUTATING, question, content, old):
            verdict = await self._verdict(hook, question, content, old)
            if verdict is not None:
                warnings += verdict.warnings or ()
                if verdict.patch and content is not None:
                    content = _patched(hook, verdict.patch, content)
        hooks = list(self._chosen(VALIDATING, question, content, old))
        verdicts = await asyncio.gather(
            *(self._verdict(hook, question, content, old) for hook in hooks), return_exceptions=True
        )
        for one in verdicts:
            if isinstance(one, BaseException):
                raise one
            warnings += (one.warnings or ()) if one is not None else ()
        return content or {}, tuple(warnings)

    def _chosen(
        self, sort: str, question: Question, content: Content | None, old: Content | None
    ) -> Sequence[Hook]:
        shown = [one for one in (content, old) if one is not None]
        return [
            hook
            for hook in self._hooks[sort]
            if any(rule.covers(question) for rule in hook.rules)
            and self._in_place(hook, question, shown[0])
            and (
                hook.object_selector is None
                or any(matches_labels(hook.object_selector, _labels(one)) for one in shown)
            )
        ]

    def _in_place(self, hook: Hook, question: Question, content: Content) -> bool:
        """Whether the namespace is one that the hook looks at."""
        if hook.namespace_selector is None:
            return True
        if question.kind.id == "namespaces":
            return matches_labels(hook.namespace_selector, _labels(content))
        if not question.kind.namespaced:
            return True
        record = self._store.get("namespaces", "", question.namespace)
        return record is None or matches_labels(hook.namespace_selector, record.labels)

    # -- one hook

    async def _verdict(
        self, hook: Hook, question: Question, content: Content | None, old: Content | None
    ) -> _Verdict | None:
        """What it says; nothing if it cannot be asked and that does not matter."""
        if question.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            verdict = await self._call(hook, review(question, content, old))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            if hook.failure_policy == "Ignore":
                return None
            said = str(error)[:500] or type(error).__name__
            raise Refusal(
                500, f'Internal error occurred: failed calling webhook "{hook.name}": {said}'
            ) from None
        if not verdict.allowed:
            raise _denied(hook, verdict.status or {})
        return verdict

    async def _call(self, hook: Hook, body: Content) -> _Verdict:
        where = hook.client_config
        if not where.url.startswith("https://"):
            raise ValueError(
                "only webhooks with an https:// url can be asked: an embedded cluster has no network of services"
            )
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        limit = aiohttp.ClientTimeout(total=min(max(hook.timeout_seconds, 1), 30))
        async with self._session.post(
            where.url,
            data=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
            ssl=_trust(where.ca_bundle),
            timeout=limit,
            allow_redirects=False,
        ) as answer:
            data = await read_body(answer.content, LARGEST)
            if len(data) > LARGEST:
                raise ValueError(f"it answered with more than {LARGEST} bytes")
            if answer.status != 200:
                raise ValueError(f"it answered with status {answer.status}")
        verdict = msgspec.json.decode(data, type=_Review).response
        if verdict.uid != body["request"]["uid"]:
            raise ValueError("it answered another question than it was asked")
        return verdict


@lru_cache(64)
def _trust(bundle: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle:
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _labels(content: Content) -> Mapping[str, str]:
    labels = (content.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def review(question: Question, content: Content | None, old: Content | None) -> Content:
    """The question as webhooks expect it."""
    kind, user = question.kind, question.user
    version = {"group": kind.group, "version": kind.version}
    request: Content = {
        "uid": str(uuid.uuid4()),
        "kind": {**version, "kind": kind.kind},
        "resource": {**version, "resource": kind.plural},
        "requestKind": {**version, "kind": kind.kind},
        "requestResource": {**version, "resource": kind.plural},
        "name": question.name,
        "operation": question.operation,
        "userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups)},
        "object": content,
        "oldObject": old,
        "dryRun": question.dry_run,
        "options": None,
    }
    if question.namespace:
        request["namespace"] = question.namespace
    if question.part:
        request["subResource"] = request["requestSubResource"] = question.part
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _patched(hook: Hook, patch: str, content: Content) -> Content:
    try:
        changed = json_patch(content, msgspec.json.decode(base64.b64decode(patch)))
        if isinstance(changed, dict) and isinstance(changed.get("metadata"), dict):
            return changed
        why = "what it leaves is no object"
    except (PatchError, ValueError, binascii.Error) as error:
        why = str(error)[:500]
    raise Refusal(
        500, f'Internal error occurred: the patch of webhook "{hook.name}" cannot be applied: {why}'
    )


def _denied(hook: Hook, status: Content) -> Refusal:
    code, message, reason = status.get("code"), status.get("message"), status.get("reason")
    said = message or reason
    text = f'admission webhook "{hook.name}" denied the request'
    text += f": {str(said)[:2000]}" if said else " without explanation"
    good = isinstance(code, int) and 400 <= code < 600
    return Refusal(
        code if isinstance(code, int) and good else 403, text, str(reason)[:100] if reason else "Forbidden"
    )
