"""Claims that stay allocated without a user lose their devices."""

from stromboli.engine.decisions import ReleaseClaim
from stromboli.testing import World
from tests.device_manifests import allocated, claim, device_class, reserved, resource_slice, uses

PLACE, PLUGINS = "enqueue, allocate", "gang, predicates"


def world() -> World:
    return World(nodes="a cpu=4; b cpu=4").add(device_class(), resource_slice("a"), resource_slice("b"))


def released(result: object) -> list[str]:
    return [each.name for each in result.decisions if isinstance(each, ReleaseClaim)]  # type: ignore[attr-defined]


def test_a_claim_reserved_for_a_pod_that_has_no_place_is_released_and_given_elsewhere() -> None:
    made = world().job("old", cpu=4, running_on="a")
    made.add(allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"),)))
    made.job("j", cpu=1, spec=uses("c"))
    first = made.run(PLACE, PLUGINS)
    assert (released(first), first.binds) == (["c"], {})
    assert made.step().binds == {"default/j-0": "b"}


def test_a_claim_whose_pod_is_placed_is_kept() -> None:
    made = world().add(allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"),)))
    result = made.job("j", cpu=1, spec=uses("c")).run(PLACE, PLUGINS, cycles=2)
    assert (released(result), result.binds) == ([], {"default/j-0": "a"})


def test_a_claim_that_a_running_pod_uses_is_kept() -> None:
    made = world().add(allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"), reserved("old-0"))))
    made.job("old", cpu=4, running_on="a", spec=uses("c")).job("j", cpu=1, spec=uses("c"))
    assert released(made.run(PLACE, PLUGINS)) == []


def test_a_claim_reserved_for_an_unknown_consumer_is_kept() -> None:
    made = world().add(allocated(claim("c"), "a", "g0", reserved_for=(reserved("of-another-scheduler"),)))
    assert released(made.run(PLACE, PLUGINS)) == []


def test_a_release_that_is_on_its_way_is_not_decided_again_for_a_while() -> None:
    made = world().job("old", cpu=4, running_on="a")
    held = allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"),))
    made.add(held).job("j", cpu=1, spec=uses("c"))
    made.run(PLACE, PLUGINS)
    made.rehearsal.sync()
    made.add(held)  # the write has not arrived, or was refused
    assert released(made.step()) == []
    assert released(made.step(now=made.rehearsal.now() + 60)) == ["c"]


def test_a_claim_without_consumers_is_released_when_it_keeps_a_pod_from_its_nodes() -> None:
    made = world().job("old", cpu=4, running_on="a")
    made.add(allocated(claim("c"), "a", "g0")).job("j", cpu=1, spec={**uses("c"), "nodeSelector": {"x": "y"}})
    assert released(made.run(PLACE, PLUGINS)) == []
    made = world().add(allocated(claim("c"), "gone", "g0")).job("j", cpu=1, spec=uses("c"))
    assert released(made.run(PLACE, PLUGINS)) == ["c"]
