"""Objects made to hurt: whatever stands in them, no controller breaks, and the others get their turn."""

from __future__ import annotations

import asyncio
import copy
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.volcano_controllers import CONTROLLERS
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import NOW, SettableClock, wait_until
from tests.number_of_examples import scaled

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}
SAMPLES: dict[str, dict[str, Any]] = {
    "queues": {
        "spec": {"weight": 1, "parent": "root"},
        "status": {"state": "Open", "allocated": {"cpu": "1"}},
    },
    "podgroups": {
        "spec": {"minMember": 1, "queue": "q", "minResources": {"cpu": "1"}},
        "status": {"phase": "Running"},
    },
    "commands": {
        "action": "CloseQueue",
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": "u"},
    },
    "pods": {
        "metadata": {"ownerReferences": [OWNER], "annotations": {"scheduling.volcano.sh/queue-name": "q"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}
            ],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {}}],
            "overhead": {"cpu": "1m"},
        },
        "status": {"phase": "Pending", "podIP": "10.0.0.1"},
    },
    "replicasets": {
        "metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/x": "y"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}},
    },
    "jobs": {
        "metadata": {"labels": {"volcano.sh/createdByJobTemplate": "ns.t"}, "ownerReferences": [OWNER]},
        "spec": {"ttlSecondsAfterFinished": 5, "tasks": [{"name": "t", "replicas": 1}]},
        "status": {
            "state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            "taskStatusCount": {"t": {"phase": {"Running": 1}}},
            "runningDuration": "5s",
        },
    },
    "jobtemplates": {
        "spec": {"minAvailable": 1, "tasks": [{"name": "t"}]},
        "status": {"jobDependsOnList": ["x"]},
    },
    "jobflows": {
        "spec": {
            "jobRetainPolicy": "retain",
            "flows": [
                {"name": "jobtemplates"},
                {
                    "name": "b",
                    "dependsOn": {
                        "targets": ["jobtemplates"],
                        "probe": {
                            "httpGetList": [{"taskName": "t", "port": 80, "path": "/"}],
                            "taskStatusList": [{"taskName": "t", "phase": "Running"}],
                        },
                    },
                    "patch": {"jobSpec": {"tasks": [{"name": "t", "replicas": 1}]}},
                },
            ],
        },
        "status": {
            "state": {"phase": "Running"},
            "conditions": {"x": {"phase": "Running"}},
            "jobStatusList": [{"name": "x", "state": "Running", "runningHistories": [{"state": "Running"}]}],
        },
    },
    "cronjobs": {
        "spec": {
            "schedule": "*/5 * * * *",
            "timeZone": "Europe/Rome",
            "startingDeadlineSeconds": 600,
            "concurrencyPolicy": "Replace",
            "successfulJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"minAvailable": 1}},
        },
        "status": {"active": [{"name": "x", "uid": "y"}], "lastScheduleTime": "2026-01-01T00:00:00Z"},
    },
    "hypernodes": {
        "metadata": {"labels": {"volcano.sh/network-topology-source": "label"}},
        "spec": {
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "nodes"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}},
                {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r"}}}},
                {"type": "HyperNode", "selector": {"exactMatch": {"name": "hypernodes"}}},
            ],
        },
        "status": {"nodeCount": 1},
    },
    "nodes": {"metadata": {"labels": {"rack": "r"}}},
}
CLUSTER_WIDE = {"hypernodes", "nodes", "queues"}
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["", "-1", "9" * 400, "\x00", "2026-13-45T00:00:00Z", "Mars/Base", "TZ=x", "root", "\ud7ff", "1e400"]
    )
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def hurtful(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A sample in which one to three places hold something else."""
    plural = draw(st.sampled_from(sorted(SAMPLES)))
    obj = copy.deepcopy(SAMPLES[plural])
    for _ in range(draw(st.integers(1, 3))):
        place: Any = obj
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                break
            key = draw(st.sampled_from(list(keys)))
            deeper = isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 3))
            if not deeper:
                place[key] = draw(anything)
                break
            place = place[key]
    meta = obj.get("metadata")
    name = {"name": plural, **({} if plural in CLUSTER_WIDE else {"namespace": "ns"})}
    obj["metadata"] = {**(meta if isinstance(meta, dict) else {}), **name}
    return plural, obj


@pytest.mark.slow
@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(objects=[("pods", {"metadata": {"name": "pods", "namespace": "ns"}, "spec": [{}]})])
@given(objects=st.lists(hurtful(), min_size=1, max_size=6))
def test_no_object_breaks_a_controller_or_holds_up_the_others(
    objects: list[tuple[str, dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    caplog.set_level(logging.ERROR)

    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", {"metadata": {"name": "root"}, "spec": {"weight": 1}})
        for plural, obj in objects:
            api.put(plural, obj)
        options = Options(controllers=("*", "-job-controller"), shutdown_timeout=0.2)
        runner = ControllerRunner(api, CONTROLLERS, options, clock=SettableClock(NOW + 301))  # type: ignore[arg-type]
        running = asyncio.create_task(runner.run())
        try:
            await wait_until(lambda: not runner.unsynced)
            api.put(
                "pods",
                {"metadata": {"name": "good", "namespace": "ns"}, "spec": {"schedulerName": "volcano"}},
            )
            api.put("queues", {"metadata": {"name": "good"}, "spec": {"weight": 1}})
            await wait_until(lambda: api.find("queues", "good").get("status", {}).get("state") == "Open")
            await wait_until(lambda: "annotations" in api.find("pods", "good", "ns")["metadata"])
        finally:
            runner.stop()
            await running

    asyncio.run(run())
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
