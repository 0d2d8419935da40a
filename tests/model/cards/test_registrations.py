"""Cards from the annotations that device plugins write, real ones and hostile ones."""

from __future__ import annotations

import json
import time

import pytest

from stromboli.api.decoding import decode
from stromboli.api.types.node import Node
from stromboli.model.cards.card import Card, Slot, parse_share_name
from stromboli.model.cards.device_config import BUILT_IN, DeviceConfig, parse_device_config
from stromboli.model.cards.registrations import Models, Registration, read_registrations
from tests.manifests import Manifest, node
from tests.plugins.deviceshare.card_worlds import card, mig_config, vgpu_node

ALL = Models(BUILT_IN, vgpu=True, gpu_share=True, npus=True)


def read(manifest: Manifest, models: Models = ALL) -> tuple[list[Registration], list[str]]:
    object = decode(manifest)
    assert isinstance(object, Node)
    return read_registrations(object, models)


def test_a_registration_names_each_card_with_its_memory_type_health_and_mode() -> None:
    (registration,), problems = read(vgpu_node("a", card("GPU-0", 46068), card("GPU-1", health="false")))
    assert problems == []
    assert registration == Registration(
        "hamivgpu",
        (
            Card(0, "GPU-0", "NVIDIA-A100", True, 46068, 10),
            Card(1, "GPU-1", "NVIDIA-A100", False, 8000, 10),
        ),
        "hami-core",
    )


H200 = "GPU-5f2d8b14-12a1-e9d2-9783-1d417d7939c6,10,143771,NVIDIA-NVIDIA H200,true,hami-core:"
"""What the device plugin registers for an H200: nvidia-smi shows `NVIDIA H200` with 143771 MiB."""


def test_a_real_card_is_read_as_its_device_plugin_writes_it() -> None:
    (registration,), problems = read(vgpu_node("a", H200))
    assert problems == []
    uuid = "GPU-5f2d8b14-12a1-e9d2-9783-1d417d7939c6"
    assert registration.cards == (Card(0, uuid, "NVIDIA-NVIDIA H200", True, 143771, 10),)


@pytest.mark.parametrize("missing", ["vgpu-number", "vgpu-memory", "vgpu-cores"])
def test_a_node_that_offers_none_of_a_resource_has_no_cards(missing: str) -> None:
    assert read(vgpu_node("a", **{f"volcano.sh/{missing}": 0})) == ([], [])


def test_the_last_card_says_how_all_are_shared_and_mig_takes_a_known_geometry() -> None:
    config = parse_device_config(mig_config()["data"]["device-config.yaml"])
    assert isinstance(config, DeviceConfig)
    models = Models(config, vgpu=True)
    modes = [
        read(vgpu_node("a", card("GPU-0"), card("GPU-1", type=type_, mode="mig")), models)[0][0].mode
        for type_ in ("NVIDIA-A100", "NVIDIA-T4")
    ]
    assert modes == ["mig", "hami-core"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("GPU-0,10,8000:", "has 3 fields, expected at least 6"),
        (card("GPU-0").replace(",10,", ",-1,"), "'-1' is no whole number"),
        (card("GPU-0").replace(",10,", ",99999999999,"), "is no whole number"),
        (card("GPU-0", 8000).replace("8000", "lots"), "'lots' is no whole number"),
        (card("GPU-0") * 2, "'GPU-0' is no uuid, or that of two cards"),
        (card(""), "'' is no uuid"),
        ("".join(card(f"GPU-{i}") for i in range(1025)), "1025 cards, more than 1024"),
        (card("GPU-0") + "x" * 300_000, "300041 characters, more than 262144"),
    ],
)
def test_a_node_whose_registration_cannot_be_read_has_no_cards(entry: str, problem: str) -> None:
    registrations, (text,) = read(vgpu_node("a", entry))
    assert registrations == []
    assert problem in text
    assert len(text) < 300


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"id": 1}',
        '[{"id": "a", "count": -1}]',
        '[{"id": "a", "devmem": 1e99}]',
        json.dumps([{"id": f"npu-{i}"} for i in range(2000)]),
        json.dumps([{"id": "npu-0,Ascend310P,1:npu-1", "count": 1, "devmem": 1, "health": True}]),
        "[" * 100_000,
    ],
)
def test_npus_whose_registration_cannot_be_read_are_none(text: str) -> None:
    manifest = node(
        "a", annotations={"hami.io/node-register-Ascend310P": text}, **{"huawei.com/Ascend310P": 7}
    )
    begin = time.process_time()
    registrations, (problem,) = read(manifest)
    assert time.process_time() - begin < 1
    assert registrations == []
    assert problem.startswith("hami.io/node-register-Ascend310P: ")


def test_a_number_of_gpus_that_no_node_can_have_is_refused() -> None:
    sizes = {"volcano.sh/gpu-memory": 10**9, "volcano.sh/gpu-number": 10**9}
    registrations, (problem,) = read(node("a", **sizes))
    assert registrations == []
    assert "1000000000 cards, more than 1024" in problem


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("GPU-0fc3eda5-e98b", ("GPU-0fc3eda5-e98b", None)),
        ("GPU-0[group2-3]", ("GPU-0", Slot("group2", 3))),
        ("GPU-0[group2]", ("GPU-0", None)),
        ("GPU-0[a-b-3]", ("GPU-0", None)),
        ("GPU-0[a--3]", ("GPU-0", None)),
        ("GPU-0[a-99999999999999999999]", ("GPU-0", None)),
    ],
)
def test_the_name_of_a_share_is_a_card_and_perhaps_a_slot(name: str, parsed: tuple[str, Slot | None]) -> None:
    assert parse_share_name(name) == parsed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nvidia: [", "not YAML"),
        ("nvidia: {gpuMemoryFactor: many}", "gpuMemoryFactor"),
        ("nvidia: {gpuMemoryFactor: -1}", "a number below 0"),
        ("vnpus: [{commonWord: x}]", "without commonWord or resourceName"),
        ("vnpus: [{commonWord: 'a b', resourceName: c}]", "commonWord 'a b' cannot be part of names"),
        ("nvidia: {knownMigGeometries: [{allowedGeometries: [{group: a-b}]}]}", "must not contain -"),
        (
            "nvidia: {knownMigGeometries: [{allowedGeometries: [{group: g, geometries: [{count: -4}]}]}]}",
            "must be 0 to",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_says_why(text: str, problem: str) -> None:
    answer = parse_device_config(text)
    assert isinstance(answer, str)
    assert problem in answer
    assert answer.startswith("device-config.yaml: ")


def test_a_configuration_may_name_other_resources() -> None:
    config = parse_device_config("nvidia: {resourceCountName: nvidia.com/gpu, unknown: 1}")
    assert isinstance(config, DeviceConfig)
    assert (config.nvidia.count_name, config.nvidia.memory_name) == (
        "nvidia.com/gpu",
        "volcano.sh/vgpu-memory",
    )
