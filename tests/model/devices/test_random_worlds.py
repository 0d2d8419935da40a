"""The allocator against a search that tries everything, on small random pools."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.model.devices.device_worlds import DeviceWorld, held
from tests.model.devices.naive_allocator import naive_allocation
from tests.model.devices.random_worlds import random_world


@given(st.integers(0, 2**32))
def test_the_first_solution_is_found_if_there_is_one(seed: int) -> None:
    random = Random(seed)
    world = random_world(random)
    whole = [each["name"] for each in world.devices if not each.get("allowMultipleAllocations")]
    used = {name for name in whole if random.random() < 0.2}
    found = DeviceWorld(*world.slices, classes=[world.device_class]).devices(
        *world.claims, in_use=held(*used)
    )
    expected = naive_allocation(world, used)
    assert (found if isinstance(found, list) else None) == expected, found
