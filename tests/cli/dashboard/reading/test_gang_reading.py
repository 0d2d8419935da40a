"""What is read of a gang: the warnings of its pods in a busy namespace, and pods no more often than they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.cluster.cluster_kinds import JOBS, PODS, Manifest
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.reading import gang_events
from stromboli.cli.dashboard.reading.gang_reading import (
    MEMBERS_AT_ONCE,
    KnownMembers,
    PodChoice,
    read_group,
    read_job,
)
from stromboli.cli.live.cluster_records import PodRecord
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError
from tests.cli.dashboard.served_cluster import ServedCluster, job_manifest, on_cluster, pod_manifest
from tests.manifests import group

# -- events


def warning(name: str, pod: str, uid: str, message: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default", "uid": uid},
        "reason": "FailedMount",
        "message": message,
        "type": "Warning",
        "lastTimestamp": "2027-01-15T07:00:00Z",
    }


async def failed_job(cluster: ServedCluster) -> str:
    """A job with a pod that cannot start; the uid of the pod."""
    await cluster.create(job_manifest())
    session = await cluster.session()
    job = await session.get(JOBS, "train", "default")
    waiting = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    waiting["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    await cluster.create(pod_manifest(job, "worker", 0, "n1", phase="Pending", containerStatuses=[waiting]))
    return str((await session.get(PODS, "train-worker-0", "default"))["metadata"]["uid"])


@pytest.mark.parametrize(("others", "are_all"), [(2, True), (12, False)])
def test_warnings_of_its_pods_are_read_however_many_others_there_are(
    others: int, are_all: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang_events, "MOST_EVENTS_READ", 5)

    async def work(cluster: ServedCluster) -> None:
        uid = await failed_job(cluster)
        for number in range(others):
            await cluster.create(warning(f"a-{number:02}", f"other-{number}", f"u{number}", "of another"))
        await cluster.create(warning("z-0", "train-worker-0", uid, "no such volume"))
        reading = await read_job(await cluster.session(), "default", "train", PodChoice())
        assert [(each.message, each.times) for each in reading.events or ()] == [("no such volume", 1)]
        assert reading.has_all_events is are_all

    on_cluster(work, tmp_path)


# -- members


def counting(session: ClusterSession, read: list[str]) -> ClusterSession:
    """A session that notes which pods are read."""

    class Counting(ClusterSession):
        async def find(
            self, resource: Resource, name: str, namespace: str | None = None
        ) -> dict[str, Any] | None:
            if resource == PODS:
                read.append(name)
            return await ClusterSession.find(self, resource, name, namespace)

    return Counting(session.client, None, "default")


def record(node: str = "n1") -> PodRecord:
    return PodRecord("default/gang", node, runs=True, finished=False, request={})


async def gang_of(cluster: ServedCluster, size: int) -> list[str]:
    owner = {"metadata": {"name": "gang", "uid": "u"}}
    pods = [pod_manifest(owner, "worker", index, "n1") for index in range(size)]
    for pod in pods:
        del pod["metadata"]["ownerReferences"]
    await cluster.create(group("gang", 1, phase="Running"), *pods)
    return [pod["metadata"]["name"] for pod in pods]


def test_members_that_change_are_read_again_and_the_others_in_turn(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        names = await gang_of(cluster, 30)
        read: list[str] = []
        session, known = counting(await cluster.session(), read), KnownMembers()
        members = dict.fromkeys(names, record())
        reading = await read_group(session, "default", "gang", members, known)
        assert [pod.name for pod in reading.pods or ()] == names
        assert sorted(read) == sorted(names)
        read.clear()
        reading = await read_group(session, "default", "gang", {**members, names[20]: record("n2")}, known)
        assert len(read) == 1 + MEMBERS_AT_ONCE
        assert names[20] in read
        assert [pod.name for pod in reading.pods or ()] == names
        for _ in range(3):
            await read_group(session, "default", "gang", {**members, names[20]: record("n2")}, known)
        assert set(read) == set(names), "each comes to its turn"

    on_cluster(work, tmp_path)


def test_members_that_are_gone_are_left_out(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        names = await gang_of(cluster, 3)
        session, known = await cluster.session(), KnownMembers()
        members = dict.fromkeys([*names, "never-there"], record())
        reading = await read_group(session, "default", "gang", members, known)
        assert [pod.name for pod in reading.pods or ()] == names
        reading = await read_group(session, "default", "gang", {names[0]: record()}, known)
        assert [pod.name for pod in reading.pods or ()] == names[:1]

    on_cluster(work, tmp_path)


def test_a_viewer_who_has_lost_the_right_to_pods_sees_none_of_those_that_were_read(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        members = dict.fromkeys(await gang_of(cluster, 3), record())
        known = KnownMembers()
        await read_group(await cluster.session(), "default", "gang", members, known)
        rules = [{"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["get"]}]
        await cluster.allow("ann", rules)
        ann = await cluster.session("ann")
        reading = await read_group(ann, "default", "gang", members, known)
        assert reading.pods is None
        assert any("may not get pods" in gap for gap in reading.gaps)
        with pytest.raises(ApiError):
            await known.read(ann, "default", members)

    on_cluster(work, tmp_path)
