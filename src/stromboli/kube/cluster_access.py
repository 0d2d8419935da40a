"""The address of the API server and our credentials: from a kubeconfig file or from inside the cluster."""

from __future__ import annotations

import base64
import binascii
import logging
import os
import ssl
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from stromboli.api.decoding import explain
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.kube import credentials
from stromboli.kube.credentials import (
    BadConfig,
    Certificate,
    Credentials,
    ExecCredentials,
    ExecPart,
    FileCredentials,
    Header,
    Identity,
    StaticCredentials,
    checked_token,
    read_file,
)

log = logging.getLogger(__name__)

Part = TypeVar("Part")
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Trust:
    """How the API server's certificate is verified: by the system's authorities, or by those given in PEM."""

    authorities: bytes = b""
    verify: bool = True
    server_name: str = ""
    """The name in its certificate, if it differs from the host."""

    def context(self, certificate: Certificate | None = None) -> ssl.SSLContext:
        """A TLS context with our own certificate, if there is one; `BadConfig` if either cannot be used."""
        try:
            context = ssl.create_default_context(cadata=self.authorities.decode() or None)
        except (ssl.SSLError, ValueError) as error:
            raise BadConfig(f"certificate-authority: no PEM certificates: {error}") from None
        # Go, and so the rest of Kubernetes, accepts authorities without all extensions that this would ask for
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            _load(context, certificate)
        return context


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Through a file, as `ssl` reads certificates from files only."""
    with _private_file(certificate.chain + b"\n" + certificate.key) as path:
        try:
            context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise BadConfig(f"client-certificate, client-key: cannot be used: {error}") from None


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """The path of a file that other users cannot read: in memory on Linux, where no directory may be writable."""
    on_linux = sys.platform == "linux"
    with os.fdopen(os.memfd_create("key"), "wb") if on_linux else tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if on_linux else file.name


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server."""

    server: str
    """https://host:port, possibly with a path."""
    trust: Trust = Trust()
    credentials: Credentials = field(default_factory=StaticCredentials)
    namespace: str = ""
    """The default namespace, if one is configured."""
    proxy: str = ""
    source: str = ""
    """The file or flag it was read from."""


def find_access(
    kubeconfig: str = "",
    master: str = "",
    context: str = "",
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """By the flags, else from the pod's service account, else as `kubectl` would; `BadConfig` says what is missing."""
    if kubeconfig:
        return _access(read_kubeconfig([kubeconfig]), context, master)
    if master:
        return Access(_server(master, "--master"), source="--master")
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, service_account)
    paths = environment.get("KUBECONFIG", "").split(os.pathsep)
    if not any(paths):
        home = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
        if not home.exists():
            raise BadConfig("no API server: give --kubeconfig FILE, set KUBECONFIG, or run in a cluster")
        paths = [str(home)]
    return _access(read_kubeconfig(paths), context)


def in_cluster(environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access:
    """From the pod's service account, whose token is renewed in place."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    authorities = folder / "ca.crt"
    trust = Trust(read_file(authorities)) if authorities.exists() else Trust()
    namespace = folder / "namespace"
    return Access(
        _server(f"https://{f'[{host}]' if ':' in host else host}:{port}", "KUBERNETES_SERVICE_HOST"),
        trust,
        FileCredentials(token=folder / "token"),
        read_file(namespace).decode(errors="replace").strip() if namespace.exists() else "",
        source=str(folder),
    )


def _access(settings: Settings, context: str, master: str = "") -> Access:
    where = settings.source
    name = context or settings.current
    if not name:
        raise BadConfig(f"{where}: current-context: missing; kubectl config use-context sets it")
    try:
        chosen = _named(settings.contexts, "contexts", name)
        named_by = f", which context {name!r} names"
        cluster = _named(settings.clusters, "clusters", chosen.cluster, named_by)
        user = _named(settings.users, "users", chosen.user, named_by) if chosen.user else UserPart()
        server = _server(master or cluster.server, f"cluster {chosen.cluster!r}: server")
        trust = _trust(cluster, server)
        return Access(server, trust, _credentials(user, cluster), chosen.namespace, _proxy(cluster), where)
    except BadConfig as error:
        raise BadConfig(f"{where}: {error}") from None


def _named(parts: Mapping[str, Part], section: str, name: str, named_by: str = "") -> Part:
    if name not in parts:
        raise BadConfig(f"{section}: no {name!r}{named_by}; there is {', '.join(sorted(parts)) or 'none'}")
    return parts[name]


def _server(address: str, what: str) -> str:
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
        _ = parts.port
    except ValueError:
        usable = False
    if not address or not usable or parts.query or parts.fragment:
        raise BadConfig(f"{what}: {address!r} is no address like https://host:port")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _trust(cluster: ClusterPart, server: str) -> Trust:
    authorities = _content(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority"
    )
    if cluster.insecure_skip_tls_verify:
        if authorities:
            raise BadConfig("insecure-skip-tls-verify with a certificate-authority: remove one of them")
        log.warning(
            "INSECURE: insecure-skip-tls-verify is set: the connection to %s can be intercepted and modified",
            server,
        )
    elif server.startswith("http://"):
        log.warning("INSECURE: %s is not https: the connection can be read and modified by others", server)
    trust = Trust(authorities, not cluster.insecure_skip_tls_verify, cluster.tls_server_name)
    trust.context()
    return trust


def _proxy(cluster: ClusterPart) -> str:
    scheme = urlsplit(cluster.proxy_url).scheme if cluster.proxy_url else "http"
    if scheme not in ("http", "https"):
        raise BadConfig(f"proxy-url: {scheme}: only http and https proxies are supported")
    return cluster.proxy_url


def _credentials(user: UserPart, cluster: ClusterPart) -> Credentials:
    if user.auth_provider is not None:
        raise BadConfig("auth-provider: Kubernetes 1.26 dropped these; use an exec plugin instead")
    others = _impersonation(user)
    if user.exec is not None:
        if others:
            raise BadConfig("as: not supported together with exec")
        return _exec_credentials(user.exec, cluster)
    certificate = _certificate(user)
    token = Path(user.token_file) if user.token_file else None
    if token is None and user.token:
        others = (credentials.bearer(checked_token(user.token, "token")), *others)
    elif token is None and user.username:
        others = (credentials.basic(user.username, user.password), *others)
    renewed = user.client_certificate and not user.client_certificate_data and user.client_key
    if token is None and not renewed:
        return StaticCredentials(Identity(others, certificate))
    pair = (Path(user.client_certificate), Path(user.client_key)) if renewed else None
    return FileCredentials(token, pair, Identity(others, certificate))


def _certificate(user: UserPart) -> Certificate | None:
    chain = _content(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = _content(user.client_key_data, user.client_key, "client-key")
    if bool(chain) != bool(key):
        missing = "client-key" if chain else "client-certificate"
        raise BadConfig(f"{missing}: missing; a certificate and its key come together")
    if not chain:
        return None
    certificate = Certificate(chain, key)
    Trust().context(certificate)
    return certificate


def _content(data: str, path: str, name: str) -> bytes:
    """Inline data takes precedence over a path, as for kubectl."""
    if not data:
        return read_file(Path(path)) if path else b""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadConfig(f"{name}-data: not base64") from None


def _impersonation(user: UserPart) -> tuple[Header, ...]:
    headers = [("Impersonate-User", user.as_)] if user.as_ else []
    headers += [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    headers += [("Impersonate-Group", group) for group in user.as_groups or ()]
    for key, values in (user.as_user_extra or {}).items():
        headers += [(f"Impersonate-Extra-{key}", value) for value in values]
    if headers and not user.as_:
        raise BadConfig("as-uid, as-groups, as-user-extra: only together with as")
    if not all("".join(header).isprintable() for header in headers):
        raise BadConfig("as: not a name")
    return tuple(headers)


def _exec_credentials(part: ExecPart, cluster: ClusterPart) -> ExecCredentials:
    if part.interactive_mode == "Always":
        raise BadConfig(
            f"exec: {part.command} requires a terminal (interactiveMode Always), which is not supported"
        )
    if not part.provide_cluster_info:
        return ExecCredentials(part)
    info = {"server": cluster.server, "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify}
    if cluster.certificate_authority_data:
        info["certificate-authority-data"] = cluster.certificate_authority_data
    return ExecCredentials(part, info)


# -- the kubeconfig file as structs, with the fields that we support


class ClusterPart(msgspec.Struct, rename="kebab", gc=False):
    """An API server and how its certificate is verified."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class UserPart(msgspec.Struct, rename="kebab", gc=False):
    """Credentials."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: ExecPart | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] | None = None
    as_user_extra: dict[str, tuple[str, ...]] | None = None


class ContextPart(msgspec.Struct, rename="kebab", gc=False):
    """Which user on which cluster."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, gc=False):
    name: str
    cluster: ClusterPart


class NamedUser(msgspec.Struct, gc=False):
    name: str
    user: UserPart


class NamedContext(msgspec.Struct, gc=False):
    name: str
    context: ContextPart


class Kubeconfig(msgspec.Struct, rename="kebab", gc=False):
    """One file, or several merged; the first file that defines a name counts."""

    kind: str = "Config"
    current_context: str = ""
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None


class Settings(msgspec.Struct, gc=False):
    """Merged files, by name."""

    source: str
    current: str
    clusters: dict[str, ClusterPart]
    users: dict[str, UserPart]
    contexts: dict[str, ContextPart]


def read_kubeconfig(names: Iterable[str]) -> Settings:
    """All files merged. Of several, missing ones are skipped, as kubectl does."""
    paths = [Path(path).expanduser() for path in names if path]
    existing = [path for path in paths if path.exists()] if len(paths) > 1 else paths
    if not existing:
        raise BadConfig(f"{os.pathsep.join(map(str, paths)) or 'kubeconfig'}: no such file")
    settings = Settings(os.pathsep.join(map(str, existing)), "", {}, {}, {})
    for path in existing:
        _add(settings, path, _read(path))
    return settings


def _add(settings: Settings, path: Path, config: Kubeconfig) -> None:
    settings.current = settings.current or config.current_context
    for cluster in config.clusters or ():
        _resolve_paths(cluster.cluster, path.parent, "certificate_authority")
        settings.clusters.setdefault(cluster.name, cluster.cluster)
    for user in config.users or ():
        _resolve_paths(user.user, path.parent, "token_file", "client_certificate", "client_key")
        if user.user.exec is not None and os.sep in user.user.exec.command:
            _resolve_paths(user.user.exec, path.parent, "command")
        settings.users.setdefault(user.name, user.user)
    for context in config.contexts or ():
        settings.contexts.setdefault(context.name, context.context)


def _resolve_paths(part: msgspec.Struct, directory: Path, *names: str) -> None:
    """Paths are relative to the directory of the file."""
    for name in names:
        if getattr(part, name):
            setattr(part, name, str(directory / Path(getattr(part, name)).expanduser()))


def _read(path: Path) -> Kubeconfig:
    try:
        content = list(documents(read_file(path).decode()))
    except UnicodeDecodeError:
        raise BadConfig(f"{path}: not UTF-8 text") from None
    except Unreadable as error:
        raise BadConfig(f"{path}: {error}") from None
    if len(content) != 1 or not isinstance(content[0], dict):
        raise BadConfig(f"{path}: no kubeconfig: expected one mapping of settings")
    try:
        config = msgspec.convert(_without_nulls(content[0]), Kubeconfig)
    except (ValueError, RecursionError) as error:
        field, problem = explain(error)
        raise BadConfig(": ".join(part for part in (str(path), field, problem) if part)) from None
    if config.kind != "Config":
        raise BadConfig(f"{path}: kind {config.kind!r} is no kubeconfig; expected kind Config")
    return config


Plain = TypeVar("Plain")


def _without_nulls(value: Plain) -> Plain | dict[Any, Any] | list[Any]:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
