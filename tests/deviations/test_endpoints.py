"""Where the endpoints and connections of our processes differ from Volcano's: docs/deviations.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stromboli.admission import options as admission
from stromboli.controllers import options as controllers
from stromboli.daemon.delegated_authorization import DelegatedAuthorization
from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.listening_sockets import split_address
from stromboli.kube.cluster_access import find_access
from stromboli.scheduler import options as scheduler
from stromboli.scheduler.process import add_debug_routes
from tests.kube.fake_api import FakeApi
from tests.scheduler.test_process import FakeIntrospection

WEBHOOK = "--webhook-url=https://localhost"


@pytest.mark.parametrize(
    ("parse", "needed"),
    [(scheduler.parse, []), (controllers.parse, []), (admission.parse, [WEBHOOK])],
    ids=["scheduler", "controllers", "admission"],
)
def test_health_and_metrics_are_for_this_machine_unless_a_flag_says_otherwise(
    parse: Callable[[list[str]], Any], needed: list[str]
) -> None:
    """Volcano listens on every address."""
    options = parse(needed)
    addresses = [options.healthz_address, options.listen_address]
    assert {split_address(address)[0] for address in addresses if address} == {"127.0.0.1"}
    opened = parse([*needed, "--healthz-address=:11251"])
    assert split_address(opened.healthz_address) == (None, 11251)


def test_debugging_needs_a_right_on_the_path() -> None:
    """Volcano shows whoever asks, and writes a file for whoever asks."""

    async def story() -> None:
        options = scheduler.parse(["--enable-pprof", "--listen-address=127.0.0.1:0"])
        authorization = DelegatedAuthorization(FakeApi())  # type: ignore[arg-type]
        debugging = partial(add_debug_routes, FakeIntrospection(), authorization)  # type: ignore[arg-type]
        endpoints = Endpoints(options, FakeIntrospection(), debugging)
        await endpoints.start()
        url = f"http://127.0.0.1:{endpoints.ports['metrics']}"
        async with aiohttp.ClientSession() as session:
            for method, path in (("GET", "consistency"), ("POST", "dump"), ("GET", "stacks")):
                async with session.request(method, f"{url}/debug/{path}") as response:
                    assert response.status == 401
        await endpoints.stop()

    asyncio.run(story())


def test_proxies_of_the_environment_are_not_used_for_the_api_server(tmp_path: Path) -> None:
    """Go's clients use them unless a kubeconfig names another proxy."""
    (tmp_path / "token").write_text("secret")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HTTPS_PROXY": "http://proxy:3128"}
    assert find_access(environment=environment, service_account=tmp_path).proxy == ""
