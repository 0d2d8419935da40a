"""What a node is by itself: the labels that a kubelet sets, and the `nodeInfo` of its status.

Real nodes are this machine. Simulated ones have identities of their own, which follow from their names.
"""

from __future__ import annotations

import platform
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from stromboli import __version__
from stromboli.api import names
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content

VERSION = "v1.34.0-stromboli"
_NAMESPACE = uuid.UUID("6f7c1d9e-5f0b-5d0a-9f43-3c8a4f6c2b11")
"""Of identities that are made of names."""


def kubelet_labels(name: str) -> dict[str, str]:
    system, architecture = platform.system().lower(), _architecture()
    return {
        names.HOSTNAME: name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": system,
        "beta.kubernetes.io/arch": architecture,
    }


def node_info(name: str, kind: str) -> Content:
    """The `nodeInfo` of its status."""
    return {
        "kubeletVersion": VERSION,
        "kubeProxyVersion": VERSION,
        "containerRuntimeVersion": f"stromboli://{__version__}",
        "kernelVersion": platform.release(),
        "operatingSystem": platform.system().lower(),
        "architecture": _architecture(),
        **(_this_machine() if kind == node_annotations.REAL else _simulated_machine(name)),
    }


def _simulated_machine(name: str) -> dict[str, str]:
    machine = uuid.uuid5(_NAMESPACE, name)
    return {
        "osImage": "Simulated",
        "machineID": machine.hex,
        "systemUUID": str(machine),
        "bootID": str(uuid.uuid5(machine, "boot")),
    }


@cache
def _this_machine() -> dict[str, str]:
    """As its operating system says; what it does not say, or not to us, is made of its name."""
    machine = _first_line("/etc/machine-id", "/var/lib/dbus/machine-id") or _made_up(platform.node()).hex
    return {
        "osImage": _os_image(),
        "machineID": machine,
        "systemUUID": _first_line("/sys/class/dmi/id/product_uuid") or str(_made_up(machine)),
        "bootID": _first_line("/proc/sys/kernel/random/boot_id") or str(_made_up(f"{machine} boot")),
    }


def _made_up(text: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, text)


def _os_image() -> str:
    with suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    version = platform.mac_ver()[0]
    return f"macOS {version}" if version else platform.system()


def _first_line(*paths: str) -> str:
    """Of the first file that can be read and has something in it."""
    for path in paths:
        with suppress(OSError, UnicodeDecodeError):
            if line := Path(path).read_text().strip():
                return line.splitlines()[0]
    return ""


def _architecture() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
