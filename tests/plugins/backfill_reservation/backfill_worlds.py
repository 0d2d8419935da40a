"""Small worlds with time limits, in which jobs wait for capacity."""

from stromboli.testing import Result, World
from stromboli.testing.world import NOON

__all__ = ["LIMIT", "NOON", "POLICY", "job", "step", "world"]

LIMIT = "stromboli.sh/time-limit"
POLICY = """
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: capacity
  - name: backfill-reservation
    arguments:
      mode: {mode}
"""


def world(nodes: str = "n1 cpu=10,memory=100Gi,pods=100", mode: str = "easy", queues: str = "") -> World:
    """A cluster with a policy that keeps promises; the first `step` is at noon, and each takes a second."""
    return World(nodes=nodes, queues=queues, policy=POLICY.format(mode=mode))


def step(world: World) -> Result:
    """A cycle; what it binds starts in the same second."""
    result = world.step()
    world.rehearsal.sync()
    return result


def job(world: World, name: str, cpu: int, limit: str | None = None, pods: int = 1, **terms: object) -> None:
    """A job whose pods ask for so many CPUs each, and run so long at most."""
    world.job(name, pods=pods, cpu=cpu, annotations={LIMIT: limit} if limit else {}, **terms)  # type: ignore[arg-type]
