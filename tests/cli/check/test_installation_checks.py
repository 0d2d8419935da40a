"""What `stromboli check` says of installations, healthy and not."""

from __future__ import annotations

import base64
import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stromboli.api.go_scalars import micro_time, timestamp
from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.cli.check.check_result import CheckResult
from stromboli.cli.check.installation_checks import check_installation
from stromboli.cli.check.installation_facts import InstallationFacts
from stromboli.daemon.certificates import new_authority

Manifest = dict[str, Any]
TODAY = datetime(2026, 11, 17, 12, tzinfo=UTC)
NOW = TODAY.timestamp()
NAMESPACE = "volcano-system"
DEFINITIONS = list(volcano_definitions())
AUTHORITY = base64.b64encode(new_authority("admission", TODAY, timedelta(days=365)).certificate).decode()


def named(name: str, **content: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, **content}


def deployment(part: str, ready: int = 2, wanted: int = 2) -> Manifest:
    status = {
        "replicas": wanted,
        "updatedReplicas": wanted,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    return named(f"stromboli-{part}", spec={"replicas": wanted}, status=status)


def lease(name: str, age: float = 2.0, holder: str = "pod-1") -> Manifest:
    spec = {"holderIdentity": holder, "renewTime": micro_time(NOW - age), "leaseDurationSeconds": 15}
    return named(name, spec=spec)


def webhooks(bundle: str = AUTHORITY) -> Manifest:
    service = {"namespace": NAMESPACE, "name": "volcano-admission-service"}
    client = {"service": service, "caBundle": bundle}
    return named("stromboli-admission", webhooks=[{"name": "validatejob.volcano.sh", "clientConfig": client}])


def healthy() -> InstallationFacts:
    facts = InstallationFacts("https://a", NAMESPACE, is_local=False, version="v1.36.0", user="ann", now=NOW)
    facts.server_time = timestamp(NOW)
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    slices = named("s", endpoints=[{"conditions": {"ready": True}}])
    slices["metadata"]["labels"] = {"kubernetes.io/service-name": "volcano-admission-service"}
    facts.objects = {
        "CustomResourceDefinition": [
            {**copy.deepcopy(definition), "status": established} for definition in DEFINITIONS
        ],
        "Deployment": [deployment(part) for part in ("scheduler", "controllers", "admission")],
        "Lease": [lease("volcano"), lease("vc-controller-manager")],
        "MutatingWebhookConfiguration": [webhooks()],
        "ValidatingWebhookConfiguration": [webhooks()],
        "EndpointSlice": [slices],
        "Queue": [named("default", status={"state": "Open"}), named("root")],
        "Node": [named("n1", status={"conditions": [{"type": "Ready", "status": "True"}]})],
    }
    facts.rights = {"create jobs.batch.volcano.sh": True}
    return facts


def results(facts: InstallationFacts, state: str) -> list[CheckResult]:
    return [result for result in check_installation(facts) if result.state == state]


def test_of_a_healthy_installation_all_is_well() -> None:
    told = check_installation(healthy())
    assert {result.state.value for result in told} == {"ok"}
    assert {result.check for result in told} >= {"clock", "kinds", "scheduler", "webhooks", "rights"}


def test_a_scheduler_without_ready_replicas_fails_and_fewer_than_wanted_are_a_warning() -> None:
    facts = healthy()
    facts.objects["Deployment"] = [deployment("scheduler", 0), deployment("controllers", 1)]
    (no_scheduler,) = results(facts, "failed")
    assert no_scheduler.text == "Deployment stromboli-scheduler: 0 of 2 replicas ready"
    assert "kubectl logs" in no_scheduler.remedy
    texts = [result.text for result in results(facts, "warning")]
    assert "Deployment stromboli-controllers: 1 of 2 replicas ready" in texts
    assert f"no Deployment of the admission in namespace {NAMESPACE}" in texts


def test_a_dashboard_or_another_deployment_that_is_not_ready_is_seen() -> None:
    facts = healthy()
    facts.objects["Deployment"] += [deployment("dashboard", 1, 1), deployment("dashboard-b", 0, 1)]
    facts.objects["Deployment"] += [named("other", spec={}, status={}), deployment("unused", 0, 0)]
    assert [(result.check, result.text) for result in results(facts, "failed")] == [
        ("dashboard", "Deployment stromboli-dashboard-b: 0 of 1 replicas ready"),
        ("components", "Deployment other: 0 of 1 replicas ready"),
    ]
    assert "Deployment stromboli-dashboard: 1 of 1 replicas ready" in [
        result.text for result in results(facts, "ok")
    ]


def test_a_rollout_that_has_stopped_is_a_warning_while_old_pods_are_ready() -> None:
    facts = healthy()
    stopped = {"type": "Progressing", "status": "False", "message": "ReplicaSet x has timed out progressing."}
    facts.objects["Deployment"][0]["status"]["conditions"] = [stopped]
    (result,) = results(facts, "warning")
    assert result.text == (
        "Deployment stromboli-scheduler: the rollout has stopped: ReplicaSet x has timed out progressing."
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"updatedReplicas": None}, "0 out of 2 new replicas have been updated"),
        ({"updatedReplicas": 1}, "1 out of 2 new replicas have been updated"),
        ({"replicas": 3}, "1 old replicas are pending termination"),
        ({"availableReplicas": 1}, "1 of 2 updated replicas are available"),
        ({"observedGeneration": 3}, "waiting for the deployment spec update to be observed"),
    ],
)
def test_a_rollout_whose_new_pods_are_not_ready_is_a_warning_at_once(changed: Manifest, why: str) -> None:
    """The old pods are ready while those that replace them crash."""
    facts = healthy()
    scheduler = facts.objects["Deployment"][0]
    scheduler["metadata"]["generation"] = 4
    scheduler["status"] |= {"observedGeneration": 4, **changed}
    (result,) = results(facts, "warning")
    assert result.text == (
        f"Deployment stromboli-scheduler: 2 of 2 replicas ready, but its rollout has not finished: {why}"
    )
    assert result.remedy.startswith("kubectl rollout status -n volcano-system deployment/stromboli-scheduler")


def test_volcanos_own_scheduler_that_made_way_for_another_is_fine() -> None:
    facts = healthy()
    retired = named("volcano-scheduler", spec={"replicas": 0}, status={})
    facts.objects["Deployment"].append(retired)
    facts.objects["Lease"].append(lease("vc-scheduler", age=86_400))
    assert {result.state.value for result in check_installation(facts)} == {"ok"}


def test_schedulers_that_are_all_scaled_to_0_fail_and_two_that_run_are_a_warning() -> None:
    facts = healthy()
    facts.objects["Deployment"] = [deployment(part, 0, 0) for part in ("scheduler", "controllers")]
    (stopped,) = results(facts, "failed")
    assert stopped.text == "Deployment stromboli-scheduler is scaled to 0"
    assert stopped.remedy == "kubectl scale -n volcano-system deployment/stromboli-scheduler --replicas=1"
    facts = healthy()
    other = deployment("scheduler", 1, 1)
    facts.objects["Deployment"].append(named("volcano-scheduler", spec=other["spec"], status=other["status"]))
    (twice,) = results(facts, "warning")
    assert twice.text.startswith("stromboli-scheduler and volcano-scheduler both run")


def test_a_leader_that_is_silent_fails() -> None:
    facts = healthy()
    facts.objects["Lease"] = [lease("volcano", age=120), lease("vc-controller-manager", holder="")]
    silent, nobody = results(facts, "failed")
    assert "has not renewed it for 120 s" in silent.text
    assert nobody.text == "lease vc-controller-manager has no holder"


@pytest.mark.parametrize(("seconds", "text"), [(-60, "60 s ahead of"), (90, "90 s behind")])
def test_clocks_that_differ_are_told(seconds: int, text: str) -> None:
    facts = healthy()
    facts.server_time = timestamp(NOW + seconds)
    (skew,) = results(facts, "warning")
    assert text in skew.text


def test_kinds_that_are_missing_old_or_poorer_are_told() -> None:
    facts = healthy()
    definitions = {item["metadata"]["name"]: item for item in facts.objects["CustomResourceDefinition"]}
    del definitions["queues.scheduling.volcano.sh"]
    del definitions["hypernodes.topology.volcano.sh"]
    groups = definitions["podgroups.scheduling.volcano.sh"]["spec"]["versions"][0]
    del groups["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["networkTopology"]
    definitions["jobs.batch.volcano.sh"]["spec"]["versions"][0]["served"] = False
    facts.objects["CustomResourceDefinition"] = list(definitions.values())
    broken = [result.text for result in results(facts, "failed")]
    assert "queues.scheduling.volcano.sh is not installed" in broken
    assert any(text.startswith("jobs.batch.volcano.sh is not served in version v1alpha1") for text in broken)
    poorer = [result.text for result in results(facts, "warning")]
    assert "hypernodes.topology.volcano.sh is not installed" in poorer
    assert any("podgroups.scheduling.volcano.sh lacks spec.networkTopology" in text for text in poorer)


def test_webhooks_without_endpoints_authority_or_time_left_are_told() -> None:
    facts = healthy()
    facts.objects["EndpointSlice"] = []
    assert any("has no endpoints" in result.text for result in results(facts, "failed"))
    for bundle, text in (("", "has no caBundle"), ("aGVsbG8=", "is no certificate")):
        facts = healthy()
        facts.objects["ValidatingWebhookConfiguration"] = [webhooks(bundle)]
        assert any(text in result.text for result in results(facts, "failed"))
    facts = healthy()
    facts.now += 366 * 86_400
    assert any("the authority of webhooks ended on" in result.text for result in results(facts, "failed"))
    facts = healthy()
    facts.objects |= {"MutatingWebhookConfiguration": [], "ValidatingWebhookConfiguration": []}
    (unchecked,) = results(facts, "warning")
    assert unchecked.text == "nobody completes and checks what users submit"


def test_what_may_not_be_read_is_skipped_and_says_which_right_is_missing() -> None:
    facts = healthy()
    kinds = list(facts.objects)
    facts.objects, facts.refused = {}, dict.fromkeys(kinds, 'user "bob" may not list it')
    facts.rights = {"create jobs.batch.volcano.sh": False}
    assert results(facts, "failed") == []
    skipped = results(facts, "skipped")
    assert {result.check for result in skipped} >= {"kinds", "components", "leases", "webhooks", "nodes"}
    assert {result.text for result in skipped} == {'user "bob" may not list it'}
    (rights,) = results(facts, "warning")
    assert "you may not: create jobs.batch.volcano.sh" in rights.text


def test_queues_and_nodes_that_cannot_be_used_are_told() -> None:
    facts = healthy()
    facts.objects["Queue"] = [named("default", status={"state": "Closed"})]
    facts.objects["Node"] = []
    (closed,) = results(facts, "warning")
    assert closed.remedy == "stromboli queue open default"
    (empty,) = results(facts, "failed")
    assert empty.text == "the cluster has no nodes"
