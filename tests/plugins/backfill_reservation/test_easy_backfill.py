"""The first job that waits for room is promised a start, and nobody delays it."""

from stromboli.testing import World

LIMIT = "stromboli.sh/time-limit"
POLICY = """
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: backfill-reservation
    arguments:
      mode: {mode}
"""


def world(nodes: str = "n1 cpu=10,memory=100Gi,pods=100", mode: str = "easy") -> World:
    return World(nodes=nodes, policy=POLICY.format(mode=mode))


def job(world: World, name: str, cpu: int, limit: str | None = None, pods: int = 1) -> None:
    world.job(name, pods=pods, cpu=cpu, annotations={LIMIT: limit} if limit else {})


def test_a_short_job_starts_before_the_first_that_waits_and_a_long_one_does_not() -> None:
    here = world()
    job(here, "running", 6, "1h")
    here.step()
    job(here, "head", 8, "1h")
    job(here, "long", 4, "2h")
    job(here, "short", 4, "30m")
    assert here.step().bound_per_job == {"default/short": 1}


def test_a_long_job_starts_if_it_fits_beside_the_reservation() -> None:
    here = world()
    job(here, "running", 6, "1h")
    here.step()
    job(here, "head", 8, "1h")
    job(here, "long", 2, "2h")
    job(here, "another", 1)
    assert here.step().bound_per_job == {"default/long": 1}


def test_nodes_that_the_reservation_does_not_need_are_free_for_all() -> None:
    here = world("n1 cpu=10,memory=100Gi,pods=100; n2 cpu=4,memory=100Gi,pods=100")
    job(here, "running", 6, "1h")
    here.step()
    job(here, "head", 8, "1h")
    job(here, "long", 4, "5h")
    assert here.step().binds == {"default/long-0": "n2"}


def test_in_strict_order_nobody_starts_before_the_first_that_waits() -> None:
    here = world(mode="none")
    job(here, "running", 6, "1h")
    here.step()
    job(here, "head", 8, "1h")
    job(here, "short", 1, "1m")
    result = here.step()
    assert result.bound_per_job == {}
    assert "default/head waits for room before it" in result.why("short-0")


def test_a_job_that_can_never_fit_blocks_nobody() -> None:
    for mode in ("easy", "none"):
        here = world(mode=mode)
        job(here, "huge", 11, "1h")
        job(here, "small", 1)
        assert here.step().bound_per_job == {"default/small": 1}


def test_without_time_limits_there_is_no_promise_and_nobody_is_held_back() -> None:
    here = world()
    job(here, "running", 6)
    here.step()
    job(here, "head", 8, "1h")
    job(here, "small", 4)
    assert here.step().bound_per_job == {"default/small": 1}
