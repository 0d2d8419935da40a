"""Whether admission is asked, answers, and is believed."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime

from stromboli.cli.check.check_result import CheckResult, failed, ok, skipped, warning
from stromboli.cli.check.installation_facts import InstallationFacts
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of

CHECK = "webhooks"
DAYS_BEFORE_EXPIRY = 14
GROUP = ".volcano.sh"


def check_webhooks(facts: InstallationFacts) -> Iterator[CheckResult]:
    """The webhooks of Volcano's kinds, by service: whether it has endpoints, and until when its authority is valid."""
    if facts.is_local:
        yield ok(CHECK, "admission is built in")
        return
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    if refused := [facts.refused[kind] for kind in kinds if kind in facts.refused]:
        yield skipped(CHECK, refused[0])
        return
    webhooks = [
        (name_of(configuration), webhook)
        for kind in kinds
        for configuration in facts.objects.get(kind, ())
        for webhook in configuration.get("webhooks") or ()
        if str(webhook.get("name") or "").endswith(GROUP)
    ]
    if not webhooks:
        yield warning(
            CHECK,
            "nobody completes and checks what users submit",
            "deploy/admission installs that; without it mistakes show late, as jobs that do not start",
        )
        return
    results = [result for name, webhook in webhooks for result in _webhook(facts, name, webhook)]
    yield from dict.fromkeys(results)
    if not any(result.state != "ok" for result in results):
        yield ok(CHECK, f"{len(webhooks)} webhooks are asked and have endpoints")


def _webhook(facts: InstallationFacts, configuration: str, webhook: Manifest) -> Iterator[CheckResult]:
    client = webhook.get("clientConfig") or {}
    if service := client.get("service"):
        yield from _endpoints(facts, str(service.get("namespace") or ""), str(service.get("name") or ""))
    bundle = str(client.get("caBundle") or "")
    if not bundle:
        yield failed(
            CHECK,
            f"{configuration}: {webhook.get('name')} has no caBundle, so the API server does not believe it",
            "the admission process fills it in when it starts: its log says why it could not",
        )
        return
    expiry = expiry_of(bundle)
    if expiry is None:
        yield failed(CHECK, f"{configuration}: the caBundle of {webhook.get('name')} is no certificate")
        return
    days = (expiry - datetime.fromtimestamp(facts.now, UTC)).days
    if days < 0:
        yield failed(
            "certificates", f"{configuration}: the authority of webhooks ended on {expiry:%Y-%m-%d}", RENEW
        )
    elif days < DAYS_BEFORE_EXPIRY:
        yield warning(
            "certificates", f"{configuration}: the authority of webhooks ends on {expiry:%Y-%m-%d}", RENEW
        )


RENEW = "docs/admission.md says how certificates are renewed"


def _endpoints(facts: InstallationFacts, namespace: str, service: str) -> Iterator[CheckResult]:
    """Whether somebody serves it, where we may know."""
    if "EndpointSlice" in facts.refused or namespace != facts.namespace:
        return
    ready = [
        endpoint
        for item in facts.objects.get("EndpointSlice", ())
        if ((item.get("metadata") or {}).get("labels") or {}).get("kubernetes.io/service-name") == service
        for endpoint in item.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    ]
    if not ready:
        yield failed(
            CHECK,
            f"service {namespace}/{service} has no endpoints: what users submit is refused or unchecked",
            f"kubectl get pods -n {namespace}; is the admission process ready?",
        )


def expiry_of(bundle: str) -> datetime | None:
    """When the first certificate of a bundle in base64 ends that ends first; None if there is none."""
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except (binascii.Error, ValueError):
        return None
    return min(certificate.not_valid_after_utc for certificate in certificates)
