"""DeviceClasses."""

from __future__ import annotations

from stromboli.api.schemas.devices.claim_validation import device_class_problems
from stromboli.embedded.kinds.kind import CLUSTER, builtin
from stromboli.embedded.kinds.strategy import Strategy

KIND = builtin(
    "resource.k8s.io",
    "deviceclasses",
    "DeviceClass",
    strategy=Strategy(has_generation=True, problems=device_class_problems),
    **CLUSTER,
)
