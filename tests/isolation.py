"""Keeps tests apart from the network and from programs that other machines lack."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.program import cached, helm_folder

BASIC_PROGRAMS = (
    "basename bash cat chmod cp cut date echo env false grep head kill ls mkdir mkfifo mktemp mv printenv printf pwd rm"
    " rmdir sed seq setpriv setsid sh sleep sort stty tail tee test timeout touch tr true xargs yes"
)
"""What every machine has; tests not marked `programs` find no other program in a tier."""
PYTHON_COMMANDS = ("python", "python3", "stromboli")

_getaddrinfo = socket.getaddrinfo
_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex


def isolate_network() -> None:
    """Let this process resolve no names over the network and connect to this machine alone."""
    socket.getaddrinfo = _local_addresses
    socket.socket.connect = _connect_locally(_connect)
    socket.socket.connect_ex = _connect_locally(_connect_ex)
    remove_proxies(os.environ)


def set_path(config: pytest.Config, every_program: bool) -> None:
    """Set PATH to Python and either every program of the machine or the basic ones."""
    if every_program:
        programs = [_built_programs(config), os.environ["PATH"]]
    else:
        programs = [_links(config, BASIC_PROGRAMS.split())]
    os.environ["PATH"] = os.pathsep.join([_python(config), *programs])


def remove_proxies(environment: MutableMapping[str, str]) -> None:
    """Take proxies out of an environment: clients of Python would look for servers of this machine behind them."""
    for name in [name for name in environment if name.lower().endswith("_proxy")]:
        del environment[name]


def _local_addresses(
    host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> Any:
    """Look up addresses and names of this machine; any other name is unknown."""
    name = host.decode() if isinstance(host, bytes) else host
    if name not in (None, "", "localhost", socket.gethostname()):
        flags |= socket.AI_NUMERICHOST
    return _getaddrinfo(host, port, family, type, proto, flags)


def _connect_locally(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    """Connect to addresses of this machine; any other is unreachable."""

    @functools.wraps(connect)
    def guarded(client: socket.socket, address: Any) -> Any:
        internet = client.family in (socket.AF_INET, socket.AF_INET6)
        if internet and client.type == socket.SOCK_STREAM and not _is_local(client.family, address[0]):
            raise OSError(errno.ENETUNREACH, f"tests connect to no other machine: {address[0]}")
        return connect(client, address)

    return guarded


@functools.cache
def _is_local(family: socket.AddressFamily, host: str) -> bool:
    """Whether a server of this machine could listen there."""
    with socket.socket(family, socket.SOCK_STREAM) as server:
        try:
            socket.getaddrinfo(host or None, 0, family)  # looks up no name over the network, as `bind` would
            server.bind((host, 0))
        except OSError:
            return False
    return True


def _python(config: pytest.Config) -> str:
    """Return a directory with Python and its commands alone: /usr/bin, for one, has others too."""
    beside = Path(sys.executable).parent
    if sys.prefix != sys.base_prefix:  # a virtual environment
        return str(beside)
    directory = _directory(config)
    for name in PYTHON_COMMANDS:
        if (beside / name).exists():
            (directory / name).symlink_to(beside / name)
    return str(directory)


def _links(config: pytest.Config, names: list[str]) -> str:
    """Make a directory with nothing but links to these programs."""
    found = {name: shutil.which(name) for name in names}
    if missing := [name for name, program in found.items() if program is None]:
        raise pytest.UsageError(f"tests need programs that are not on PATH: {', '.join(missing)}")
    directory = _directory(config)
    for name, program in found.items():
        (directory / name).symlink_to(str(program))
    return str(directory)


def _built_programs(config: pytest.Config) -> str:
    """Make a directory with the kubectl and the Helm that `make test-kubernetes` built."""
    directory = _directory(config)
    if (cached() / "kubetest").exists():
        kubectl = directory / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {cached() / "kubetest"} kubectl "$@"\n')
        kubectl.chmod(0o755)
    if (helm_folder() / "helm").exists():
        (directory / "helm").symlink_to(helm_folder() / "helm")
    return str(directory)


def _directory(config: pytest.Config) -> Path:
    directory = tempfile.TemporaryDirectory(prefix="stromboli-programs-")
    config.add_cleanup(directory.cleanup)
    return Path(directory.name)
