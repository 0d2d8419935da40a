"""Rights: what the code does, and not one verb more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from stromboli.daemon.delegated_reviews import ACCESS_REVIEWS, TOKEN_REVIEWS
from stromboli.engine.decisions import (
    Bind,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import Request
from stromboli.scheduler.explain.explain_paths import NAMED_IN_CYCLES, POLICY
from stromboli.scheduler.mirror.cluster_watches import watched_kinds
from stromboli.scheduler.options import parse as parse_options
from stromboli.scheduler.writes import decision_requests
from tests.deploy.manifests import (
    DEBUG_ENDPOINTS,
    DEPLOY,
    EXPLAIN,
    NODE_LOCK,
    NODE_USAGE,
    ROOT,
    STANDALONE,
    TAKEOVER,
    Manifest,
    documents,
    name_of,
    only,
)

Right = tuple[str, str, str]
"""Group, resource, verb."""

VOLCANO = "scheduling.volcano.sh"
NATIVE = "scheduling.k8s.io"
DEVICES = "resource.k8s.io"
WRITES: dict[Right, str] = {
    ("", "pods/binding", "create"): "bind",
    ("", "pods", "get"): "look again after a bind whose answer was lost",
    ("", "pods", "delete"): "evict",
    ("", "pods", "patch"): "lift the queue's scheduling gate",
    ("", "pods/status", "patch"): "conditions, nominated node",
    ("", "events", "create"): "tell users",
    ("", "events", "patch"): "count what repeats",
    ("", "persistentvolumeclaims", "get"): "is a claim bound?",
    ("", "persistentvolumeclaims", "patch"): "on which node its volume is provisioned",
    ("", "persistentvolumes", "get"): "is a volume free, and can the node reach it?",
    ("", "persistentvolumes", "patch"): "which claim a volume is for",
    (DEVICES, "resourceclaims", "get"): "is a claim allocated?",
    (DEVICES, "resourceclaims", "create"): "for extended resources that devices stand for",
    (DEVICES, "resourceclaims", "patch"): "the finalizer of allocated claims",
    (DEVICES, "resourceclaims", "delete"): "if the pod of such a claim is not bound after all",
    (DEVICES, "resourceclaims/status", "patch"): "allocation and reservations",
    (DEVICES, "resourceclaims/binding", "patch"): "the same, for API servers from 1.36 on",
    (VOLCANO, "podgroups", "patch"): "phase, counts, conditions: there is no status subresource",
    (NATIVE, "podgroups/status", "patch"): "the condition PodGroupScheduled",
    (VOLCANO, "queues", "get"): "are `root` and `default` there?",
    (VOLCANO, "queues", "create"): "make them",
    (VOLCANO, "queues", "patch"): "remember fair shares in an annotation",
    (VOLCANO, "queues/status", "patch"): "what a queue uses",
    ("shard.volcano.sh", "nodeshards/status", "patch"): "which nodes we use",
}
NAMED = {("", "configmaps", verb): ["volcano-vgpu-device-config"] for verb in ("list", "watch")}
"""Rights on one object alone."""
LEASES = {
    ("coordination.k8s.io", "leases", "create"): [],
    ("coordination.k8s.io", "leases", "get"): ["volcano"],
    ("coordination.k8s.io", "leases", "update"): ["volcano"],
}
WITH_SHARDS = parse_options(["--scheduler-sharding-mode=hard"])
ALL = [
    *STANDALONE,
    *NODE_USAGE,
    *DEBUG_ENDPOINTS,
    *EXPLAIN,
    *documents(DEPLOY / "components" / "sharding" / "rbac.yaml"),
    *NODE_LOCK,
]
ROLES = [manifest for manifest in ALL if manifest["kind"] in ("ClusterRole", "Role")]


def rights_of(role: Manifest) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule.get("apiGroups", ()):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


def test_the_scheduler_may_do_what_it_does_and_nothing_else() -> None:
    read = {(RESOURCES[kind].group, RESOURCES[kind].plural) for kind in watched_kinds(WITH_SHARDS)}
    everything = read - {("", "configmaps")}
    wanted = {(*resource, verb) for resource in everything for verb in ("list", "watch")}
    wanted |= WRITES.keys() | NAMED.keys()
    granted = list(rights_of(only(STANDALONE, "ClusterRole")))
    assert sorted(granted) == sorted(wanted)


def test_the_lease_is_one_lease_in_one_namespace() -> None:
    role = only(STANDALONE, "Role")
    assert role["metadata"]["namespace"] == "volcano-system"
    granted = {
        (group, resource, verb): rule.get("resourceNames", [])
        for rule in role["rules"]
        for group, resource, verb in rights_of({"rules": [rule]})
    }
    assert granted == LEASES
    (container,) = only(STANDALONE, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--leader-elect-resource-name=volcano" in container["args"]


def test_whoever_debugs_is_checked_with_two_rights_more() -> None:
    granted = set(rights_of(only(DEBUG_ENDPOINTS, "ClusterRole")))
    assert granted == {_right("POST", f"{path}/x") for path in (TOKEN_REVIEWS, ACCESS_REVIEWS)}
    (subject,) = only(DEBUG_ENDPOINTS, "ClusterRoleBinding")["subjects"]
    account = only(STANDALONE, "ServiceAccount")["metadata"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


def test_questions_about_jobs_take_the_same_two_rights_and_users_a_way_to_the_leader() -> None:
    granted = set(rights_of(named(EXPLAIN, "ClusterRole", "stromboli-scheduler-explain")))
    assert granted == set(rights_of(only(DEBUG_ENDPOINTS, "ClusterRole")))
    subjects = only(DEBUG_ENDPOINTS, "ClusterRoleBinding")["subjects"]
    for name in ("stromboli-scheduler-explain", "stromboli-explain-cluster"):
        assert named(EXPLAIN, "ClusterRoleBinding", name)["subjects"] == subjects
    assert set(rights_of(only(EXPLAIN, "Role"))) == {
        ("coordination.k8s.io", "leases", "get"),
        ("", "pods", "get"),
        ("", "pods/portforward", "get"),
        ("", "pods/portforward", "create"),
    }
    (component,) = documents(DEPLOY / "components" / "explain" / "kustomization.yaml")
    assert "--enable-explain=true" in component["patches"][0]["patch"]


def test_what_concerns_the_whole_cluster_is_told_to_holders_of_one_role() -> None:
    role = named(EXPLAIN, "ClusterRole", "stromboli-explain-cluster")
    assert set(rights_of(role)) == {(kind.group, kind.plural, "list") for kind in NAMED_IN_CYCLES}
    (paths,) = [rule for rule in role["rules"] if "nonResourceURLs" in rule]
    assert paths == {"nonResourceURLs": [POLICY], "verbs": ["get"]}


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    return only([each for each in manifests if each["metadata"]["name"] == name], kind)


@pytest.mark.parametrize("role", ROLES, ids=name_of)
def test_no_role_has_a_wildcard_or_may_become_another(role: Manifest) -> None:
    for group, resource, verb in rights_of(role):
        assert "*" not in group + resource + verb
        assert verb not in ("escalate", "bind", "impersonate", "deletecollection")
        assert group != "rbac.authorization.k8s.io"
    assert not {path for rule in role["rules"] for path in rule.get("nonResourceURLs", ())} - {POLICY}


def test_the_scheduler_reads_no_secrets_and_changes_no_nodes() -> None:
    rights = set(rights_of(only(STANDALONE, "ClusterRole")))
    assert not {right for right in rights if right[1] in ("secrets", "pods/exec")}
    assert {verb for _, resource, verb in rights if resource == "nodes"} == {"list", "watch"}


def test_of_config_maps_the_scheduler_reads_one() -> None:
    rules = [rule for rule in only(STANDALONE, "ClusterRole")["rules"] if "configmaps" in rule["resources"]]
    named = {right: rule.get("resourceNames") for rule in rules for right in rights_of({"rules": [rule]})}
    assert named == NAMED


def test_locking_nodes_takes_two_rights_more() -> None:
    assert set(rights_of(only(NODE_LOCK, "ClusterRole"))) == {("", "nodes", "get"), ("", "nodes", "patch")}


@pytest.mark.parametrize("manifests", [STANDALONE, TAKEOVER], ids=["standalone", "takeover"])
def test_bindings_join_the_account_of_the_pods_with_the_roles(manifests: list[Manifest]) -> None:
    account = only(manifests, "ServiceAccount")["metadata"]
    pod = only(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]
    for kind in ("ClusterRole", "Role"):
        binding = only(manifests, f"{kind}Binding")
        assert binding["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind,
            "name": only(manifests, kind)["metadata"]["name"],
        }
        (subject,) = binding["subjects"]
        wanted = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        assert subject == wanted


def test_the_table_in_the_documentation_is_the_one_that_is_granted() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| (core|[a-z0-9.]+) \| ([a-z`, /]+) \| ([a-z, ]+) \|", text, re.M)
    documented = {
        ("" if group == "core" else group, resource, verb)
        for group, resources, verbs in rows
        for resource in re.findall(r"`([a-z/]+)`", resources)
        for verb in verbs.split(", ")
    }
    assert documented == set(rights_of(only(STANDALONE, "ClusterRole"))) | LEASES.keys()


def test_every_request_of_the_writer_is_allowed() -> None:
    bind = Bind("a", "b", "1", "n1", "a/j")
    evict = Evict("a", "b", "1", "n1", "a/j", "preempt")
    status = PodGroupStatus("a", "g", "Running", 1, 0, 0)
    requests = [
        decision_requests.binding(bind),
        Request("GET", decision_requests.pod_path("a", "b")),
        decision_requests.eviction_mark(evict, "", "volcano", 0),
        decision_requests.deletion(decision_requests.pod_path("a", "b"), "1"),
        decision_requests.pod_condition(PodCondition("a", "b", "1", "Unschedulable", ""), None),
        decision_requests.group_status(status, "1", "7", set(), []),
        decision_requests.native_condition(
            NativeGroupCondition("a", "g", "True", "", ""), "1", f"{NATIVE}/v1alpha2", 1, ""
        ),
        decision_requests.queue_status(QueueStatus("q", {}), []),
        decision_requests.queue_annotation(QueueAnnotation("q", "stromboli.sh/fair-share", "1")),
        decision_requests.shard_status(ShardStatus("s", (), (), ())),
        decision_requests.gate_removal(GateRemoval("a", "b", "1")),
    ]
    assert {_right(request.method, request.path) for request in requests} <= WRITES.keys()
    listed = decision_requests.list_of_one_group("a", "g")
    assert (listed.method, listed.path.partition("?")[0].rpartition("/")[2]) == ("GET", "podgroups")
    assert (VOLCANO, "podgroups", "list") in set(rights_of(only(STANDALONE, "ClusterRole")))


def _right(method: str, path: str) -> Right:
    """What a request to one object needs."""
    verbs = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    match = re.fullmatch(r"/(?:api|apis/([^/]+))/[^/]+(?:/namespaces/[^/]+)?/([^/]+)/[^/]+(/[^/]+)?", path)
    assert match is not None, path
    return match[1] or "", match[2] + (match[3] or ""), verbs[method]
