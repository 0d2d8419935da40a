"""Bare pods get their groups: alone, of a ReplicaSet, of a StatefulSet, of others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.controllers import api_writer
from stromboli.controllers.options import Options
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.kube.request import ApiError, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import names, running_controllers, wait_until, wait_until_idle

GROUP = "scheduling.k8s.io/group-name"
QUEUE = "scheduling.volcano.sh/queue-name"


def owner(kind: str, name: str, api: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def pod(name: str, by: dict[str, Any] | None = None, cpu: str = "1", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "ownerReferences": [by] if by else [], **meta},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        },
    }


def workload(name: str, replicas: int = 1, annotations: Any = None, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"replicas": replicas}, "status": status}


def group_of(api: InMemoryApi, name: str) -> str:
    group: str = api.find("pods", name, "ns")["metadata"].get("annotations", {}).get(GROUP, "")
    return group


def test_a_pod_alone_gets_a_group_and_is_told_its_name() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("alone"))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            assert group_of(api, "alone") == "podgroup-uid-alone"
            assert names(api.every("podgroups")) == ["podgroup-uid-alone"]
            writes = len(api.writes)
            await wait_until_idle(api, runner)
            assert len(api.writes) == writes == 2

    asyncio.run(run())


def test_pods_of_others_and_pods_that_have_a_group_are_left_alone() -> None:
    async def run() -> None:
        api = InMemoryApi()
        theirs = pod("theirs")
        theirs["spec"]["schedulerName"] = "default-scheduler"
        api.put("pods", theirs)
        api.put("pods", pod("grouped", annotations={GROUP: "mine"}))
        native = pod("native")
        native["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
        api.put("pods", native)
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        assert api.requests == []

    asyncio.run(run())


def test_pods_of_kubernetes_scheduler_that_arrive_bound_get_no_group_though_its_name_is_ours() -> None:
    async def run() -> None:
        api = InMemoryApi()
        for name in ("static", "waits", "ours"):
            api.put("pods", pod(name))
            api.find("pods", name, "ns")["spec"]["schedulerName"] = "default-scheduler"
        for name in ("static", "ours"):
            api.find("pods", name, "ns")["spec"]["nodeName"] = "n1"
        ours = api.find("pods", "ours", "ns")
        ours["metadata"]["annotations"] = {GROUP: "podgroup-uid-ours"}
        ours["spec"]["schedulerName"] = "default-scheduler"
        options = Options(scheduler_name=("volcano", "default-scheduler"))
        async with running_controllers(api, PodGroupController, options=options) as runner:
            await wait_until_idle(api, runner)
        assert group_of(api, "static") == ""
        assert group_of(api, "waits") == "podgroup-uid-waits"
        assert names(api.every("podgroups")) == ["podgroup-uid-waits"]

    asyncio.run(run())


def test_pods_of_a_replica_set_share_a_group_with_its_annotations() -> None:
    async def run() -> None:
        api = InMemoryApi()
        marks = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/preemptable": "true"}
        api.put("replicasets", workload("web", 3, marks))
        for number in range(3):
            api.put("pods", pod(f"web-{number}", owner("ReplicaSet", "web")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        (group,) = api.every("podgroups")
        assert group["spec"]["minMember"] == 2
        assert group["spec"]["minResources"]["cpu"] == "2"
        assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
        assert {group_of(api, f"web-{number}") for number in range(3)} == {"podgroup-uid-web"}

    asyncio.run(run())


def test_owners_that_are_not_watched_are_asked_and_those_that_cannot_be_are_left_out() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("daemonsets", workload("d", annotations={"volcano.sh/a": "1"}))
        api.put("pods", pod("of-daemon", owner("DaemonSet", "d")))
        api.put("pods", pod("of-nobody", owner("Job", "gone", "batch/v1")))
        api.put("pods", pod("of-something", owner("Thing", "t", "x/v1")))

        def refuse(request: Request) -> None:
            if "/replicasets/" in request.path:
                raise ApiError(403, "Forbidden", "no")

        api.before = refuse
        api.put("pods", pod("of-secret", owner("ReplicaSet", "secret")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        assert len(api.every("podgroups")) == 4
        assert api.find("podgroups", "podgroup-uid-d", "ns")["metadata"]["annotations"] == {
            "volcano.sh/a": "1"
        }

    asyncio.run(run())


def test_the_deadline_of_a_job_is_the_time_limit_of_its_group_unless_it_states_another() -> None:
    async def run() -> None:
        api = InMemoryApi()
        for name, stated in (("a", {}), ("b", {"stromboli.sh/time-limit": "2h"})):
            meta = {"name": name, "namespace": "ns", "annotations": stated}
            api.put("jobs", {"metadata": meta, "spec": {"activeDeadlineSeconds": 600}})
            api.put("pods", pod(f"of-{name}", owner("Job", name, "batch/v1")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        limits = {
            group["metadata"]["name"]: group["metadata"]["annotations"]["stromboli.sh/time-limit"]
            for group in api.every("podgroups")
        }
        assert limits == {"podgroup-uid-a": "600", "podgroup-uid-b": "2h"}

    asyncio.run(run())


def test_without_the_flag_nothing_is_inherited() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put(
            "replicasets",
            workload("web", 1, {"volcano.sh/a": "1", "scheduling.volcano.sh/group-min-member": "5"}),
        )
        api.put("pods", pod("web-0", owner("ReplicaSet", "web")))
        options = Options(inherit_owner_annotations=False)
        async with running_controllers(api, PodGroupController, options=options) as runner:
            await wait_until_idle(api, runner)
        (group,) = api.every("podgroups")
        assert (group["spec"]["minMember"], group["metadata"]["annotations"]) == (1, {})

    asyncio.run(run())


def test_a_new_make_of_a_stateful_set_changes_the_group_and_an_old_one_does_not() -> None:
    async def run() -> None:
        api = InMemoryApi()
        label = "controller-revision-hash"
        api.put("statefulsets", workload("db", 2, updateRevision="v1"))
        api.put("pods", pod("db-0", owner("StatefulSet", "db"), labels={label: "v1"}))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            api.put("statefulsets", workload("db", 2, updateRevision="v2"))
            api.put("pods", pod("db-1", owner("StatefulSet", "db"), cpu="9", labels={label: "old"}))
            await wait_until_idle(api, runner)
            assert api.every("podgroups")[0]["spec"]["minResources"]["cpu"] == "1"
            api.put("pods", pod("db-2", owner("StatefulSet", "db"), cpu="4", labels={label: "v2"}))
            await wait_until_idle(api, runner)
        (group,) = api.every("podgroups")
        assert group["spec"]["minResources"]["cpu"] == "4"

    asyncio.run(run())


def test_the_group_goes_when_its_owner_is_scaled_to_nothing_and_comes_back_with_new_pods() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("replicasets", workload("web", 1))
        api.put("pods", pod("web-0", owner("ReplicaSet", "web")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            api.put("replicasets", workload("web", 0))
            await wait_until_idle(api, runner)
            assert api.every("podgroups") == []
            api.remove("pods", "web-0", "ns")
            api.put("replicasets", workload("web", 1))
            api.put("pods", pod("web-1", owner("ReplicaSet", "web")))
            await wait_until_idle(api, runner)
        assert names(api.every("podgroups")) == ["podgroup-uid-web"]

    asyncio.run(run())


def test_pods_that_leave_or_have_ended_get_no_group() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("leaving", deletionTimestamp="2026-01-01T00:00:00Z"))
        api.put("pods", {**pod("ended"), "status": {"phase": "Failed"}})
        api.put("replicasets", workload("web", 0))
        api.put("pods", pod("web-0", owner("ReplicaSet", "web")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            assert api.writes == []
            api.put("replicasets", workload("web", 1))
            await wait_until_idle(api, runner)
        assert names(api.every("podgroups")) == ["podgroup-uid-web"]

    asyncio.run(run())


def test_an_owner_that_has_grown_again_meanwhile_keeps_its_group() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("replicasets", workload("web", 1))
        api.put("pods", pod("web-0", owner("ReplicaSet", "web")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)

            def grow(request: Request) -> None:
                if request.method == "GET":
                    api.before = lambda _: None
                    api.put("replicasets", workload("web", 2))

            api.before = grow
            api.put("replicasets", workload("web", 0))
            await wait_until_idle(api, runner)
        assert len(api.every("podgroups")) == 1

    asyncio.run(run())


def test_a_group_that_is_deleted_under_living_pods_comes_back() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))
        ended = pod("b")
        ended["status"] = {"phase": "Succeeded"}
        api.put("pods", ended)
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            for name in names(api.every("podgroups")):
                api.remove("podgroups", name, "ns")
            await wait_until_idle(api, runner)
        assert names(api.every("podgroups")) == ["podgroup-uid-a"]

    asyncio.run(run())


@pytest.mark.parametrize(("plural", "kind"), [("replicasets", "ReplicaSet"), ("daemonsets", "DaemonSet")])
def test_a_group_that_goes_with_its_owner_does_not_come_back_for_pods_that_go_as_well(
    plural: str, kind: str
) -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put(plural, workload("web", 1))
        api.put("pods", pod("web-0", owner(kind, "web")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
            api.remove(plural, "web", "ns")
            await wait_until_idle(api, runner)
            writes = len(api.writes)
            api.remove("podgroups", "podgroup-uid-web", "ns")
            await wait_until_idle(api, runner)
            assert len(api.writes) == writes
        assert api.every("podgroups") == []

    asyncio.run(run())


def test_a_pod_that_went_meanwhile_is_no_trouble() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))

        def leave(request: Request) -> None:
            if request.method == "PATCH" and api.every("pods"):
                api.remove("pods", "a", "ns")

        api.before = leave
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: not api.every("pods"))
            await wait_until_idle(api, runner)
            assert runner.controllers[0].queue.num_requeues(("Pod", "ns/a")) == 0

    asyncio.run(run())


def test_a_group_that_somebody_else_made_is_neither_used_nor_changed_nor_deleted() -> None:
    async def run() -> None:
        api = InMemoryApi()
        theirs = api.put(
            "podgroups",
            {"metadata": {"name": "podgroup-uid-r", "namespace": "ns"}, "spec": {"minMember": 9}},
        )
        api.put("replicasets", workload("r"))
        api.put("pods", pod("r-1", owner("ReplicaSet", "r")))
        api.put("pods", pod("r-2", owner("ReplicaSet", "r")))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: len(api.events) == 2)
            await wait_until_idle(api, runner)
            assert (group_of(api, "r-1"), group_of(api, "r-2")) == ("", "")
            api.put("replicasets", workload("r", replicas=0))
            await wait_until_idle(api, runner)
            assert api.find("podgroups", "podgroup-uid-r", "ns") == theirs
        assert {reason for reason, _ in api.events} == {"NameTaken"}
        assert 'PodGroup "podgroup-uid-r" exists already and is not of this Pod' in api.events[0][1]

    asyncio.run(run())


def test_a_pod_whose_group_the_api_server_rejects_is_told() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))

        def reject(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/podgroups"):
                raise ApiError(422, "Invalid", "spec.minMember: Invalid value")

        api.before = reject
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
            assert runner.controllers[0].queue.failing == 0
        text = "The API server refuses the PodGroup of the pod: spec.minMember: Invalid value"
        assert api.events == [("Rejected", text)]

    asyncio.run(run())


def test_a_pod_whose_group_a_webhook_denies_is_told_once_and_gets_it_when_the_webhook_allows_it() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))
        denied = []

        def deny(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/podgroups") and len(denied) < 3:
                denied.append(request)
                raise ApiError(400, "BadRequest", 'admission webhook "x" denied the request: no queue test')

        api.before = deny
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: bool(group_of(api, "a")))
            await wait_until_idle(api, runner)
        text = 'refuses the PodGroup of the pod: admission webhook "x" denied the request: no queue test'
        assert api.events == [("Rejected", f"The API server {text}")]

    asyncio.run(run())


def webhook_down(request: Request) -> None:
    if request.method == "POST" and request.path.endswith("/podgroups"):
        raise ApiError(
            500, "InternalError", 'failed calling webhook "mutatepodgroup.volcano.sh": no endpoints'
        )


def test_a_pod_reports_that_its_group_cannot_be_created_and_starts_once_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_writer, "ATTEMPTS", 1)

    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))
        api.before = webhook_down
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: bool(api.events))
            api.before = lambda _: None
            await wait_until(lambda: bool(group_of(api, "a")))
            await wait_until_idle(api, runner)
        cause = 'failed calling webhook "mutatepodgroup.volcano.sh": no endpoints'
        text = f"The PodGroup cannot be created, and is tried again: {cause}"
        assert api.events == [("FailedCreate", text)]

    asyncio.run(run())


@pytest.mark.parametrize(("annotation", "queue"), [("", "team"), ("default", "team"), ("other", "other")])
def test_a_group_of_the_default_queue_goes_to_the_queue_of_its_namespace(annotation: str, queue: str) -> None:
    """The webhook is not called for groups that controllers create."""

    async def run() -> None:
        api = InMemoryApi()
        api.put("namespaces", {"metadata": {"name": "ns", "annotations": {QUEUE: "team"}}})
        api.put("pods", pod("a", annotations={QUEUE: annotation} if annotation else {}))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        (group,) = api.every("podgroups")
        assert group["spec"]["queue"] == queue

    asyncio.run(run())


def test_a_group_without_the_permission_to_read_namespaces_is_in_the_default_queue() -> None:
    """The webhook is called for these groups: both are of the same release."""

    async def run() -> None:
        api = InMemoryApi()
        api.put("pods", pod("a"))

        def refuse(request: Request) -> None:
            if request.path.endswith("/namespaces/ns"):
                raise ApiError(403, "Forbidden", "no")

        api.before = refuse
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until_idle(api, runner)
        (group,) = api.every("podgroups")
        assert group["spec"]["queue"] == "default"

    asyncio.run(run())


def test_a_pod_gets_no_group_in_a_closed_queue_and_one_when_it_is_open_again() -> None:
    async def run() -> None:
        api = InMemoryApi()
        api.put("queues", {"metadata": {"name": "shut"}, "status": {"state": "Closed"}})
        api.put("pods", pod("a", annotations={QUEUE: "shut"}))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: bool(api.events))
            assert api.every("podgroups") == []
            api.put("queues", {"metadata": {"name": "shut"}, "status": {"state": "Open"}})
            await wait_until(lambda: bool(group_of(api, "a")))
            await wait_until_idle(api, runner)
        ((reason, text),) = api.events
        assert reason == "Rejected"
        assert "can only submit PodGroup to queue with state `Open`, queue `shut` status is `Closed`" in text

    asyncio.run(run())


def test_a_pod_of_too_many_containers_gets_no_group_and_is_told() -> None:
    async def run() -> None:
        api = InMemoryApi()
        large = pod("large")
        large["spec"]["containers"] *= 1001
        api.put("pods", large)
        api.put("pods", pod("small"))
        async with running_controllers(api, PodGroupController) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
            assert names(api.every("podgroups")) == ["podgroup-uid-small"]
        text = "the pod has 1001 containers, at most 1000 are allowed: use several pods"
        assert api.events == [("TooLarge", text)]

    asyncio.run(run())
