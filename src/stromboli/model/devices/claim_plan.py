"""What claims request, checked and compiled once for all nodes, and why a node cannot serve them (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.resources.quantity import QuantityError
from stromboli.api.types.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from stromboli.model.devices.pools.pool_devices import Amount, amount

if TYPE_CHECKING:
    from stromboli.api.types.devices import DeviceClass, DeviceRequest, DeviceTaint, ResourceClaimSpec
    from stromboli.model.devices.pools.node_pools import NodePool


# -- why a node has no devices for claims


class Lack(StrEnum):
    """Why a device cannot be allocated to a request."""

    IN_USE = "in use"
    SELECTOR = "not selected"
    NODE = "not for this node"
    TAINT = "tainted"
    COUNTER = "counter"
    CAPACITY = "capacity"
    CONSTRAINT = "constraint"


class Rejection(NamedTuple):
    """The number of devices that were refused for the same reason."""

    lack: Lack
    detail: str
    """The selector, the taint, the counter, the capacity or the constraint."""
    devices: int


class DeviceShortage(NamedTuple):
    """What is short on a node for the first request that cannot be served."""

    message: str
    """A sentence."""
    is_error: bool = False
    """Whether the claim, class or pools are invalid, so that other nodes do not help."""
    claim: int = 0
    """The place of the claim among those of the pod."""
    request: str = ""
    """`request`, or `request/alternative`."""
    device_class: str = ""
    rejections: tuple[Rejection, ...] = ()
    """Why the devices of the node were refused, the most frequent reason first."""
    asked: int = 0
    """The number of requested devices; 0 for all."""
    had: int = 0
    """The number of them on the node."""
    mistake: str = ""
    """The fix of an invalid claim, class or selector."""


FEWER_IN_CLAIM = "request fewer devices in a claim"
FEWER_IN_POD = "request fewer devices in the claims of a pod"
CREATE_CLASS = "create the DeviceClass, or request an existing one: kubectl get deviceclasses"
FIX_SELECTOR = "fix the selector of the claim or of its class"
FIX_KEY = (
    f"{FIX_SELECTOR}: kubectl get resourceslices -o yaml shows the attributes of devices, and has() tests whether a "
    "device has one"
)
"""The fix of a selector that reads an attribute which a device lacks."""


class SearchStopped(Exception):
    """The search cannot continue."""

    def __init__(self, shortage: DeviceShortage) -> None:
        super().__init__(shortage.message)
        self.shortage = shortage


def unserved(option: Option, index: int, rejections: Sequence[Rejection], invalid: Sequence[NodePool]) -> str:
    """A sentence about refused devices."""
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


# -- plans of claims


MAX_RESULTS = 32
"""Maximum devices of a claim."""
MAX_DEVICES = 128
"""Maximum devices of all claims of a pod; the search recurses some calls deeper with each."""


MAX_SELECTORS = 64 * 1024
"""Maximum characters of all different selectors of a pod's claims and of their classes."""


def device_classes(*specs: ResourceClaimSpec) -> dict[str, None]:
    """The names of all classes that claims name, in their order."""
    requests = [request for spec in specs for request in spec.devices.requests]
    asked = [option for request in requests for option in (request.exactly, *request.first_available)]
    return {option.device_class_name: None for option in asked if option is not None}


class Option(NamedTuple):
    """A request for devices of one class, or one of the alternatives of a request."""

    place: int
    """Different for all options of the claims."""
    request: str
    alternative: str
    """Empty if the request has no alternatives."""
    asked: ExactDeviceRequest
    device_class: DeviceClass
    selectors: tuple[tuple[str, str], ...]
    """The selectors of the class and of the request: the owner, and the expression."""
    capacity: Mapping[str, Amount]
    """The requested amount of each capacity of a device."""

    @property
    def name(self) -> str:
        return f"{self.request}/{self.alternative}" if self.alternative else self.request

    @property
    def takes_all(self) -> bool:
        return self.asked.allocation_mode == ALL_DEVICES

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Whether some toleration tolerates the taint."""
        for toleration in self.asked.tolerations:
            if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
                continue
            if toleration.operator == "Exists":
                return True
            if toleration.operator in ("", "Equal") and toleration.value == taint.value:
                return True
        return False


class RequestPlan(NamedTuple):
    """The options of a request, of which the first that is available is taken."""

    options: tuple[Option, ...]
    has_alternatives: bool


class ClaimPlan(NamedTuple):
    """The requests of a claim, and the constraints over their devices."""

    requests: tuple[RequestPlan, ...]
    constraints: tuple[DeviceConstraint, ...]


def plan_claims(
    specs: Sequence[ResourceClaimSpec], classes: Mapping[str, DeviceClass]
) -> tuple[ClaimPlan, ...]:
    """The plans of claims; raises SearchStopped if one cannot be satisfied anywhere."""
    options = 0
    plans = []
    for place, spec in enumerate(specs):
        planner = _Planner(place, classes, options)
        plans.append(planner.claim(spec))
        options = planner.options
    _check_selectors(plans)
    return tuple(plans)


def _check_selectors(plans: Iterable[ClaimPlan]) -> None:
    options = (option for plan in plans for request in plan.requests for option in request.options)
    size = sum(map(len, {expression for option in options for _, expression in option.selectors}))
    if size > MAX_SELECTORS:
        message = f"the selectors of the claims have {size} characters, at most {MAX_SELECTORS} are allowed for a pod"
        raise SearchStopped(DeviceShortage(message, True, mistake=FEWER_IN_POD))


class _Planner:
    """Checks and compiles one claim."""

    def __init__(self, claim: int, classes: Mapping[str, DeviceClass], options: int) -> None:
        self._claim = claim
        self._classes = classes
        self.options = options

    def claim(self, spec: ResourceClaimSpec) -> ClaimPlan:
        devices = spec.devices
        requests = tuple(self._request(request) for request in devices.requests)
        least = sum(min(_count(option) for option in request.options) for request in requests)
        if least > MAX_RESULTS:
            problem = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise self._stop(problem, mistake=FEWER_IN_CLAIM)
        for place, constraint in enumerate(devices.constraints):
            if not constraint.match_attribute and not constraint.distinct_attribute:
                raise self._stop(f"constraint #{place}: empty constraint (unsupported constraint type?)")
        return ClaimPlan(requests, devices.constraints)

    def _request(self, request: DeviceRequest) -> RequestPlan:
        if request.first_available:
            options = tuple(self._option(request.name, sub, sub.name) for sub in request.first_available)
            return RequestPlan(options, True)
        if request.exactly is None:
            raise self._stop("unknown request type", request.name)
        return RequestPlan((self._option(request.name, request.exactly, ""),), False)

    def _option(self, request: str, asked: ExactDeviceRequest, alternative: str) -> Option:
        name = f"{request}/{alternative}" if alternative else request
        if isinstance(asked, DeviceSubRequest) and asked.admin_access:
            raise self._stop("an alternative cannot have admin access", name)
        if asked.allocation_mode not in (ALL_DEVICES, EXACT_COUNT, ""):
            raise self._stop(f"unsupported count mode {asked.allocation_mode[:64]}", name)
        if asked.count < 0:
            raise self._stop(f"a count of {asked.count} devices", name)
        if not asked.device_class_name:
            raise self._stop("missing device class name (unsupported request type?)", name, CREATE_CLASS)
        device_class = self._classes.get(asked.device_class_name)
        if device_class is None:
            problem = f"device class {asked.device_class_name} does not exist"
            raise self._stop(problem, name, CREATE_CLASS)
        owners = ((f"class {device_class.name}", device_class.spec.selectors), ("claim", asked.selectors))
        selectors = tuple(
            (owner, self._expression(name, owner, place, selector))
            for owner, listed in owners
            for place, selector in enumerate(listed)
        )
        self.options += 1
        capacity = self._capacity(name, asked)
        return Option(self.options - 1, request, alternative, asked, device_class, selectors, capacity)

    def _expression(self, request: str, owner: str, place: int, selector: DeviceSelector) -> str:
        if selector.cel is None:
            message = f"{owner}, selector #{place}: CEL expression empty (unsupported selector type?)"
            raise self._stop(message, request, FIX_SELECTOR)
        return selector.cel.expression

    def _capacity(self, name: str, asked: ExactDeviceRequest) -> dict[str, Amount]:
        requests = asked.capacity.requests if asked.capacity is not None else {}
        try:
            amounts = {key: amount(quantity) for key, quantity in requests.items()}
        except QuantityError as error:
            raise self._stop(f"capacity: {error}", name) from None
        for key, asked_amount in amounts.items():
            if asked_amount.value < 0:
                raise self._stop(f"capacity {key[:64]}: {asked_amount.text} is less than nothing", name)
        return amounts

    def _stop(self, problem: str, request: str = "", mistake: str = "") -> SearchStopped:
        message = f"request {request}: {problem}" if request else problem
        return SearchStopped(DeviceShortage(message, True, self._claim, request, mistake=mistake))


def _count(option: Option) -> int:
    """The minimum number of devices of an option."""
    return 1 if option.takes_all else option.asked.devices
