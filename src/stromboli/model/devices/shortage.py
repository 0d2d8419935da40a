"""Why a node has no devices for claims."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.node_pools import NodePool


class Lack(StrEnum):
    """What keeps a device from being given to a request."""

    IN_USE = "in use"
    SELECTOR = "not selected"
    NODE = "not for this node"
    TAINT = "tainted"
    COUNTER = "counter"
    CAPACITY = "capacity"
    CONSTRAINT = "constraint"


class Rejection(NamedTuple):
    """How many devices were refused for the same reason."""

    lack: Lack
    detail: str
    """The selector, the taint, the counter, the capacity or the constraint."""
    devices: int


class DeviceShortage(NamedTuple):
    """What is short on a node for the first request that cannot be served."""

    message: str
    """A sentence."""
    is_error: bool = False
    """Whether claim, class or pools are at fault, so that looking at other nodes is no help."""
    claim: int = 0
    """The place of the claim among those of the pod."""
    request: str = ""
    """`request`, or `request/alternative`."""
    device_class: str = ""
    rejections: tuple[Rejection, ...] = ()
    """Why the devices that the node has could not be had, the most frequent reason first."""
    asked: int = 0
    """How many devices the request asks for; 0 if it takes all."""
    had: int = 0
    """How many of them the node has."""
    mistake: str = ""
    """If claim, class or selector is wrong: what fixes it."""


FEWER_IN_CLAIM = "request fewer devices in a claim"
FEWER_IN_POD = "request fewer devices in the claims of a pod"
CREATE_CLASS = "create the DeviceClass, or request an existing one: kubectl get deviceclasses"
FIX_SELECTOR = "fix the selector of the claim or of its class"
FIX_KEY = (
    f"{FIX_SELECTOR}: kubectl get resourceslices -o yaml shows the attributes of devices, and has() tests whether a "
    "device has one"
)
"""Of a selector that reads an attribute which a device lacks."""


class SearchStopped(Exception):
    """The search cannot go on."""

    def __init__(self, shortage: DeviceShortage) -> None:
        super().__init__(shortage.message)
        self.shortage = shortage


def unserved(option: Option, index: int, rejections: Sequence[Rejection], invalid: Sequence[NodePool]) -> str:
    """A sentence about devices that could not be had."""
    count = option.asked.devices
    devices = "all devices" if option.takes_all else f"{count} device{'s' if count != 1 else ''}"
    text = f"request {option.name}: {devices} of class {option.device_class.name}"
    if index and not option.takes_all:
        text += f", only {index} can be had"
    if rejections:
        text += ": " + ", ".join(_phrase(rejection) for rejection in rejections[:5])
    elif not index:
        text += ": there are none"
    if invalid:
        text += f"; pool {'/'.join(invalid[0].id)} is invalid: {invalid[0].invalid}"
    return text


def _phrase(rejection: Rejection) -> str:
    detail = " ".join(rejection.detail.split())[:100]
    match rejection.lack:
        case Lack.IN_USE | Lack.NODE:
            return f"{rejection.devices} {rejection.lack}"
        case Lack.SELECTOR:
            return f"{rejection.devices} not selected by {detail!r}"
        case Lack.TAINT:
            return f"{rejection.devices} with the taint {detail}"
        case Lack.COUNTER:
            return f"{rejection.devices} for which counter {detail} does not suffice"
        case Lack.CAPACITY:
            return f"{rejection.devices} with too little capacity {detail}"
    return f"{rejection.devices} that {detail} excludes"
