"""What claims count against limits of queues."""

from __future__ import annotations

from stromboli.model.devices.claim_use import device_amounts
from tests.model.devices.device_worlds import make_claim, request


def test_a_claim_counts_its_devices_and_their_capacity() -> None:
    claim = make_claim(request(count=2, capacity={"requests": {"memory": "3"}}))
    assert device_amounts(claim.spec) == {"deviceclass/gpu": 2000, "memory.deviceclass/gpu": 6000}


def test_amounts_below_zero_take_nothing_off_what_a_queue_uses() -> None:
    claim = make_claim(request("r", count=2, capacity={"requests": {"memory": "-3"}}), request("s", count=-5))
    assert device_amounts(claim.spec) == {"deviceclass/gpu": 2000}
