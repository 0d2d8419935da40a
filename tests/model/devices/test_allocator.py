"""Devices for claims: which ones are chosen, in which order, and what is said where there are none (spec 04 2.12)."""

from __future__ import annotations

from tests.model.devices.device_worlds import (
    DeviceWorld,
    device,
    held,
    make_claim,
    make_slice,
    request,
)

MODEL = 'device.attributes["gpu.example.com"].model'


def test_devices_are_taken_in_order() -> None:
    world = DeviceWorld(make_slice("s", ["d1", "d0", "d2"]))
    assert world.devices(make_claim(request(count=2)), make_claim(request())) == [["r=d1", "r=d0"], ["r=d2"]]


def test_a_device_in_use_is_left_out() -> None:
    world = DeviceWorld(make_slice("s", ["d0", "d1"]))
    assert world.devices(make_claim(request()), in_use=held("d0")) == [["r=d1"]]


def test_a_selector_chooses() -> None:
    world = DeviceWorld(make_slice("s", [device("d0", model="a"), device("d1", model="b")]))
    assert world.devices(make_claim(request("r", f'{MODEL} == "b"'))) == [["r=d1"]]


def test_too_few_devices_are_a_shortage() -> None:
    world = DeviceWorld(make_slice("s", ["d0", "d1"]))
    assert (
        world.devices(make_claim(request(count=3))) == "request r: 3 devices of class gpu, only 2 can be had"
    )


def test_an_attribute_that_a_device_lacks_is_an_error() -> None:
    world = DeviceWorld(make_slice("s", ["d0"]))
    answer = world.devices(make_claim(request("r", f'{MODEL} == "b"')))
    assert "error: " in answer
    assert 'CEL runtime error: no such key: "model"' in answer
