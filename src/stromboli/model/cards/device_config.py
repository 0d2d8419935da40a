"""Names and partitions of cards: by the ConfigMap of the device plugin, or built in (spec 04 10.3, 10.6)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, field

from stromboli.api import card_names
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.model.cards.card import MAX_OF_A_CARD, Geometry, MigInstance

CONFIG_KEY = "device-config.yaml"
MAX_GEOMETRIES = 64
"""How many geometries a model of GPU may have, and how many kinds of instances a geometry."""
MAX_NPU_MODELS = 64
"""How many models of NPUs a configuration may name, and how many templates each."""
_WORD = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,42}")
"""A common word: with `-devices-to-allocate` behind it, the name of an annotation has at most 63 characters."""


class KnownGeometries(Struct, frozen=True, rename="camel"):
    """The MIG geometries of some models of GPUs."""

    models: tuple[str, ...] = ()
    """Parts of the type that a card is registered with."""
    geometries: tuple[Geometry, ...] = field(default=(), name="allowedGeometries")


class NvidiaConfig(Struct, frozen=True, rename="camel"):
    """The resources by which pods request parts of GPUs, and the partitions of GPUs."""

    count_name: str = field(default=card_names.VGPU_NUMBER, name="resourceCountName")
    memory_name: str = field(default=card_names.VGPU_MEMORY, name="resourceMemoryName")
    cores_name: str = field(default=card_names.VGPU_CORES, name="resourceCoreName")
    percentage_name: str = field(default="", name="resourceMemoryPercentageName")
    memory_factor: int = field(default=0, name="gpuMemoryFactor")
    known_geometries: tuple[KnownGeometries, ...] = field(default=(), name="knownMigGeometries")

    def geometries_of(self, card_type: str) -> tuple[Geometry, ...]:
        """The partitions of a card of this type; empty if its type contains no known model."""
        for known in self.known_geometries:
            if any(model in card_type for model in known.models):
                return known.geometries
        return ()


class NpuTemplate(Struct, frozen=True, rename="camel"):
    """A size in which memory of an NPU is allocated."""

    name: str = ""
    memory: int = 0


class NpuConfig(Struct, frozen=True, rename="camel"):
    """One model of Ascend NPUs that HAMi shares."""

    word: str = field(default="", name="commonWord")
    resource_name: str = ""
    memory_name: str = field(default="", name="resourceMemoryName")
    memory_allocatable: int = 0
    memory_capacity: int = 0
    templates: tuple[NpuTemplate, ...] = ()

    @property
    def cores_name(self) -> str:
        return f"{self.resource_name}-core"

    def template(self, memory: int) -> NpuTemplate | None:
        """The smallest template with enough memory, or the whole card, whose name is empty; none if it is too small."""
        for template in sorted(self.templates, key=lambda template: template.memory):
            if memory <= template.memory:
                return template
        return NpuTemplate("", self.memory_allocatable) if memory <= self.memory_capacity else None


class NpuConfigs(Struct, frozen=True, rename="camel"):
    """All models of NPUs, and whether nodes share them by hami-core by default."""

    hami_core: bool = field(default=False, name="hamiVnpuCore")
    configs: tuple[NpuConfig, ...] = ()


ASCEND_310P = NpuConfig(
    "Ascend310P",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-memory",
    21527,
    24576,
    (NpuTemplate("vir01", 3072), NpuTemplate("vir02", 6144), NpuTemplate("vir04", 12288)),
)


class DeviceConfig(Struct, frozen=True):
    """The configuration of `device-config.yaml`; the built-in one without such a ConfigMap."""

    nvidia: NvidiaConfig = NvidiaConfig()
    npus: NpuConfigs = field(default=NpuConfigs(), name="vnpus")


BUILT_IN = DeviceConfig(npus=NpuConfigs(configs=(ASCEND_310P,)))


def parse_device_config(text: str) -> DeviceConfig | str:
    """The configuration in a YAML text, or its error."""
    try:
        content: Any = next(iter(documents(text)), {})
        if isinstance(content, dict) and isinstance(content.get("vnpus"), list):
            content = {**content, "vnpus": {"configs": content["vnpus"]}}  # the older notation
        config = msgspec.convert(content, DeviceConfig)
    except (Unreadable, msgspec.ValidationError, RecursionError) as error:
        return f"{CONFIG_KEY}: {str(error)[:300]}"
    return _problem(config) or config


def _problem(config: DeviceConfig) -> str:
    """The error of a configuration that can be parsed."""
    for known in config.nvidia.known_geometries:
        if len(known.geometries) > MAX_GEOMETRIES:
            return f"{CONFIG_KEY}: a model with more than {MAX_GEOMETRIES} geometries"
        for geometry in known.geometries:
            if problem := _geometry_problem(geometry):
                return f"{CONFIG_KEY}: geometry {geometry.group[:63]!r}: {problem}"
    if len(config.npus.configs) > MAX_NPU_MODELS:
        return f"{CONFIG_KEY}: more than {MAX_NPU_MODELS} models of NPUs"
    numbers: list[Any] = [config.nvidia.memory_factor]
    for npu in config.npus.configs:
        if not npu.word or not npu.resource_name:
            return f"{CONFIG_KEY}: a model of NPUs without commonWord or resourceName"
        if not _WORD.fullmatch(npu.word):
            return f"{CONFIG_KEY}: commonWord {npu.word[:63]!r} cannot be part of names of annotations"
        if len(npu.templates) > MAX_NPU_MODELS:
            return f"{CONFIG_KEY}: {npu.word[:63]}: more than {MAX_NPU_MODELS} templates"
        numbers += [
            npu.memory_allocatable,
            npu.memory_capacity,
            *(template.memory for template in npu.templates),
        ]
    if any(not 0 <= number <= MAX_OF_A_CARD for number in numbers):
        return f"{CONFIG_KEY}: a number below 0 or above {MAX_OF_A_CARD}"
    return ""


def _geometry_problem(geometry: Geometry) -> str:
    if "-" in geometry.group or "[" in geometry.group or "]" in geometry.group:
        return "its name must not contain - [ or ], which separate names of slots"
    if len(geometry.instances) > MAX_GEOMETRIES:
        return f"more than {MAX_GEOMETRIES} kinds of instances"
    if any(not _is_instance(instance) for instance in geometry.instances):
        return f"memory and count of an instance must be 0 to {MAX_OF_A_CARD}"
    return ""


def _is_instance(instance: MigInstance) -> bool:
    return 0 <= instance.memory <= MAX_OF_A_CARD and 0 <= instance.count <= MAX_OF_A_CARD
