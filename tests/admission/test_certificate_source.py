"""Certificates from files: what cannot be served is refused, and what nobody will accept is told."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from stromboli.admission.certificate_source import CertificateError, load, tell_expiry
from stromboli.admission.webhook_certificates import VALIDITY, Keys, issue

NOW = datetime.now(UTC)


def with_password(key: bytes) -> bytes:
    encryption = BestAvailableEncryption(b"password")
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def broken_keys() -> list[Keys]:
    keys = issue(["localhost"], NOW)
    others = issue(["localhost"], NOW)
    return [
        keys._replace(key=b""),
        keys._replace(key=b"nonsense"),
        keys._replace(certificate=b"nonsense"),
        keys._replace(key=others.key),
        keys._replace(key=with_password(keys.key)),
    ]


@pytest.mark.parametrize(
    "keys", broken_keys(), ids=["empty", "no key", "no certificate", "another key", "password"]
)
def test_keys_that_cannot_be_served_are_refused_and_not_asked_about(keys: Keys, tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="give both as PEM, the key without a password"):
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), keys, tmp_path)
    assert not list(tmp_path.iterdir()), "no key is left behind"


def test_a_certificate_that_has_expired_is_told(caplog: pytest.LogCaptureFixture) -> None:
    keys = issue(["localhost"], NOW)
    tell_expiry(keys, NOW)
    assert not caplog.messages
    for moment in (NOW + VALIDITY + timedelta(days=1), NOW - timedelta(days=1)):
        tell_expiry(keys, moment)
    assert [message.endswith("no webhook call will succeed") for message in caplog.messages] == [True, True]
