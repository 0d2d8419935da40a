"""The webhook server beside an API server: its certificate, its registration, its answers."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from stromboli.admission import certificate_source, cluster_context, webhook_registration
from stromboli.admission.options import BadFlag, Options, parse
from stromboli.admission.process import Process
from stromboli.admission.webhook_certificates import VALIDITY, issue, needs_renewal
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.embedded.http.api_server import ApiServer
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.request import ApiError
from tests.admission.reviewing import job, task
from tests.deploy.manifests import DEPLOY

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", False)
GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
QUEUES_DEFINED = DEPLOY / "crds" / "scheduling.volcano.sh_queues.yaml"
GROUPS_DEFINED = DEPLOY / "crds" / "scheduling.volcano.sh_podgroups.yaml"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Stage:
    """An API server, a webhook server, and a way to ask the latter."""

    def __init__(self, client: Client, process: Process) -> None:
        self.client = client
        self.process = process

    async def ask(self, path: str, content: Any, old: Any = None, **request: Any) -> dict[str, Any]:
        group, _, version = request.pop("group", "batch.volcano.sh/v1alpha1").rpartition("/")
        plural = path.split("/")[1]
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u1",
                "operation": "CREATE",
                "resource": {"group": group, "version": version, "resource": plural},
                "namespace": "team",
                "object": content,
                "oldObject": old,
                **request,
            },
        }
        status, text = await self.post(path, json.dumps(body).encode())
        assert status == 200, text
        response: dict[str, Any] = json.loads(text)["response"]
        assert response.pop("uid") == "u1"
        return response

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, str]:
        secret = json.loads(
            await self.client.get(certificate_source.SECRETS, "stromboli-admission-secret", "default")
        )
        trusted = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        url = f"https://localhost:{self.process.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=io.BytesIO(body), headers={"Content-Type": kind}, ssl=trusted) as answer,
        ):
            return answer.status, await answer.text()


@asynccontextmanager
async def stage(folder: Path, **options: Any) -> AsyncIterator[Stage]:
    async with ApiServer(folder / "data") as server:
        server.write_kubeconfig(folder / "kubeconfig")
        access = find_access(str(folder / "kubeconfig"))
        async with Client(access) as client:
            await client.create(DEFINITIONS, yaml.safe_load(QUEUES_DEFINED.read_text()))
            await client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
            async with running(access, **options) as process:
                yield Stage(client, process)


@asynccontextmanager
async def running(access: Access, **options: Any) -> AsyncIterator[Process]:
    given = {"webhook_namespace": "default", "webhook_url": "https://localhost", "bind_address": "127.0.0.1"}
    process = Process(Options(**{**given, "port": 0, **options}), access, resync=0.05)
    task = asyncio.create_task(process.run())
    while process.ready():
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    yield process
    process.stop()
    assert await task == 0


def patched(response: dict[str, Any]) -> Any:
    return {
        operation["path"]: operation["value"] for operation in json.loads(base64.b64decode(response["patch"]))
    }


def test_a_job_is_completed_and_one_without_tasks_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            response = await at.ask("/jobs/mutate", job(task(replicas=2)))
            assert response["patchType"] == "JSONPatch"
            assert patched(response)["/spec/minAvailable"] == 2
            assert await at.ask("/jobs/validate", job(task())) == {"allowed": True}
            refused = await at.ask("/jobs/validate", job())
            assert refused["allowed"] is False
            assert refused["status"]["message"].startswith("No task specified in job spec")

    asyncio.run(story())


def test_clients_that_do_not_finish_a_header_stop_no_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stromboli.admission.process.LIMITS", ConnectionLimits(unproven=5))

    async def story() -> None:
        async with stage(tmp_path) as at:
            links = [await asyncio.open_connection("127.0.0.1", at.process.port) for _ in range(15)]
            for reader, _ in links[:10]:  # closed to make room for the others
                with suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 20) == b""
            assert await at.ask("/jobs/validate", job(task())) == {"allowed": True}
            for _, writer in links:
                writer.transport.abort()

    asyncio.run(story())


def test_a_queue_that_was_made_a_moment_ago_is_found(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            await at.client.create(QUEUES, {"metadata": {"name": "new"}, "spec": {}})
            assert await at.ask("/jobs/validate", job(task(), queue="new")) == {"allowed": True}
            refused = await at.ask("/jobs/validate", job(task(), queue="none"))
            assert 'queue.scheduling.volcano.sh "none" not found' in refused["status"]["message"]

    asyncio.run(story())


def test_a_queue_whose_jobs_have_no_pods_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_context, "PAGE", 1)

    async def story() -> None:
        async with stage(tmp_path, enable_queue_allocated_pods_check=True) as at:

            async def delete(name: str) -> dict[str, Any]:
                about = {"group": "scheduling.volcano.sh/v1beta1", "operation": "DELETE"}
                return await at.ask("/queues/validate", None, {"metadata": {"name": name}}, **about)

            for name in ("full", "free"):
                await at.client.create(QUEUES, {"metadata": {"name": name}, "spec": {}})
            while not ((await delete("full"))["allowed"] and (await delete("free"))["allowed"]):
                await asyncio.sleep(0.01)  # the watch has not shown them; no PodGroups are installed yet
            await at.client.create(DEFINITIONS, yaml.safe_load(GROUPS_DEFINED.read_text()))
            for name, queue in (("a", "other"), ("b", "full"), ("c", "other")):
                spec = {"minMember": 1, "queue": queue}
                await at.client.create(GROUPS, {"metadata": {"name": name}, "spec": spec}, "default")
            refused = await delete("full")
            assert "has unfinished jobs, such as PodGroup default/b" in refused["status"]["message"]
            assert await delete("free") == {"allowed": True}

            async def fail(*_: Any, **__: Any) -> bytes:
                raise ApiError(403, "Forbidden", "podgroups is forbidden")

            monkeypatch.setattr(Client, "list", fail)
            refused = await delete("free")
            assert "its jobs cannot be listed: podgroups is forbidden" in refused["status"]["message"]

    asyncio.run(story())


def test_a_namespace_names_the_queue_of_its_groups(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            annotations = {"scheduling.volcano.sh/queue-name": "blue"}
            await at.client.create(NAMESPACES, {"metadata": {"name": "team", "annotations": annotations}})
            group = {"metadata": {"name": "g"}, "spec": {"queue": "default"}}
            about = {"group": "scheduling.volcano.sh/v1beta1"}
            assert patched(await at.ask("/podgroups/mutate", group, **about)) == {"/spec/queue": "blue"}
            assert await at.ask("/podgroups/mutate", group, namespace="elsewhere", **about) == {
                "allowed": True
            }

    asyncio.run(story())


def test_what_was_sent_to_the_wrong_place_or_is_no_review_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            response = await at.ask("/jobs/validate", {}, group="batch/v1")
            expected = "expect resource to be batch.volcano.sh/v1alpha1, Resource=jobs"
            assert response["status"]["message"] == expected
            response = await at.ask("/jobs/validate", {}, operation="DELETE")
            assert response["status"]["message"] == "expect operation to be 'CREATE' or 'UPDATE'"
            assert (await at.post("/jobs/validate", b"{}", "text/plain"))[0] == 415
            assert (await at.post("/jobs/validate", b"[" * 100_000))[0] == 400
            assert (await at.post("/jobs/validate", b"x" * 4_000_000))[0] == 413
            assert (await at.post("/elsewhere", b"{}"))[0] == 404

    asyncio.run(story())


def test_the_api_server_is_told_whom_to_trust_also_when_the_configuration_comes_later(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            webhook = {
                "name": "validatejob.volcano.sh",
                "clientConfig": {"url": "https://localhost/jobs/validate"},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            await at.client.create(
                WEBHOOKS, {"metadata": {"name": "stromboli-admission"}, "webhooks": [webhook]}
            )
            secret = json.loads(
                await at.client.get(certificate_source.SECRETS, "stromboli-admission-secret", "default")
            )
            for _ in range(200):
                configuration = json.loads(await at.client.get(WEBHOOKS, "stromboli-admission"))
                if configuration["webhooks"][0]["clientConfig"].get("caBundle"):
                    break
                await asyncio.sleep(0.05)
            assert configuration["webhooks"][0]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]

    asyncio.run(story())


def test_a_server_is_ready_when_the_api_server_knows_whom_to_trust(tmp_path: Path) -> None:
    """So that the end of a rollout means that jobs are taken."""

    async def story() -> None:
        async with ApiServer(tmp_path / "data") as server:
            server.write_kubeconfig(tmp_path / "kubeconfig")
            access = find_access(str(tmp_path / "kubeconfig"))
            async with Client(access) as client:
                await client.create(DEFINITIONS, yaml.safe_load(QUEUES_DEFINED.read_text()))
                webhook = {
                    "name": "validatejob.volcano.sh",
                    "clientConfig": {"url": "https://localhost/jobs/validate"},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
                meta = {"name": "stromboli-admission"}
                await client.create(WEBHOOKS, {"metadata": meta, "webhooks": [webhook]})
                async with running(access):
                    configuration = json.loads(await client.get(WEBHOOKS, "stromboli-admission"))
                    assert configuration["webhooks"][0]["clientConfig"]["caBundle"]

    asyncio.run(story())


def test_a_server_is_not_ready_while_its_ca_bundle_cannot_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = webhook_registration.write_ca_bundle
    attempts = 0

    async def refused_at_first(*arguments: Any) -> list[str]:
        nonlocal attempts
        attempts += 1
        if attempts <= 3:
            raise ApiError(403, "Forbidden", "webhook configurations are forbidden")
        return await publish(*arguments)

    monkeypatch.setattr(webhook_registration, "write_ca_bundle", refused_at_first)

    async def story() -> None:
        async with stage(tmp_path):  # which waits until the server is ready
            assert attempts > 3

    asyncio.run(story())


def test_whatever_goes_wrong_with_the_certificate_it_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0

    async def full(*_: object) -> list[str]:
        nonlocal checks
        checks += 1
        raise OSError(28, "No space left on device")

    async def story() -> None:
        async with stage(tmp_path):
            monkeypatch.setattr(webhook_registration, "write_ca_bundle", full)
            async with asyncio.timeout(10):
                while checks < 3:
                    await asyncio.sleep(0.01)

    asyncio.run(story())


def test_reviews_are_accepted_for_a_while_after_a_stop_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with stage(tmp_path, shutdown_delay_duration=0.5) as scene:
            scene.process.stop()
            assert scene.process.ready() == "stopping"
            assert (await scene.ask("/jobs/mutate", job(task())))["allowed"]
            monkeypatch.setattr(scene.process, "stop", lambda: None)  # a second signal would end it at once

    asyncio.run(play())


def test_several_servers_share_one_certificate(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            first = await at.client.get(certificate_source.SECRETS, "stromboli-admission-secret", "default")
            async with running(at.client.access) as second:
                assert await Stage(at.client, second).ask("/jobs/validate", job(task())) == {"allowed": True}
            assert (
                await at.client.get(certificate_source.SECRETS, "stromboli-admission-secret", "default")
                == first
            )

    asyncio.run(story())


def test_resource_groups_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text("resourceGroups: []")
    pod = {"metadata": {"name": "p", "namespace": "team"}, "spec": {}}

    async def story() -> None:
        async with stage(tmp_path, admission_conf=file) as at:
            assert await at.ask("/pods/mutate", pod, group="/v1") == {"allowed": True}
            group = {
                "resourceGroup": "a",
                "object": {"key": "namespace", "value": ["team"]},
                "schedulerName": "mine",
            }
            file.write_text(yaml.safe_dump({"resourceGroups": [group]}))
            for _ in range(100):
                response = await at.ask("/pods/mutate", pod, group="/v1")
                if "patch" in response:
                    break
                await asyncio.sleep(0.05)
            assert patched(response) == {"/spec/schedulerName": "mine"}
            file.write_text("resourceGroups: what")
            await asyncio.sleep(0.2)
            assert patched(await at.ask("/pods/mutate", pod, group="/v1")) == {"/spec/schedulerName": "mine"}

    asyncio.run(story())


def test_a_certificate_is_renewed_before_it_ends_and_the_authority_stays() -> None:
    keys = issue(["a.svc", "127.0.0.1"], NOW)
    assert not needs_renewal(keys, ["a.svc", "127.0.0.1"], NOW)
    assert needs_renewal(keys, ["b.svc"], NOW)
    later = NOW + VALIDITY - timedelta(days=20)
    assert needs_renewal(keys, ["a.svc"], later)
    renewed = issue(["a.svc"], later, keys)
    assert renewed.authority == keys.authority
    assert not needs_renewal(renewed, ["a.svc"], later)


def test_an_old_authority_is_trusted_until_all_have_heard_of_the_new_one() -> None:
    keys = issue(["a.svc"], NOW)
    renewed = issue(["a.svc"], NOW + timedelta(days=3400), keys)
    assert renewed.authority.endswith(keys.authority)
    assert renewed.authority != keys.authority
    assert not needs_renewal(renewed, ["a.svc"], NOW + timedelta(days=3400))


def test_keys_that_cannot_be_read_are_replaced() -> None:
    keys = issue(["a.svc"], NOW)
    for part in keys._fields:
        broken = keys._replace(**{part: b"nonsense"})
        assert needs_renewal(broken, ["a.svc"], NOW)
        assert not needs_renewal(issue(["a.svc"], NOW, broken), ["a.svc"], NOW)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty"),
        (["--webhook-url=https://a", "--port=0"], "the port should be in the range of 1 and 65535"),
        (
            ["--webhook-url=https://a", "--enabled-admission=/jobs/mutate,/jobs/bless"],
            "enabled admission /jobs/bless not found on the admission registered map",
        ),
        (["--webhook-url=https://a", "--tls-cert-file=x"], "go together"),
    ],
)
def test_flags_that_make_no_sense(arguments: list[str], text: str) -> None:
    with pytest.raises(BadFlag, match=re.escape(text)):
        parse(arguments)


def test_the_names_that_the_certificate_is_for() -> None:
    options = parse(
        ["--webhook-namespace=ns", "--webhook-service-name=svc", "--webhook-url=https://host:8443/x"]
    )
    assert options.own_names == ["svc", "svc.ns", "svc.ns.svc", "host"]
