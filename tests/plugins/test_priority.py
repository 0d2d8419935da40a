"""priority: higher first (spec 03 2)."""

from stromboli.testing import World

ONE_SLOT = "n1 cpu=1,memory=8Gi,pods=110"


def test_the_job_of_higher_priority_comes_first():
    world = World(nodes=ONE_SLOT).job("old", cpu=1, priority=1).job("urgent", cpu=1, priority=100)
    assert world.run(plugins="priority gang").binds == {"default/urgent-0": "n1"}


def test_without_a_class_the_global_default_counts():
    world = World(nodes=ONE_SLOT)
    world.add({"kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 50, "globalDefault": True})
    world.job("low", cpu=1, priority=10).job("plain", cpu=1)
    assert world.run(plugins="priority gang").binds == {"default/plain-0": "n1"}


def test_among_equals_the_older_job_comes_first():
    world = World(nodes=ONE_SLOT).job("zebra", cpu=1).job("ape", cpu=1)
    assert world.run(plugins="priority gang").binds == {"default/zebra-0": "n1"}


def test_within_a_job_the_annotated_priority_of_a_pod_decides():
    world = World(nodes=ONE_SLOT).job("job", pods=2, minimum=1, cpu=1)
    world.add(
        {
            "kind": "Pod",
            "metadata": {
                "name": "job-special",
                "annotations": {"scheduling.k8s.io/group-name": "job", "volcano.sh/task-priority": "7"},
            },
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        }
    )
    assert world.run(plugins="priority gang").binds == {"default/job-special": "n1"}
