"""Flags and gates, as Volcano's controller manager takes them."""

from __future__ import annotations

import pytest

from stromboli.controllers.options import ACCEPTED, Options, parse, usage
from stromboli.controllers.selection import NAMES, is_enabled
from stromboli.daemon.flags import BadFlag
from stromboli.kube.election import LeaseSettings

VOLCANO = """\
master kubeconfig kube-api-qps kube-api-burst worker-threads worker-threads-for-cronjob worker-threads-for-podgroup
worker-threads-for-queue worker-threads-for-gc max-requeue-num scheduler-name inherit-owner-annotations controllers
enable-healthz healthz-address enable-metrics listen-address ca-cert-file tls-cert-file tls-private-key-file
lock-object-namespace leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period
leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace log-flush-frequency
feature-gates scheduler-configs shard-sync-period enable-node-event-trigger sharding-configmap
sharding-configmap-namespace v
"""


@pytest.mark.parametrize("name", VOLCANO.split())
def test_every_flag_of_volcanos_is_taken(name: str) -> None:
    assert f"--{name} " in usage() or name in ACCEPTED.why


def test_without_flags_all_is_as_in_volcano() -> None:
    options = parse([])
    assert options == Options()
    assert (options.kube_api_qps, options.kube_api_burst, options.max_requeue_num) == (50, 100, 15)
    assert (options.worker_threads, options.worker_threads_for_queue, options.worker_threads_for_gc) == (
        3,
        5,
        1,
    )
    settings = options.lease_settings("me")
    assert settings == LeaseSettings("volcano-system", "vc-controller-manager", "me", 15.0, 10.0, 2.0)
    assert options.gate("QueueCommandSync")
    assert not parse(["--feature-gates=QueueCommandSync=false"]).gate("QueueCommandSync")


@pytest.mark.parametrize(
    ("controllers", "on"),
    [
        ("*,-sharding-controller", set(NAMES) - {"sharding-controller"}),
        ("*", set(NAMES)),
        ("", set(NAMES)),
        ("job-controller,+gc-controller", {"job-controller", "gc-controller"}),
        ("-gc-controller,*", set(NAMES) - {"gc-controller"}),
        ("job-controller,-gc-controller", {"job-controller"}),
        ("-gc-controller", set(NAMES) - {"gc-controller"}),
        ("-gc-controller,-pg-controller", set(NAMES) - {"gc-controller", "pg-controller"}),
    ],
)
def test_a_controller_is_on_if_it_is_named_or_all_are_meant(controllers: str, on: set[str]) -> None:
    gates = parse([f"--controllers={controllers}"]).controllers
    assert {name for name in NAMES if is_enabled(gates, name)} == on


@pytest.mark.parametrize(
    ("controllers", "message"),
    [
        ("gc-controller,-gc-controller", "gc-controller is named twice"),
        ("*,+gc-controller,gc-controller", "gc-controller is named twice"),
        ("gc-contoller", "did you mean gc-controller"),
        ("*,-everything", "there are job-controller"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(controllers: str, message: str) -> None:
    with pytest.raises(BadFlag, match=message):
        parse([f"--controllers={controllers}"])


def test_feature_gates_without_effect_are_named() -> None:
    options = parse(["--feature-gates=ResourceTopology=true,QueueCommandSync=false"])
    assert options.notes == ("--feature-gates=ResourceTopology: has no effect",)
