"""drf: the job with the smaller dominant share comes first, flat or along queue paths (spec 03 4, 5)."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.dimensions import CPU, MEMORY
from stromboli.plugins.drf import JobTree
from stromboli.testing import World

NODE = "n1 cpu=8,memory=16Gi,pods=110"


HIERARCHICAL = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: drf
    enableHierarchy: true
  - name: predicates
"""


def test_extra_tasks_go_to_the_job_with_the_smaller_share_in_turns():
    world = World(nodes=NODE)
    world.job("fat", pods=8, minimum=1, cpu=2, memory="1Gi", phase="Inqueue")
    world.job("slim", pods=8, minimum=1, cpu=1, memory="1Gi", phase="Inqueue")
    result = world.run("allocate", plugins="gang | drf predicates")
    assert result.bound_per_job == {"default/fat": 2, "default/slim": 4}


def test_the_dominant_resource_counts_not_the_sum():
    world = World(nodes="n1 cpu=10,memory=10Gi,pods=110")
    world.job("cpu-heavy", pods=9, minimum=1, cpu=3, memory="1Gi", phase="Inqueue")
    world.job("memory-heavy", pods=9, minimum=1, cpu=1, memory="4Gi", phase="Inqueue")
    result = world.run("allocate", plugins="gang | drf predicates")
    assert result.bound_per_job == {"default/cpu-heavy": 2, "default/memory-heavy": 2}


def hierarchy(world, name, path, weights):
    world.add(
        {
            "kind": "Queue",
            "metadata": {
                "name": name,
                "annotations": {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights},
            },
        }
    )


def test_a_branch_of_twice_the_weight_gets_twice_as_much():
    world = World(nodes="n1 cpu=9,memory=90Gi,pods=110")
    hierarchy(world, "eng", "root/eng", "1/2")
    hierarchy(world, "sci", "root/sci", "1/1")
    for name in ("eng", "sci"):
        world.job(f"{name}-job", queue=name, pods=9, minimum=1, cpu=1, memory="1Gi", phase="Inqueue")
    result = world.run(policy=HIERARCHICAL)
    assert result.bound_per_job == {"default/eng-job": 6, "default/sci-job": 3}


def test_two_queues_below_one_branch_share_what_the_branch_gets():
    world = World(nodes="n1 cpu=8,memory=80Gi,pods=110")
    hierarchy(world, "dev", "root/eng/dev", "1/1/1")
    hierarchy(world, "prod", "root/eng/prod", "1/1/1")
    hierarchy(world, "sci", "root/sci", "1/1")
    for name in ("dev", "prod", "sci"):
        world.job(f"{name}-job", queue=name, pods=8, minimum=1, cpu=1, memory="1Gi", phase="Inqueue")
    result = world.run(policy=HIERARCHICAL)
    assert result.bound_per_job == {"default/dev-job": 2, "default/prod-job": 2, "default/sci-job": 4}


def test_a_path_with_too_few_weights_is_taken_as_weight_one():
    world = World(nodes="n1 cpu=2,memory=80Gi,pods=110")
    hierarchy(world, "odd", "root/odd/deeper", "1")
    world.job("job", queue="odd", pods=2, cpu=1, memory="1Gi", phase="Inqueue")
    assert world.run(policy=HIERARCHICAL).bound_per_job == {"default/job": 2}


def test_a_path_of_any_length_costs_no_queue_its_turn():
    world = World(nodes="n1 cpu=2,memory=80Gi,pods=110")
    hierarchy(world, "deep", "/".join(["root", *"a" * 3000]), "1")
    hierarchy(world, "flat", "root/flat", "1/1")
    for name in ("deep", "flat"):
        world.job(f"{name}-job", queue=name, cpu=1, memory="1Gi", phase="Inqueue")
    result = world.run(policy=HIERARCHICAL)
    assert (result.bound_per_job, result.failures) == ({"default/deep-job": 1, "default/flat-job": 1}, [])


def shares(branch):
    """Everything a tree knows, by path."""
    return (
        branch.held,
        branch.share,
        branch.saturated,
        {key: shares(child) for key, child in branch.children.items()},
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)),
        max_size=12,
    )
)
def test_a_tree_that_was_kept_up_equals_one_that_is_grown_afresh(changes):
    world = World(nodes="n1 cpu=20,memory=20Gi,pods=110")
    hierarchy(world, "dev", "root/eng/dev", "1/2/1")
    hierarchy(world, "prod", "root/eng/prod", "1/2/3")
    hierarchy(world, "sci", "root/sci", "1/1")
    for name in ("dev", "prod", "sci", "default"):
        world.job(name, queue=name, pods=6, cpu=1, memory="1Gi")
    world.cluster.settle()
    jobs, total = list(world.cluster.jobs.values()), world.cluster.total
    tree = JobTree(jobs, total)
    for which, cpu, memory in changes:
        job = jobs[which]
        job.allocated = {CPU: 1000 * cpu, MEMORY: memory * 2**30}
        tree.set_held(job, dict(job.allocated))
        assert shares(tree.root) == shares(JobTree(jobs, total).root)


def test_a_trial_that_fails_leaves_the_tree_as_it_was():
    world = World(nodes="n1 cpu=20,memory=20Gi,pods=110").job("j", pods=6, cpu=1, memory="1Gi")
    world.cluster.settle()
    (job,) = world.cluster.jobs.values()
    tree = JobTree([job], world.cluster.total)
    before = shares(tree.root)
    with suppress(RuntimeError), tree.holding(job, {CPU: 1000}):
        assert shares(tree.root) != before
        raise RuntimeError
    assert shares(tree.root) == before
