"""The nodes that filters exclude for a pod, and the reported reasons."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.plugins.predicates.plugin import Switches
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from tests.manifests import binds, events, group, node, policy
from tests.plugins.kubernetes import HOSTNAME, REQUIRED, ZONE, Manifest

WEB = {"matchLabels": {"app": "web"}}


def pod(name: str, of: str = "j", on: str = "", app: str = "", **spec: Any) -> Manifest:
    """A pod with any spec: pending in its group, or running where it says."""
    meta: Manifest = {"name": name, "labels": {"app": app} if app else {}}
    meta["annotations"] = {"scheduling.k8s.io/group-name": of} if not on else {}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    whole = {"schedulerName": "volcano", "containers": containers, **spec}
    if on:
        whole["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"kind": "Pod", "metadata": meta, "spec": whole, "status": status}


def make_world(*manifests: Manifest, actions: str = "allocate", **arguments: Any) -> World:
    given = {f"predicate.{name}": value for name, value in arguments.items()}
    rules = policy(actions, "gang", ("predicates", given))
    return World(policy=rules).add(*manifests, group("j", 1))


def refusals(*manifests: Manifest, **arguments: Any) -> dict[str, str]:
    """Why each node refuses the pod `p`, before anything is placed."""
    world = make_world(*manifests, actions="enqueue", **arguments)
    world.step()
    return world.refusals("predicates", "p")


def message(*manifests: Manifest, **arguments: Any) -> str:
    """What is reported to the user of the pod `p`."""
    world = make_world(*manifests, **arguments)
    session = world.step().outcome.session
    return next(
        verdict.message for verdicts in session.attempts.verdicts.values() for verdict in verdicts.values()
    )


def anti(*terms: Manifest) -> Manifest:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def near(*terms: Manifest) -> Manifest:
    return {"podAffinity": {REQUIRED: list(terms)}}


def term(key: str = HOSTNAME, selector: Manifest | None = None, **more: Any) -> Manifest:
    return {"topologyKey": key, "labelSelector": selector or WEB, **more}


def zoned(name: str, zone: str = "", **sizes: str) -> Manifest:
    have = {HOSTNAME: name, **({ZONE: zone} if zone else {})}
    return node(name, labels=have, cpu=sizes.pop("cpu", "8"), **sizes)


def tainted(name: str, effect: str, unschedulable: bool = False) -> Manifest:
    return {
        **zoned(name),
        "spec": {"taints": [{"key": "k", "effect": effect}], "unschedulable": unschedulable},
    }


# -- the node itself


def test_a_full_node_says_so_and_other_reasons_stand_beside_it() -> None:
    full = node("full", labels={}, cpu="8", pods="1")
    assert message(full, pod("r", on="full"), pod("p")) == "0/1 nodes are unavailable: 1 Insufficient pods."
    assert refusals(full, pod("r", on="full"), pod("p")) == {"full": "node(s) pod number exceeded"}


def test_a_node_without_pod_slots_takes_nothing() -> None:
    without = zoned("a")
    del without["status"]["allocatable"]["pods"]
    assert refusals(without, pod("p")) == {"a": "node(s) pod number exceeded"}


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cordoned = {**zoned("a"), "spec": {"unschedulable": True}}
    tolerant = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert refusals(cordoned, pod("p")) == {"a": "node(s) were unschedulable"}
    assert refusals(cordoned, pod("p", tolerations=tolerant)) == {"a": ""}
    assert refusals(cordoned, pod("p", tolerations=[{"operator": "Exists"}])) == {"a": ""}


@pytest.mark.parametrize(
    ("effect", "reason"), [("NoSchedule", "!"), ("NoExecute", "!"), ("PreferNoSchedule", "")]
)
def test_taints_that_are_not_soft_keep_pods_away(effect: str, reason: str) -> None:
    expected = "node(s) had untolerated taint(s)" if reason else ""
    assert refusals(tainted("a", effect), pod("p")) == {"a": expected}
    assert refusals(tainted("a", effect), pod("p"), TaintTolerationEnable=False) == {"a": ""}


def test_an_empty_nodeselector_asks_for_nothing_and_an_empty_term_list_for_the_impossible() -> None:
    assert refusals(zoned("a"), pod("p", nodeSelector={})) == {"a": ""}
    impossible = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}
    reason = "node(s) didn't match Pod's node affinity/selector"
    assert refusals(zoned("a"), pod("p", affinity=impossible)) == {"a": reason}
    assert refusals(zoned("a"), pod("p", affinity=impossible), NodeAffinityEnable=False) == {"a": ""}


def test_an_invalid_term_does_not_spoil_the_others() -> None:
    wrong = {"matchExpressions": [{"key": ZONE, "operator": "Like", "values": ["east"]}]}
    right = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["west"]}]}
    terms = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [wrong, right]}}}
    reasons = refusals(zoned("a", "east"), zoned("b", "west"), pod("p", affinity=terms))
    assert [bool(reasons["a"]), bool(reasons["b"])] == [True, False]


def test_names_that_exclude_each_other_are_refused_before_any_node_is_looked_at() -> None:
    both = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": both}]}}}
    text = "1 plugin NodeAffinity pre-predicates failed pod affinity terms conflict"
    assert message(zoned("a"), pod("p", affinity=terms)) == f"0/1 nodes are unavailable: {text}."


# -- ports


def ports(*wanted: Manifest) -> list[Manifest]:
    return [{"name": "m", "ports": list(wanted), "resources": {"requests": {"cpu": "1"}}}]


def test_a_host_port_is_taken_per_protocol_and_address() -> None:
    used = pod("r", on="a", containers=ports({"hostPort": 80, "hostIP": "10.0.0.1"}))
    taken = "node(s) didn't have free ports for the requested pod ports"

    def asking(**port: Any) -> str:
        return refusals(zoned("a"), used, pod("p", containers=ports(port)))["a"]

    assert asking(hostPort=80) == taken
    assert asking(hostPort=80, hostIP="10.0.0.1") == taken
    assert asking(hostPort=80, hostIP="10.0.0.2") == ""
    assert asking(hostPort=80, protocol="UDP") == ""
    assert asking(hostPort=81) == ""
    assert refusals(
        zoned("a"), used, pod("p", containers=ports({"hostPort": 80})), NodePortsEnable=False
    ) == {"a": ""}


def test_a_port_of_a_sidecar_counts_and_that_of_an_init_container_does_not() -> None:
    def beside(policy: str) -> dict[str, str]:
        helper = {**ports({"hostPort": 80})[0], "restartPolicy": policy}
        return refusals(
            zoned("a"),
            pod("r", on="a", initContainers=[helper]),
            pod("p", containers=ports({"hostPort": 80})),
        )

    assert beside("Always")["a"]
    assert not beside("")["a"]


def test_pods_placed_in_the_same_cycle_hold_their_ports() -> None:
    twins = [pod(f"p{place}", containers=ports({"hostPort": 80})) for place in range(3)]
    world = make_world(zoned("a"), zoned("b"), *twins)
    assert sorted(binds(world.step()).values()) == ["a", "b"]


# -- pod affinity


def test_the_first_of_its_kind_may_go_anywhere_that_has_the_key_and_the_next_must_follow() -> None:
    gang = [pod(f"p{place}", app="web", affinity=near(term(ZONE))) for place in range(2)]
    world = make_world(zoned("none"), zoned("a", "east"), zoned("b", "west", cpu="16"), *gang)
    assert len({world.cluster.nodes[name].labels[ZONE] for name in binds(world.step()).values()}) == 1


def test_pods_must_match_all_required_terms_to_count_for_any() -> None:
    tier = term(ZONE, {"matchLabels": {"tier": "x"}})
    half = pod("r", on="a", app="web")
    whole = {**pod("r2", on="b", app="web")}
    whole["metadata"]["labels"]["tier"] = "x"
    reason = "node(s) didn't match pod affinity rules"
    asking = pod("p", affinity=near(term(), tier))
    assert refusals(zoned("a", "1"), zoned("b", "2"), half, whole, asking) == {"a": reason, "b": ""}
    assert refusals(zoned("a", "1"), half, asking, PodAffinityEnable=False) == {"a": ""}


def test_a_pod_placed_earlier_in_the_cycle_repels_others_by_its_own_rule() -> None:
    shy = pod("a-shy", affinity=anti(term(selector={"matchLabels": {"app": "loud"}})))
    loud = pod("b-loud", app="loud")
    world = make_world(zoned("a"), shy, loud)
    assert binds(world.step()) == {"a-shy": "a"}, "wart: Volcano places both"


def test_existing_anti_affinity_names_itself_and_is_curable() -> None:
    running = pod("r", on="a", affinity=anti(term()))
    world = make_world(zoned("a"), zoned("b"), running, pod("p", app="web", nodeSelector={HOSTNAME: "a"}))
    session = world.step().outcome.session
    (verdict,) = [verdict for verdicts in session.attempts.verdicts.values() for verdict in verdicts.values()]
    assert {reason.text: reason.curable for reason in verdict.reasons} == {
        "node(s) didn't satisfy existing pods anti-affinity rules": True,
        "node(s) didn't match Pod's node affinity/selector": False,
    }


def test_a_namespace_selector_that_matches_no_labels_means_every_namespace() -> None:
    """quirk: spec 04 2.6"""
    elsewhere = pod("r", on="a", app="web")
    elsewhere["metadata"]["namespace"] = "other"
    space = {"kind": "Namespace", "metadata": {"name": "other", "labels": {"env": "test"}}}
    strict = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}]}
    asking = pod("p", affinity=anti(term(namespaceSelector=strict)))
    assert refusals(zoned("a"), space, elsewhere, asking)["a"]


def test_a_term_that_makes_no_sense_is_refused_with_the_reason() -> None:
    wrong = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}
    text = 'plugin InterPodAffinity pre-predicates failed parsing pod: "Like" is not a valid label selector operator'
    assert text in message(zoned("a"), pod("p", affinity=anti(term(selector=wrong))))


# -- who shares an evaluation


def keys(world: World, *names: str) -> list[Any]:
    world.step()
    return [world.plugin("predicates").shape_key(world.task(name)) for name in names]


def test_pods_with_different_labels_share_while_no_pod_has_a_term() -> None:
    world = make_world(zoned("a"), pod("p", app="web"), pod("q", app="db"), pod("r"))
    assert len(set(keys(world, "p", "q", "r"))) == 1


def test_pods_share_only_if_the_same_terms_mean_them() -> None:
    shy = pod("shy", on="a", affinity=anti(term()))
    world = make_world(zoned("a"), shy, pod("p", app="web"), pod("q", app="db"), pod("r", app="other"))
    web, db, other = keys(world, "p", "q", "r")
    assert db == other != web
    world.remove(shy)
    assert len(set(keys(world, "p", "q", "r"))) == 1


def test_replicas_that_differ_in_an_unread_label_share() -> None:
    twins = [pod(f"p{place}", app="web", affinity=near(term(ZONE))) for place in range(2)]
    for place, twin in enumerate(twins):
        twin["metadata"]["labels"]["volcano.sh/task-index"] = str(place)
    world = make_world(zoned("a"), *twins)
    assert len(set(keys(world, "p0", "p1"))) == 1


# -- spreading


def spread(**more: Any) -> list[Manifest]:
    return [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": WEB,
            **more,
        }
    ]


def test_no_zone_runs_ahead_by_more_than_the_skew() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("none")]
    running = [pod("r", on="a", app="web")]
    asking = pod("p", app="web", topologySpreadConstraints=spread())
    mismatch = "node(s) didn't match pod topology spread constraints"
    reasons = refusals(*nodes, *running, asking)
    assert reasons == {"a": mismatch, "b": "", "none": f"{mismatch} (missing required label)"}
    assert not any(refusals(*nodes, *running, asking, PodTopologySpreadEnable=False).values())


def test_a_pod_that_is_not_counted_itself_may_join_the_fullest_zone_within_the_skew() -> None:
    nodes = [zoned("a", "1"), zoned("b", "2")]
    asking = pod("p", app="db", topologySpreadConstraints=spread())
    assert refusals(*nodes, pod("r", on="a", app="web"), asking) == {"a": "", "b": ""}


def test_too_few_domains_count_as_an_empty_one() -> None:
    asking = pod("p", app="web", topologySpreadConstraints=spread(minDomains=3))
    reasons = refusals(
        zoned("a", "1"), zoned("b", "2"), pod("r", on="a", app="web"), pod("s", on="b", app="web"), asking
    )
    assert all(reasons.values())


# -- claims


def claim(
    name: str, volume: str = "", phase: str = "Bound", storage: str | None = None, **meta: Any
) -> Manifest:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    spec = {"volumeName": volume, **({"storageClassName": storage} if storage else {})}
    whole = {"name": name, "annotations": annotations, **meta}
    return {"kind": "PersistentVolumeClaim", "metadata": whole, "spec": spec, "status": {"phase": phase}}


VOLUME = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}}
LATE = {"kind": "StorageClass", "metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"}
NOON = {"kind": "StorageClass", "metadata": {"name": "now"}, "volumeBindingMode": "Immediate"}
NAMED = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
MADE = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]


@pytest.mark.parametrize(
    ("objects", "volumes", "problem"),
    [
        ([], NAMED, 'VolumeZone … persistentvolumeclaim "c" not found'),
        ([claim("c", "gone")], NAMED, 'VolumeZone … persistentvolume "gone" not found'),
        ([claim("c")], NAMED, "VolumeZone … PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("c", storage="now"), NOON], NAMED, "VolumeZone … PersistentVolume had no name"),
        ([claim("c", storage="x")], NAMED, 'VolumeZone … storageclass.storage.k8s.io "x" not found'),
        (
            [VOLUME, claim("c", "v", phase="Lost")],
            NAMED,
            'VolumeBinding … persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        (
            [VOLUME, claim("c", "v", deletionTimestamp="2026-10-31T00:00:00Z")],
            NAMED,
            'VolumeBinding … persistentvolumeclaim "c" is being deleted',
        ),
        (
            [VOLUME, claim("c", "v", annotations={})],
            NAMED,
            "VolumeBinding … pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [],
            MADE,
            'VolumeBinding … waiting for ephemeral volume controller to create the persistentvolumeclaim "p-data"',
        ),
        (
            [VOLUME, claim("p-data", "v")],
            MADE,
            "VolumeBinding … PVC default/p-data was not created for pod default/p (pod is not owner)",
        ),
    ],
)
def test_claims_that_cannot_serve_keep_a_pod_from_every_node(
    objects: list[Manifest], volumes: list[Manifest], problem: str
) -> None:
    text = f"1 plugin {problem.replace('…', 'pre-predicates failed')}"
    assert message(zoned("a"), *objects, pod("p", volumes=volumes)) == f"0/1 nodes are unavailable: {text}."


def test_bound_claims_are_no_obstacle_and_no_claims_count_if_the_filters_are_off() -> None:
    bound = make_world(zoned("a"), VOLUME, claim("c", "v"), pod("p", volumes=NAMED))
    assert binds(bound.step()) == {"p": "a"}
    switches = {"VolumeZoneEnable": False, "VolumeBindingEnable": False, "NodeVolumeLimitsEnable": False}
    off = make_world(zoned("a"), pod("p", volumes=NAMED), **switches)
    assert binds(off.step()) == {"p": "a"}


@pytest.mark.parametrize("volumes", [NAMED, MADE])
def test_a_claim_that_binds_late_keeps_a_pod_waiting_while_there_is_no_volume(
    volumes: list[Manifest],
) -> None:
    owned = {"ownerReferences": [{"uid": "p", "controller": True}]}
    named = claim("c", storage="late", phase="Pending")
    made = claim("p-data", storage="late", phase="Pending", **owned)
    asking = pod("p", volumes=volumes)
    asking["metadata"]["uid"] = "p"
    result = make_world(zoned("a"), LATE, named, made, asking).step()
    assert binds(result) == {}
    reason = "node(s) didn't find available persistent volumes to bind"
    assert result.why("p") == f"0/1 nodes are unavailable: 1 {reason}."


def local(volume: str, zone: str) -> Manifest:
    """A volume that can be reached from the nodes of a zone."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return {"kind": "PersistentVolume", "metadata": {"name": volume}, "spec": {"nodeAffinity": affinity}}


def test_a_pod_goes_where_the_node_affinity_of_its_volumes_lets_it() -> None:
    nodes, asking = [zoned("a", "1"), zoned("b", "2"), zoned("none")], pod("p", volumes=NAMED)
    objects = [*nodes, claim("c", "v"), local("v", "2"), asking]
    mismatch = "node(s) didn't match PersistentVolume's node affinity"
    assert refusals(*objects) == {"a": mismatch, "b": "", "none": mismatch}
    assert binds(make_world(*objects).step()) == {"p": "b"}
    assert not any(refusals(*objects, VolumeBindingEnable=False).values())


def test_a_pod_stays_in_the_zones_of_its_volumes_on_nodes_that_have_one() -> None:
    labels = {"topology.kubernetes.io/zone": "2__3", "failure-domain.beta.kubernetes.io/region": "x__"}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "v", "labels": labels}, "spec": {}}
    nodes = [zoned("a", "1"), zoned("b", "2"), zoned("none")]
    objects = [*nodes, claim("c", "v"), volume, pod("p", volumes=NAMED)]
    assert refusals(*objects) == {"a": "node(s) had no available volume zone", "b": "", "none": ""}
    assert not any(refusals(*objects, VolumeZoneEnable=False).values())


def test_equal_pods_of_two_namespaces_go_each_to_its_own_volume() -> None:
    """They have one shape, and claims of one name."""
    world = make_world(zoned("a", "1"), zoned("b", "2"), local("v", "1"), local("w", "2"))
    for namespace, volume in (("here", "v"), ("there", "w")):
        asking = pod(f"p-{namespace}", volumes=NAMED)
        asking["metadata"]["namespace"] = namespace
        own_group = group("j", 1)
        own_group["metadata"]["namespace"] = namespace
        world.add(own_group, asking, claim("c", volume, namespace=namespace))
    assert binds(world.step()) == {"p-here": "a", "p-there": "b"}


def test_a_volume_that_moves_takes_its_pod_along() -> None:
    world = make_world(zoned("a", "1"), zoned("b", "2"), claim("c", "v"), local("v", "9"))
    world.add(pod("p", volumes=NAMED))
    assert binds(world.step()) == {}
    world.add(local("v", "2"))
    assert binds(world.step()) == {"p": "b"}


# -- arguments


def test_the_equivalence_cache_is_accepted_and_changes_nothing() -> None:
    """wart: with Volcano's cache, pods of one template share a verdict although one tolerates the taint."""
    annotations = {"volcano.sh/template-uid": "j-w"}
    plain, tolerant = pod("p0"), pod("p1", tolerations=[{"key": "k", "operator": "Exists"}])
    for manifest in (plain, tolerant):
        manifest["metadata"]["annotations"].update(annotations)
    world = make_world(tainted("a", "NoSchedule"), plain, tolerant, CacheEnable=True)
    assert binds(world.step()) == {"p1": "a"}


def test_all_of_volcanos_arguments_are_known_and_others_are_not() -> None:
    switches = (
        "NodeAffinity",
        "NodePorts",
        "TaintToleration",
        "PodAffinity",
        "NodeVolumeLimits",
        "VolumeZone",
    )
    more = ("PodTopologySpread", "VolumeBinding", "Cache", "DynamicResourceAllocation")
    given: dict[str, object] = {f"predicate.{name}Enable": True for name in (*switches, *more)}
    given |= {"volumebinding.bindTimeoutSeconds": 5, "volumebinding.weight": 2}
    given |= {
        "volumebinding.shape": [{"utilization": 0, "score": 5}],
        "dynamicresources.filterTimeoutSeconds": 3,
    }
    assert not parse_arguments(Switches, given)[1]
    (problem,) = parse_arguments(Switches, {"predicate.NodeAffinity": True})[1]
    assert "predicate.NodeAffinityEnable" in problem.message


def test_the_event_names_the_reasons_of_all_nodes() -> None:
    world = make_world(tainted("a", "NoSchedule"), tainted("b", "NoSchedule"), zoned("c", cpu="0"), pod("p"))
    (text,) = events(world.step(), type="Warning").values() or events(world.step()).values()
    assert (
        "nodes are unavailable: Insufficient cpu, node(s) had untolerated taint(s); tolerate a taint" in text
    )
