"""Calls of the admission webhooks that are registered for a write."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import aiohttp
import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.embedded.admission.match_conditions import MatchError, conditions_match
from stromboli.embedded.admission.webhook_configuration import Webhook, WebhookConfiguration
from stromboli.embedded.admission.write_request import WriteRequest, admission_review
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.patching.json_patch import json_patch
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change
from stromboli.kube.aiohttp_requests import read_body

GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{GROUP}"
LARGEST = 8 * 1024 * 1024
"""Bytes of a response."""


class _AdmissionResponse(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    patch: str = ""
    status: dict[str, Any] | None = None
    warnings: tuple[str, ...] | None = None


class _AdmissionReview(msgspec.Struct):
    response: _AdmissionResponse


class Webhooks:
    """All registered webhooks, kept up with the store."""

    def __init__(self, store: Store):
        self._store = store
        self._webhooks: dict[str, list[Webhook]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._load()
        store.on_apply(self._on_apply)

    def _load(self) -> None:
        for resource in (MUTATING, VALIDATING):
            self._webhooks[resource] = []
            for record in self._store.list(resource):
                with suppress(msgspec.DecodeError):
                    configuration = msgspec.json.decode(record.data, type=WebhookConfiguration)
                    self._webhooks[resource] += configuration.webhooks

    def _on_apply(self, change: Change) -> None:
        if change.key.resource in (MUTATING, VALIDATING):
            self._load()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def intercept(self, request: WriteRequest) -> bool:
        """Whether the rules of any webhook cover a write; configurations of webhooks are exempt."""
        return request.kind.group != GROUP and any(
            webhook.covers(request) for webhooks in self._webhooks.values() for webhook in webhooks
        )

    async def admit(
        self, request: WriteRequest, content: Content | None, old: Content | None
    ) -> tuple[Content, tuple[str, ...]]:
        """The object after the patches of mutating webhooks, if no webhook denies it, and their warnings."""
        warnings: list[str] = []
        for webhook in self._selected(MUTATING, request, content, old):
            response = await self._call(webhook, request, content, old)
            if response is not None:
                warnings += response.warnings or ()
                if response.patch and content is not None:
                    content = _patched(webhook, response.patch, content)
        validating = self._selected(VALIDATING, request, content, old)
        responses = await asyncio.gather(
            *(self._call(webhook, request, content, old) for webhook in validating), return_exceptions=True
        )
        for outcome in responses:
            if isinstance(outcome, BaseException):
                raise outcome
            warnings += (outcome.warnings or ()) if outcome is not None else ()
        return content or {}, tuple(warnings)

    def _selected(
        self, resource: str, request: WriteRequest, content: Content | None, old: Content | None
    ) -> Sequence[Webhook]:
        """The webhooks whose rules and selectors match; an object selector matches the old or the new object."""
        versions = [version for version in (content, old) if version is not None]
        return [
            webhook
            for webhook in self._webhooks[resource]
            if webhook.covers(request)
            and self._selects_namespace(webhook, request, versions[0])
            and (
                webhook.object_selector is None
                or any(matches_labels(webhook.object_selector, _labels(version)) for version in versions)
            )
        ]

    def _selects_namespace(self, webhook: Webhook, request: WriteRequest, content: Content) -> bool:
        if webhook.namespace_selector is None:
            return True
        if request.kind.id == "namespaces":
            return matches_labels(webhook.namespace_selector, _labels(content))
        if not request.kind.namespaced:
            return True
        record = self._store.get("namespaces", "", request.namespace)
        return record is None or matches_labels(webhook.namespace_selector, record.labels)

    def _matches(
        self, webhook: Webhook, request: WriteRequest, content: Content | None, old: Content | None
    ) -> bool:
        """Whether all conditions hold; if that cannot be told, the failure policy decides."""
        if not webhook.match_conditions:
            return True
        try:
            return conditions_match(
                webhook.match_conditions, admission_review(request, content, old)["request"]
            )
        except MatchError as error:
            if webhook.failure_policy == "Ignore":
                return False
            kind = request.kind
            raise StatusError(
                403,
                f'{kind.id} "{request.name}" is forbidden: admission webhook "{webhook.name}": {error}',
                "Forbidden",
            ) from None

    async def _call(
        self, webhook: Webhook, request: WriteRequest, content: Content | None, old: Content | None
    ) -> _AdmissionResponse | None:
        """None if the conditions do not match, or if the call fails and the failure policy ignores that."""
        if not self._matches(webhook, request, content, old):
            return None
        if request.dry_run and webhook.side_effects not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{webhook.name}" does not support dry run')
        try:
            response = await self._post(webhook, admission_review(request, content, old))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            if webhook.failure_policy == "Ignore":
                return None
            why = _why(error)[:500] or type(error).__name__
            raise StatusError(
                500, f'Internal error occurred: failed calling webhook "{webhook.name}": {why}'
            ) from None
        if not response.allowed:
            raise _denied(webhook, response.status or {})
        return response

    async def _post(self, webhook: Webhook, review: Content) -> _AdmissionResponse:
        client_config = webhook.client_config
        if not client_config.url.startswith("https://"):
            raise ValueError(
                "only webhooks with an https:// url can be asked: an embedded cluster has no network of services"
            )
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        timeout = aiohttp.ClientTimeout(total=min(max(webhook.timeout_seconds, 1), 30))
        async with self._session.post(
            client_config.url,
            data=msgspec.json.encode(review),
            headers={"Content-Type": "application/json"},
            ssl=_tls_context(client_config.ca_bundle),
            timeout=timeout,
            allow_redirects=False,
        ) as answer:
            data = await read_body(answer.content, LARGEST)
            if len(data) > LARGEST:
                raise ValueError(f"it answered with more than {LARGEST} bytes")
            if answer.status != 200:
                raise ValueError(f"it answered with status {answer.status}")
        response = msgspec.json.decode(data, type=_AdmissionReview).response
        if response.uid != review["request"]["uid"]:
            raise ValueError("it answered another question than it was asked")
        return response


def _why(error: Exception) -> str:
    """What went wrong in a call; aiohttp's own text has the object of the TLS context in it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            cause = str(error.certificate_error)
        else:
            number = error.os_error.errno or 0  # its text is Python's, and not the system's
            cause = os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
        return f"cannot connect to {error.host}:{error.port}: {cause}"
    return str(error)


@lru_cache(64)
def _tls_context(bundle: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle:
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _labels(content: Content) -> Mapping[str, str]:
    labels = (content.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _patched(webhook: Webhook, patch: str, content: Content) -> Content:
    try:
        changed = json_patch(content, msgspec.json.decode(base64.b64decode(patch)))
        if isinstance(changed, dict) and isinstance(changed.get("metadata"), dict):
            return changed
        why = "what it leaves is no object"
    except (StatusError, ValueError, binascii.Error) as error:
        why = str(error)[:500]
    raise StatusError(
        500, f'Internal error occurred: the patch of webhook "{webhook.name}" cannot be applied: {why}'
    )


def _denied(webhook: Webhook, status: Content) -> StatusError:
    code, message, reason = status.get("code"), status.get("message"), status.get("reason")
    why = message or reason
    text = f'admission webhook "{webhook.name}" denied the request'
    text += f": {str(why)[:2000]}" if why else " without explanation"
    if not isinstance(code, int) or not 400 <= code < 600:
        code = 403
    return StatusError(code, text, str(reason)[:100] if reason else "Forbidden")
