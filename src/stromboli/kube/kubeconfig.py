"""The kubeconfig file as structs, with the fields that we support."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stromboli.api.decoding import explain
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.kube.credentials import BadConfig, read_file


class ClusterPart(msgspec.Struct, rename="kebab", gc=False):
    """An API server and how its certificate is verified."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Variable(msgspec.Struct, gc=False):
    name: str
    value: str = ""


class ExecPart(msgspec.Struct, rename="camel", gc=False):
    """A program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


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


def _resolve_paths(part: msgspec.Struct, folder: Path, *fields: str) -> None:
    """Paths are relative to the file's folder."""
    for field in fields:
        if getattr(part, field):
            setattr(part, field, str(folder / Path(getattr(part, field)).expanduser()))


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
