"""Real kubectl reads our schemas: apply in all its forms, patch, explain, and validation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.embedded.api_requests import running

pytestmark = pytest.mark.programs("kubectl")

Kubectl = Callable[..., Awaitable[str]]
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: "nginx:1", ports: [{containerPort: 80}]}
      - {name: b, image: "nginx:1"}
"""
IMAGES = "jsonpath={.spec.replicas} {range .spec.template.spec.containers[*]}{.name}={.image} {end}"


def run_with_kubectl(folder: Path, scenario: Callable[[Kubectl], Awaitable[None]]) -> None:
    """Run a scenario with a kubectl and a server of its own; kubectl returns its output, errors included."""

    async def run() -> None:
        async with running(folder) as api:
            config = folder / "config"
            api.server.write_kubeconfig(config)
            environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(folder)}

            async def kubectl(*arguments: str, stdin: str = "", **more: str) -> str:
                process = await asyncio.create_subprocess_exec(
                    "kubectl",
                    *arguments,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    env={**environment, **more},
                )
                output, _ = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
                return output.decode()

            await scenario(kubectl)

    asyncio.run(run())


def test_apply_adds_changes_and_removes(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        apply = ("apply", "-f", "-")
        assert "created" in await kubectl(*apply, stdin=DEPLOYMENT)
        assert "unchanged" in await kubectl(*apply, stdin=DEPLOYMENT)
        fewer = DEPLOYMENT.replace("replicas: 2", "replicas: 3").replace('- {name: b, image: "nginx:1"}', "")
        assert await kubectl(*apply, stdin=fewer) == "deployment.apps/web configured\n"
        assert await kubectl("get", "deploy", "web", "-o", IMAGES) == "3 a=nginx:1 "
        old = await kubectl(*apply, stdin=DEPLOYMENT, KUBECTL_OPENAPIV3_PATCH="false")
        assert old == "deployment.apps/web configured\n"
        assert await kubectl("get", "deploy", "web", "-o", IMAGES) == "2 a=nginx:1 b=nginx:1 "

    run_with_kubectl(tmp_path, scenario)


def test_apply_moves_to_the_server_and_tells_of_conflicts(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        apply = ("apply", "--server-side", "-f", "-")
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        more = DEPLOYMENT.replace("replicas: 2", "replicas: 3")
        assert await kubectl(*apply, stdin=more) == "deployment.apps/web serverside-applied\n"
        managers = "jsonpath={range .metadata.managedFields[*]}{.manager}:{.operation} {end}"
        shown = await kubectl("get", "deploy", "web", "--show-managed-fields", "-o", managers)
        assert shown == "kubectl:Apply kubectl-last-applied:Apply "
        others = await kubectl(*apply, "--field-manager=other", stdin=DEPLOYMENT)
        assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in others
        forced = await kubectl(*apply, "--field-manager=other", "--force-conflicts", stdin=DEPLOYMENT)
        assert "serverside-applied" in forced
        assert await kubectl("get", "deploy", "web", "-o", IMAGES) == "2 a=nginx:1 b=nginx:1 "

    run_with_kubectl(tmp_path, scenario)


def test_whoever_changed_a_field_is_named_in_the_conflict(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", stdin=DEPLOYMENT)
        await kubectl("patch", "deploy", "web", "-p", '{"spec":{"replicas":7}}')
        other = DEPLOYMENT.replace("nginx:1", "nginx:2")
        refused = await kubectl("apply", "--server-side", "-f", "-", stdin=other)
        assert 'conflicts with "kubectl-create" using apps/v1:' in refused
        assert '- .spec.template.spec.containers[name="a"].image' in refused
        assert 'conflicts with "kubectl-patch" using apps/v1:\n- .spec.replicas' in refused

    run_with_kubectl(tmp_path, scenario)


def test_patch_set_and_scale(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        patch = '{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"x"}]}}}}'
        assert "patched" in await kubectl("patch", "deploy", "web", "-p", patch)
        assert "image updated" in await kubectl("set", "image", "deploy/web", "a=y")
        json = '[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":5}]'
        assert "patched" in await kubectl("patch", "deploy", "web", "--type=json", "-p", json)
        assert await kubectl("get", "deploy", "web", "-o", IMAGES) == "5 a=y b=x "
        again = await kubectl("patch", "deploy", "web", "--type=json", "-p", json)
        assert "testing value /spec/replicas failed" in again

    run_with_kubectl(tmp_path, scenario)


def test_unknown_fields_and_wrong_values_are_refused(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        wrong = DEPLOYMENT.replace("replicas:", "replicaz:")
        assert 'unknown field "spec.replicaz"' in await kubectl("apply", "-f", "-", stdin=wrong)
        warned = await kubectl("apply", "--validate=warn", "-f", "-", stdin=wrong)
        assert 'Warning: unknown field "spec.replicaz"' in warned
        assert "created" in warned
        negative = DEPLOYMENT.replace("replicas: 2", "replicas: -2")
        refused = await kubectl("apply", "-f", "-", stdin=negative)
        assert "spec.replicas: Invalid value: -2: must be greater than or equal to 0" in refused

    run_with_kubectl(tmp_path, scenario)


def test_explain_tells_of_built_in_kinds_and_of_crds(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        explanation = await kubectl("explain", "pods.spec.containers")
        assert "FIELD: containers <[]Container>" in explanation
        assert "image\t<string>" in explanation
        await kubectl("apply", "-f", str(Path("deploy/crds/scheduling.volcano.sh_queues.yaml").resolve()))
        queue = await kubectl("explain", "queues.spec.reclaimable")
        assert "FIELD: reclaimable <boolean>" in queue
        old = await kubectl("explain", "jobs.spec.template", "--output=plaintext-openapiv2")
        assert "RESOURCE: template" in old

    run_with_kubectl(tmp_path, scenario)
