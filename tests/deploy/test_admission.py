"""The webhook server's manifests: what it is asked about, what it may do, and nobody's pods in its way."""

from __future__ import annotations

import pytest

from stromboli.admission.options import CONFIGURATION, SECRET, Options, parse
from stromboli.admission.rules.admission_table import REVIEWS, Review
from stromboli.embedded.admission.match_conditions import MatchCondition, conditions_match
from tests.deploy.manifests import DEPLOY, Manifest, build, only
from tests.deploy.test_rbac import rights_of

ADMISSION = build(DEPLOY / "admission")
WEBHOOKS = {
    webhook["clientConfig"]["service"]["path"]: (configuration, webhook)
    for configuration in ADMISSION
    for webhook in configuration.get("webhooks", ())
}


@pytest.mark.parametrize("review", REVIEWS.values(), ids=REVIEWS)
def test_the_api_server_asks_what_we_answer(review: Review) -> None:
    configuration, webhook = WEBHOOKS[review.path]
    assert configuration["kind"].startswith("Mutating" if review.default else "Validating")
    assert webhook["name"] == review.name
    assert webhook["rules"] == [
        {
            "apiGroups": [review.resource.group],
            "apiVersions": [review.resource.version],
            "resources": [review.resource.plural],
            "operations": list(review.operations),
        }
    ]


def test_pods_of_others_never_wait_for_us_and_volcanos_kinds_are_never_unchecked() -> None:
    for _, webhook in WEBHOOKS.values():
        (resource,) = webhook["rules"][0]["resources"]
        assert webhook["failurePolicy"] == ("Ignore" if resource == "pods" else "Fail")
        assert bool(webhook.get("matchConditions")) == (resource in ("pods", "podgroups", "queues"))
        assert webhook["sideEffects"] == "None"


@pytest.mark.parametrize(
    ("path", "account"),
    [
        ("/podgroups/mutate", "stromboli-controllers"),
        ("/podgroups/validate", "stromboli-controllers"),
        ("/queues/mutate", "stromboli-scheduler"),
        ("/queues/validate", "stromboli-scheduler"),
    ],
)
def test_objects_that_we_create_do_not_wait_for_the_webhook_and_those_of_users_do(
    path: str, account: str
) -> None:
    """Pods of ours need them to start, the webhook server's own pod among them if we are the default scheduler."""
    accounts = [
        each["metadata"]
        for each in build(DEPLOY / "overlays" / "complete")
        if each["kind"] == "ServiceAccount"
    ]
    assert account in [each["name"] for each in accounts]
    assert {each["namespace"] for each in accounts} == {"volcano-system"}
    conditions = [MatchCondition(**each) for each in WEBHOOKS[path][1]["matchConditions"]]

    def reviewed(username: str, old: Manifest | None = None) -> bool:
        operation = "UPDATE" if old else "CREATE"
        content = {"spec": {"queue": "default"}}
        request = {"userInfo": {"username": username}, "operation": operation}
        return conditions_match(conditions, {**request, "object": content, "oldObject": old})

    for old in (None, {"spec": {"queue": "other"}}):
        assert not reviewed(f"system:serviceaccount:volcano-system:{account}", old)
        for username in ("admin", account, f"system:serviceaccount:default:{account}"):
            assert reviewed(username, old)


def test_it_may_do_what_it_does_and_nothing_else() -> None:
    cluster = only(ADMISSION, "ClusterRole")
    registration = "admissionregistration.k8s.io"
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert set(rights_of(cluster)) == {
        *(("scheduling.volcano.sh", "queues", verb) for verb in ("get", "list", "watch")),
        ("scheduling.volcano.sh", "podgroups", "list"),
        ("batch.volcano.sh", "jobs", "list"),
        ("", "namespaces", "get"),
        *((registration, kind, verb) for kind in kinds for verb in ("get", "patch")),
    }
    assert _names(cluster, registration) == [CONFIGURATION]
    role = only(ADMISSION, "Role")
    assert set(rights_of(role)) == {("", "secrets", "get"), ("", "secrets", "patch")}
    assert _names(role, "") == [SECRET] == [only(ADMISSION, "Secret")["metadata"]["name"]]


def _names(role: Manifest, group: str) -> list[str]:
    (rule,) = (rule for rule in role["rules"] if rule["apiGroups"] == [group] and "resourceNames" in rule)
    names: list[str] = rule["resourceNames"]
    return names


def test_its_flags_are_flags_and_its_service_is_the_one_that_is_called() -> None:
    pod = only(ADMISSION, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, *flags = container["args"]
    options = parse([flag.replace("$(NAMESPACE)", "volcano-system") for flag in flags])
    assert command == "admission"
    assert options.enable_queue_allocated_pods_check
    assert not Options().enable_queue_allocated_pods_check
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (options.healthz_address, options.port) == (f":{ports['health']}", ports["webhooks"])
    service = only(ADMISSION, "Service")["metadata"]
    assert (options.webhook_namespace, options.webhook_service_name) == (
        service["namespace"],
        service["name"],
    )
    for _, webhook in WEBHOOKS.values():
        called = webhook["clientConfig"]["service"]
        assert (called["namespace"], called["name"]) == (service["namespace"], service["name"])
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["serviceAccountName"] == only(ADMISSION, "ServiceAccount")["metadata"]["name"]
