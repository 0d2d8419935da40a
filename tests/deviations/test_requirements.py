"""Where pods wait rather than start without what they require: docs/deviations.md, one test per row."""

from pathlib import Path

import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.testing import World
from tests.manifests import Manifest, hyper_node, node

PLACE = "enqueue, allocate, backfill"
CASES = Path(__file__).parents[1] / "conformance" / "cases"


def card_node(name: str) -> Manifest:
    """A node on which Volcano's device plugin has registered a vGPU card."""
    cards = {"volcano.sh/node-vgpu-register": "GPU-1,4,24576,NVIDIA-A10,true,hami-core:"}
    return node(name, annotations=cards, **{"volcano.sh/vgpu-number": 4})


def run_case(name: str) -> World:
    """The cluster of a conformance case."""
    case = read_case(str(CASES / f"{name}.json"))
    return World(policy=case.config).add(*case.objects)


@pytest.mark.parametrize(
    ("case", "job", "reason"),
    [
        (
            "topology/hard-without-the-plugin",
            "default/j",
            "no plugin in the policy honours a hard network topology",
        ),
        ("topology/no-hypernodes-at-all", "default/hard", "the cluster has no HyperNodes"),
    ],
)
def test_a_gang_whose_hard_topology_cannot_be_honoured_waits(case: str, job: str, reason: str) -> None:
    """Volcano places it anywhere (warts topology/*)."""
    result = run_case(case).step()
    assert result.binds == {}
    assert reason in result.pending[job].message


def test_a_gang_that_names_a_tier_which_nobody_has_waits() -> None:
    """Volcano warns in its log and places it anywhere (wart topology/unknown-tier-name)."""
    world = run_case("topology/hard-without-the-plugin")
    world.job(
        "named", pods=2, cpu=1, group={"networkTopology": {"mode": "hard", "highestTierName": "galaxy"}}
    )
    result = world.step()
    assert "default/named" not in result.bound_per_job
    assert (
        'highestTierName "galaxy"): no HyperNode has a tier with that name'
        in result.pending["default/named"].message
    )


def test_one_bad_hyper_node_stops_only_who_needs_it() -> None:
    """Volcano places no job with a topology as long as a HyperNode has two parents."""
    world = run_case("topology/child-with-two-parents-stops-topology-jobs")
    world.add(hyper_node("s1", 1, nodes=["n1"]))
    world.job("hard2", pods=1, cpu=1, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    world.job("soft", pods=1, cpu=1, group={"networkTopology": {"mode": "soft"}})
    assert world.step().bound_per_job.keys() >= {"default/hard2", "default/soft", "default/plain"}


@pytest.mark.parametrize("plugins", ["gang", "gang | predicates nodeorder"])
def test_a_pod_whose_devices_nobody_shares_out_waits(plugins: str) -> None:
    """Volcano counts parts of devices like any resource, and the pod runs without a card."""
    world = World().add(card_node("a"))
    world.job("j", cpu=1, resources={"volcano.sh/vgpu-number": 1})
    result = world.run(PLACE, plugins)
    assert result.binds == {}
    assert "no plugin in the policy shares out parts of devices" in result.why("j-0")


@pytest.mark.parametrize("resource", ["volcano.sh/gpu-memory", "huawei.com/Ascend310P-memory"])
def test_a_pod_whose_devices_need_no_registration_waits_as_well(resource: str) -> None:
    world = World().add(node("a", **{resource: 4})).job("j", cpu=1, resources={resource: 1})
    assert world.run(PLACE, "gang | predicates").binds == {}


def test_resources_named_like_vgpus_are_ordinary_ones_where_no_node_registers_cards() -> None:
    """As in Volcano: some other device plugin serves them."""
    world = World().add(node("a", **{"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 8192}))
    asked = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4096}
    world.job("j", pods=3, minimum=1, cpu=1, resources=asked)
    result = world.run(PLACE, "gang | predicates nodeorder")
    assert result.bound_per_job == {"default/j": 2}
    assert "Insufficient volcano.sh/vgpu" in result.why("j-2")


def test_pods_that_wait_for_their_vgpus_to_be_shared_out_start_once_no_node_registers_cards() -> None:
    world = World().add(card_node("a")).job("j", cpu=1, resources={"volcano.sh/vgpu-number": 1})
    assert world.run(PLACE, "gang | predicates").binds == {}
    assert world.add(node("a", **{"volcano.sh/vgpu-number": 4})).step().binds == {"default/j-0": "a"}


def test_a_pod_with_resource_claims_waits_while_nobody_allocates_them() -> None:
    """Volcano without `predicates` binds it without its devices."""
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    result = World(nodes="a cpu=8").job("j", pods=2, cpu=1, spec=claims).run(PLACE, "gang")
    assert result.binds == {}
    assert "spec.resourceClaims (gpu)" in result.pending["default/j"].message


def test_a_pod_with_a_numa_policy_waits_for_a_plugin_that_honours_it() -> None:
    """Volcano without `numa-aware` binds it anywhere."""
    sizes = {"cpu": "2", "memory": "1Gi"}
    containers = [{"name": "main", "resources": {"requests": sizes, "limits": sizes}}]
    annotations = {"volcano.sh/numa-topology-policy": "single-numa-node"}
    world = World(nodes="a cpu=8 memory=8Gi").job(
        "j", spec={"containers": containers}, annotations=annotations
    )
    assert world.run(PLACE, "gang").binds == {}


def test_a_pod_whose_claim_is_not_bound_waits_whatever_the_policy() -> None:
    """Volcano without `predicates` binds it."""
    volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
    result = World(nodes="a cpu=8").job("j", cpu=1, spec=volumes).run(PLACE, "gang")
    assert result.binds == {}
    assert result.why("j-0") == 'persistentvolumeclaim "c" not found'


def test_jobs_of_a_queue_that_requires_node_groups_wait_without_nodegroup() -> None:
    """Volcano without `nodegroup` binds them anywhere."""
    affinity = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g1"]}}
    queue: Manifest = {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"affinity": affinity}}
    world = World(nodes="a cpu=8 volcano.sh/nodegroup-name=g1").add(queue).job("j", cpu=1, queue="q")
    assert world.run(PLACE, "gang").binds == {}
    assert set(world.run(PLACE, "gang nodegroup").binds) == {"default/j-0"}
