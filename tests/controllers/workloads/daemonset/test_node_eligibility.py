"""Which nodes a DaemonSet wants a pod on."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.errors import BadObject
from stromboli.api.types.node import Taint
from stromboli.controllers.workloads.daemonset.node_eligibility import NodeEligibility
from tests.controllers.workloads.workload_objects import daemon_set

LABELS = {"zone": "a"}


def required(*terms: Any) -> Any:
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": selector}}


def tolerating(**toleration: str) -> Any:
    return {"tolerations": [toleration]}


@pytest.mark.parametrize(
    ("pod", "taint", "starts", "stays"),
    [
        ({}, "", True, True),
        ({"nodeName": "n1"}, "", True, True),
        ({"nodeName": "n2"}, "", False, False),
        ({"nodeSelector": {"zone": "a"}}, "", True, True),
        ({"nodeSelector": {"zone": "b"}}, "", False, False),
        (
            required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
            "",
            True,
            True,
        ),
        (required({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}), "", False, False),
        (required(), "", False, False),
        ({}, "spare:NoSchedule", False, True),
        ({}, "spare:NoExecute", False, False),
        ({}, "spare:PreferNoSchedule", True, True),
        (tolerating(key="spare", operator="Exists"), "spare:NoExecute", True, True),
        (tolerating(operator="Exists"), "spare:NoSchedule", True, True),
        ({}, "node.kubernetes.io/unschedulable:NoSchedule", True, True),
        ({}, "node.kubernetes.io/disk-pressure:NoSchedule", True, True),
        ({}, "node.kubernetes.io/not-ready:NoExecute", True, True),
        ({}, "node.kubernetes.io/not-ready:NoSchedule", False, True),
        ({}, "node.kubernetes.io/network-unavailable:NoSchedule", False, True),
        ({"hostNetwork": True}, "node.kubernetes.io/network-unavailable:NoSchedule", True, True),
    ],
)
def test_labels_and_taints_decide(pod: Any, taint: str, starts: bool, stays: bool) -> None:
    key, _, effect = taint.partition(":")
    taints = [Taint(key=key, effect=effect)] if key else []
    assert NodeEligibility(daemon_set(pod)).of("n1", LABELS, taints) == (starts, stays)


def test_a_template_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadObject, match="DaemonSet team/web"):
        NodeEligibility(daemon_set({"nodeSelector": 5}))
