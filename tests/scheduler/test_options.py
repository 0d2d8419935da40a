"""Flags, as Volcano's scheduler takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.daemon.flags import BadFlag
from stromboli.kube.election import LeaseSettings
from stromboli.scheduler.options import ACCEPTED, Options, parse, usage

VOLCANO = """\
master kubeconfig kube-api-qps kube-api-burst scheduler-name scheduler-conf disable-default-scheduler-config
schedule-period resync-period default-queue priority-class csi-storage ignored-provisioners node-selector
node-worker-threads gate-removal-worker-num resource-sync-timeout minimum-feasible-nodes
minimum-percentage-nodes-to-find percentage-nodes-to-find plugins-dir listen-address enable-metrics enable-pprof
enable-healthz healthz-address ca-cert-file tls-cert-file tls-private-key-file cache-dumper cache-dump-dir
scheduler-sharding-mode scheduler-sharding-name leader-elect leader-elect-lease-duration
leader-elect-renew-deadline leader-elect-retry-period leader-elect-resource-lock leader-elect-resource-name
leader-elect-resource-namespace lock-object-namespace feature-gates log-flush-frequency v
"""


def test_without_flags_all_is_as_in_volcano() -> None:
    options = parse([])
    assert options == Options()
    assert (options.kube_api_qps, options.schedule_period, options.leader_elect) == (2000, 1.0, True)
    assert (options.listen_address, options.healthz_address) == ("127.0.0.1:8080", "127.0.0.1:11251")
    assert options.lease_settings("me") == LeaseSettings("volcano-system", "volcano", "me", 15.0, 10.0, 2.0)


@pytest.mark.parametrize("name", VOLCANO.split())
def test_every_flag_of_volcanos_is_taken(name: str) -> None:
    assert f"--{name} " in usage() or name in ACCEPTED.why


def test_flags_may_be_written_as_go_does() -> None:
    options = parse(["--enable-metrics", "-v", "3", "--leader-elect=false", "-schedule-period=500ms"])
    assert (options.enable_metrics, options.v) == (True, 3)
    assert (options.leader_elect, options.schedule_period) == (False, 0.5)
    assert parse(["--scheduler-conf", "/a=b"]).scheduler_conf == Path("/a=b")


def test_lists_may_be_repeated_and_replace_the_default() -> None:
    assert parse(["--scheduler-name=a,b", "--scheduler-name", "c"]).scheduler_name == ("a", "b", "c")
    gates = parse(["--feature-gates=PriorityClass=false,Other=true"])
    assert not gates.gate("PriorityClass", True)
    assert gates.gate("Absent", True)


def test_what_has_no_effect_is_taken_with_a_note() -> None:
    options = parse(["--percentage-nodes-to-find=20", "--csi-storage=true", "--logtostderr"])
    assert options.notes == (
        "--percentage-nodes-to-find=20 has no effect: all nodes are considered",
        "--logtostderr=true has no effect: logs go to standard error",
    )


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--leader-elekt"], "did you mean --leader-elect?"),
        (["--schedule-period=soon"], "no duration"),
        (["--schedule-period"], "needs a value"),
        (["--leader-elect=perhaps"], "neither true nor false"),
        (["-v=x"], "not a whole number"),
        (["--writes-in-flight=0"], "not above 0"),
        (["run"], "flags begin with --"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(flags: list[str], problem: str) -> None:
    with pytest.raises(BadFlag, match=problem.replace("?", r"\?")):
        parse(flags)


def test_a_feature_gate_that_changes_nothing_is_noted() -> None:
    gates = "DynamicResourceAllocation=true,PriorityClass=false,PodLevelResources=false"
    options = parse([f"--feature-gates={gates}", "--feature-gates=SchedulingGatesQueueAdmission=true"])
    assert options.notes == (
        "--feature-gates=DynamicResourceAllocation: has no effect",
        "--feature-gates=PodLevelResources: cannot be switched off",
    )


def test_shards_are_none_soft_or_hard() -> None:
    assert parse(["--scheduler-sharding-mode=soft"]).scheduler_sharding_mode == "soft"
    with pytest.raises(BadFlag, match="not one of none, soft, hard"):
        parse(["--scheduler-sharding-mode=strict"])
