"""Certificates for one run of a control plane, made with openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_SERVER_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"


def make_certificates(folder: Path) -> None:
    """An authority (`ca`), the API server's and an administrator's certificate, a key for service accounts (`sa`)."""
    folder.mkdir(parents=True, exist_ok=True)
    _openssl(folder, "req", "-x509", *_NEW_KEY, "-days", "30", "-subj", "/CN=kubetest-ca", *_out("ca"))
    _issue(folder, "server", "/CN=kube-apiserver", _SERVER_NAMES)
    _issue(folder, "admin", "/O=system:masters/CN=admin", "")
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")


def _issue(folder: Path, name: str, subject: str, extra: str) -> None:
    (folder / f"{name}.ext").write_text(f"extendedKeyUsage=serverAuth,clientAuth\n{extra}\n")
    request = f"{name}.csr"
    _openssl(folder, "req", "-new", *_NEW_KEY, "-subj", subject, "-keyout", f"{name}.key", "-out", request)
    signed = (
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "30",
        "-extfile",
        f"{name}.ext",
    )
    _openssl(folder, "x509", "-req", "-in", request, *signed, "-out", f"{name}.crt")


def _out(name: str) -> tuple[str, ...]:
    return ("-keyout", f"{name}.key", "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(("openssl", *arguments), cwd=folder, check=True, capture_output=True, timeout=30)
