"""What a plugin author needs: build a world in three lines, run, assert on decisions.

    world = World(nodes="n1 cpu=4,memory=8Gi,pods=110", queues="research weight=2; prod")
    world.job("train", queue="research", minimum=2, pods=3, cpu=1)
    assert world.run(plugins="gang | my-plugin", plugin_classes=[MyPlugin]).bound_per_job == {"default/train": 3}

Everything goes in as Kubernetes objects, the way it would in a real cluster. Times are fixed, so are the decisions.
"""

from stromboli.testing.cycle_result import Result
from stromboli.testing.world import World

__all__ = ["Result", "World"]
