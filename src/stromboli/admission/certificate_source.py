"""Where the webhook server's certificate comes from: files that others renew, or a Secret that we renew.

Several servers share the Secret: the first that finds a renewal due writes new keys, with an optimistic lock; the
others read them at their next check.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
from cryptography import x509

from stromboli.admission.webhook_certificates import Keys, issue, needs_renewal
from stromboli.api.types.meta import Object
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

log = logging.getLogger(__name__)

SECRETS = Resource("", "v1", "secrets", "Secret")
ATTEMPTS = 5
_SECRET_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")

Now = Callable[[], datetime]


class CertificateError(Exception):
    """There is no certificate to serve with; the message says why and how to mend it."""


class CertificateFiles:
    """Keys in files, read again each time."""

    def __init__(self, certificate: str, key: str, authority: str) -> None:
        self._files = (authority, "", certificate, key)

    async def current(self) -> Keys:
        try:
            return Keys(*(Path(file).read_bytes() if file else b"" for file in self._files))
        except OSError as error:
            raise CertificateError(f"cannot read {error.filename}: {error.strerror}") from None


class _Secret(Object):
    data: dict[str, str] | None = None


class CertificateSecret:
    """Keys in a Secret, made when there are none and renewed before they end."""

    def __init__(self, client: Client, namespace: str, name: str, names: list[str], now: Now) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._names = names
        self._now = now

    async def current(self) -> Keys:
        for _ in range(ATTEMPTS):
            try:
                return await self._read_or_renew()
            except ApiError as error:
                if error.status != 409:
                    raise CertificateError(
                        f"cannot keep the certificate in Secret {self._namespace}/{self._name}: {error};"
                        " allow it, or give --tls-cert-file and --tls-private-key-file"
                    ) from None
                await asyncio.sleep(0.1)  # another server wrote first
        raise CertificateError(f"Secret {self._namespace}/{self._name} changes all the time")

    async def _read_or_renew(self) -> Keys:
        secret = await self._read()
        old = _keys(secret)
        if old is not None and not needs_renewal(old, self._names, self._now()):
            return old
        keys = issue(self._names, self._now(), old)
        body = {
            "data": {
                key: base64.b64encode(part).decode() for key, part in zip(_SECRET_KEYS, keys, strict=True)
            }
        }
        if secret is None:
            meta = {"name": self._name}
            await self._client.create(SECRETS, {**body, "metadata": meta, "type": "Opaque"}, self._namespace)
        else:
            patch = {**body, "metadata": {"resourceVersion": secret.metadata.resource_version}}
            await self._client.patch(SECRETS, self._name, patch, self._namespace)
        log.info("made a new certificate")
        return keys

    async def _read(self) -> _Secret | None:
        try:
            answer = await self._client.get(SECRETS, self._name, self._namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return msgspec.json.decode(answer, type=_Secret)


CertificateSource = CertificateFiles | CertificateSecret
"""Its `current` are the keys to serve with."""


def _keys(secret: _Secret | None) -> Keys | None:
    """The keys in a Secret, if it has all of them."""
    data = secret.data if secret is not None else None
    if not data or not all(data.get(key) for key in _SECRET_KEYS):
        return None
    try:
        return Keys(*(base64.b64decode(data[key], validate=True) for key in _SECRET_KEYS))
    except binascii.Error:
        return None


def tell_expiry(keys: Keys, now: datetime) -> None:
    """Warn of a certificate that API servers will not accept."""
    certificate = x509.load_pem_x509_certificates(keys.certificate)[0]
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begins <= now <= ends:
        log.warning(
            "the certificate is valid from %s to %s, not now: no webhook call will succeed", begins, ends
        )


def load(context: ssl.SSLContext, keys: Keys, folder: Path) -> None:
    """Serve new connections with these keys. Python reads them from files only."""
    files = folder / "tls.crt", folder / "tls.key"
    for file, content in zip(files, (keys.certificate, keys.key), strict=True):
        file.touch(mode=0o600)
        file.write_bytes(content)
    try:
        context.load_cert_chain(*files, password="")  # never ask on a terminal
    except ssl.SSLError as error:
        raise CertificateError(
            f"the certificate and its key do not fit: {error}; give both as PEM, the key without a password"
        ) from None
    finally:
        for file in files:
            file.unlink(missing_ok=True)
