"""The controllers' manifests: each controller's rights are what it does, two replicas, safe pods."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers import selection
from stromboli.controllers.api_writer import ApiWriter
from stromboli.controllers.controller import Context
from stromboli.controllers.options import Options, parse
from stromboli.controllers.recorder import Recorder
from stromboli.controllers.sharding.sharding_config import config_of_yaml
from stromboli.controllers.store import Store
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.reflector import WatchScope
from stromboli.kube.request import GuardedClient
from tests.deploy.manifests import DEPLOY, Manifest, build, documents, name_of, only
from tests.deploy.test_rbac import Right, rights_of
from tests.kube.fake_api import FakeApi

CONTROLLING = build(DEPLOY / "controllers")
COMPLETE = build(DEPLOY / "overlays" / "complete")
(CONTAINER,) = only(CONTROLLING, "Deployment")["spec"]["template"]["spec"]["containers"]
LABELS = {"app.kubernetes.io/name": "stromboli", "app.kubernetes.io/component": "controllers"}
BATCH, FLOW, VOLCANO, BUS = "batch.volcano.sh", "flow.volcano.sh", "scheduling.volcano.sh", "bus.volcano.sh"
TOPOLOGY = "topology.volcano.sh"
SHARD = "shard.volcano.sh"
ROLES = {
    "job": [selection.JOB],
    "podgroup": [selection.POD_GROUP],
    "queue": [selection.QUEUE],
    "gc": [selection.GC],
    "flow": [selection.JOB_FLOW, selection.JOB_TEMPLATE],
    "cronjob": [selection.CRON_JOB],
    "hypernode": [selection.HYPER_NODE],
    "sharding": [selection.SHARDING],
}
SHARDING = documents(DEPLOY / "components" / "sharding" / "rbac.yaml")
"""For a controller that is off by default."""


def _each(group: str, resource: str, *verbs: str) -> set[Right]:
    return {(group, resource, verb) for verb in verbs}


WRITES: dict[str, set[Right]] = {
    "job": _each(BATCH, "jobs", "patch")
    | _each(BATCH, "jobs/status", "patch")
    | _each(BATCH, "jobs/finalizers", "update")
    | _each("", "pods", "create", "delete", "get", "patch")
    | _each("", "namespaces", "get")
    | _each(VOLCANO, "podgroups", "create", "delete", "get", "patch")
    | _each(BUS, "commands", "delete")
    | _each("", "persistentvolumeclaims", "create", "get")
    | _each("", "services", "create", "delete", "get")
    | _each("", "configmaps", "create", "delete", "get", "patch")
    | _each("networking.k8s.io", "networkpolicies", "create", "delete", "get"),
    "podgroup": _each(VOLCANO, "podgroups", "create", "delete", "get", "patch")
    | _each("", "pods", "patch")
    | _each("", "namespaces", "get")
    | _each("apps", "replicasets", "get")
    | _each("apps", "statefulsets", "get")
    | _each("apps", "daemonsets", "get")
    | _each("batch", "jobs", "get"),
    "queue": _each(VOLCANO, "queues", "get", "patch")
    | _each(VOLCANO, "queues/status", "patch")
    | _each(BUS, "commands", "delete"),
    "gc": _each(BATCH, "jobs", "delete", "get"),
    "flow": _each(BATCH, "jobs", "create", "delete", "get")
    | _each(FLOW, "jobflows/status", "patch")
    | _each(FLOW, "jobflows/finalizers", "update")
    | _each(FLOW, "jobtemplates/status", "patch"),
    "cronjob": _each(BATCH, "jobs", "create", "delete", "get")
    | _each(BATCH, "cronjobs/status", "patch")
    | _each(BATCH, "cronjobs/finalizers", "update"),
    "hypernode": _each(TOPOLOGY, "hypernodes", "create", "delete", "patch")
    | _each(TOPOLOGY, "hypernodes/status", "patch"),
    "sharding": _each(SHARD, "nodeshards", "create", "delete", "patch")
    | _each(SHARD, "nodeshards/status", "patch"),
}


def _stores(name: str) -> list[Store[Any]]:
    """What a controller watches, as it says itself."""
    api = FakeApi()
    context = Context(
        ApiWriter(api),
        Recorder(GuardedClient(api, lambda: 1.0), EventRecorder("", "", lambda: 0.0)),
        Options(),
    )
    (kind,) = (controller for controller in CONTROLLERS if controller.name == name)
    return kind(context).stores


def _watched(name: str) -> set[Right]:
    """What a controller watches in all namespaces."""
    places = [store.resource for store in _stores(name) if not store.scope.namespace]
    return {(resource.group, resource.plural, verb) for resource in places for verb in ("list", "watch")}


@pytest.mark.parametrize("role", ROLES)
def test_a_controller_may_do_what_it_does_and_nothing_else(role: str) -> None:
    granted = list(rights_of(only([*CONTROLLING, *SHARDING], "ClusterRole", f"stromboli-controllers-{role}")))
    watched = set().union(*(_watched(name) for name in ROLES[role]))
    assert sorted(granted) == sorted(watched | WRITES[role])


def test_there_is_a_role_for_every_controller_and_one_for_what_all_of_them_do() -> None:
    assert {name for names in ROLES.values() for name in names} == {
        controller.name for controller in CONTROLLERS
    }
    everything = [*CONTROLLING, *SHARDING]
    roles = {manifest["metadata"]["name"] for manifest in everything if manifest["kind"] == "ClusterRole"}
    assert roles == {"stromboli-controllers", *(f"stromboli-controllers-{role}" for role in ROLES)}
    common = set(rights_of(only(CONTROLLING, "ClusterRole", "stromboli-controllers")))
    assert common == {("", "events", "create"), ("", "events", "patch")}


@pytest.mark.parametrize("name", [selection.SHARDING, selection.HYPER_NODE])
def test_of_config_maps_a_controller_reads_its_own_alone(name: str) -> None:
    scopes = {store.scope for store in _stores(name) if store.scope.namespace}
    (suffix,) = (role for role, names in ROLES.items() if name in names)
    role = only([*CONTROLLING, *SHARDING], "Role", f"stromboli-controllers-{suffix}")
    (rule,) = role["rules"]
    (config_map,) = rule["resourceNames"]
    assert list(rights_of(role)) == [("", "configmaps", "list"), ("", "configmaps", "watch")]
    assert scopes == {WatchScope.of_one(role["metadata"]["namespace"], config_map)}


def test_the_configuration_of_shards_in_the_manifests_is_sound() -> None:
    (config_map,) = documents(DEPLOY / "components" / "sharding" / "configmap.yaml")
    assert config_map["metadata"]["name"] == Options().sharding_configmap
    config = config_of_yaml(config_map["data"]["sharding.yaml"], Options().sharding)
    assert [share.name for share in config.shares] == ["agent-scheduler", "volcano"]
    assert config.notes == ()


def test_secrets_are_for_those_who_ask_for_them() -> None:
    everything = [*CONTROLLING, *COMPLETE]
    roles = [manifest for manifest in everything if manifest["kind"] == "ClusterRole"]
    assert all(resource != "secrets" for role in roles for _, resource, _ in rights_of(role))
    (role, _) = documents(DEPLOY / "components" / "job-ssh" / "rbac.yaml")
    assert {resource for _, resource, _ in rights_of(role)} == {"secrets"}
    (role, binding) = documents(DEPLOY / "components" / "ufm" / "rbac.yaml")
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["ufm-credentials"], "verbs": ["get"]}
    ]


def test_no_role_has_a_wildcard_or_may_become_another() -> None:
    for role in (manifest for manifest in CONTROLLING if manifest["kind"] in ("ClusterRole", "Role")):
        for group, resource, verb in rights_of(role):
            assert "*" not in group + resource + verb
            assert verb not in ("escalate", "bind", "impersonate", "deletecollection")
            assert group != "rbac.authorization.k8s.io"


def test_every_role_is_bound_to_the_account_of_the_pods() -> None:
    account = only(CONTROLLING, "ServiceAccount")["metadata"]
    assert (
        only(CONTROLLING, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    )
    for kind in ("ClusterRole", "Role"):
        bindings = [manifest for manifest in CONTROLLING if manifest["kind"] == f"{kind}Binding"]
        roles = {manifest["metadata"]["name"] for manifest in CONTROLLING if manifest["kind"] == kind}
        assert {binding["roleRef"]["name"] for binding in bindings} == roles
        for binding in bindings:
            assert binding["roleRef"]["kind"] == kind
            (subject,) = binding["subjects"]
            wanted = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
            assert subject == wanted


def test_the_flags_are_flags_and_two_replicas_elect_one() -> None:
    command, *flags = CONTAINER["args"]
    options = parse([flag.replace("$(NAMESPACE)", "volcano-system") for flag in flags])
    assert command == "controllers"
    assert options.notes == ()
    assert options.leader_elect
    assert only(CONTROLLING, "Deployment")["spec"]["replicas"] == 2
    lease = only(CONTROLLING, "Role", "stromboli-controllers")["rules"][1]
    assert lease["resourceNames"] == [options.leader_elect_resource_name] == ["vc-controller-manager"]
    ports = {f":{port['containerPort']}" for port in CONTAINER["ports"]}
    assert ports == {options.healthz_address, options.listen_address}
    grace = only(CONTROLLING, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > 2 * options.shutdown_timeout


def test_pods_are_restricted_and_everything_selects_them() -> None:
    pod: Any = only(CONTROLLING, "Deployment")["spec"]["template"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["metadata"]["labels"] == LABELS
    assert only(CONTROLLING, "Service")["spec"]["selector"] == LABELS
    assert only(CONTROLLING, "PodDisruptionBudget")["spec"]["selector"] == {"matchLabels": LABELS}
    assert all(manifest["metadata"]["labels"] == LABELS for manifest in CONTROLLING)


def test_everything_together_names_nothing_twice() -> None:
    names: list[str] = [
        name_of(manifest) + manifest["metadata"].get("namespace", "") for manifest in COMPLETE
    ]
    assert len(names) == len(set(names))
    parts: list[Manifest] = [manifest for manifest in COMPLETE if manifest["kind"] == "Deployment"]
    assert {deployment["metadata"]["name"] for deployment in parts} == {
        "stromboli-scheduler",
        "stromboli-controllers",
        "stromboli-admission",
    }
