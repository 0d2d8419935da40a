"""DeviceClasses."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.devices.claim_validation import device_class_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import CLUSTER, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy


class DeviceClassStrategy(Strategy):
    has_generation = True

    def problems(self, content: Content) -> Iterable[Problem]:
        return device_class_problems(content)


KIND = builtin("resource.k8s.io", "deviceclasses", "DeviceClass", strategy=DeviceClassStrategy(), **CLUSTER)
