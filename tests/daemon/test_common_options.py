"""What the three daemons have in common is the same flag in all of them, and help lists every flag once."""

from __future__ import annotations

from dataclasses import fields
from types import ModuleType

import pytest

from stromboli.admission import options as admission
from stromboli.controllers import options as controllers
from stromboli.daemon.common_options import CommonOptions, ElectedOptions
from stromboli.scheduler import options as scheduler

DAEMONS = pytest.mark.parametrize(
    "daemon", [scheduler, controllers, admission], ids=lambda module: module.__name__
)


@DAEMONS
def test_help_lists_every_flag_once(daemon: ModuleType) -> None:
    listed = [line.split()[0] for line in daemon.usage().splitlines() if line.startswith("  --")]

    flags = [option for option in fields(daemon.Options) if option.metadata]
    names = [option.metadata["name"] or option.name.replace("_", "-") for option in flags]
    assert sorted(listed) == sorted(f"--{name}" for name in names)


@DAEMONS
@pytest.mark.parametrize(
    "name", ["master", "kubeconfig", "healthz_address", "log_format", "v", "feature_gates"]
)
def test_a_common_flag_has_one_default_and_one_description(daemon: ModuleType, name: str) -> None:
    common = {option.name: option for option in fields(CommonOptions)}[name]
    own = {option.name: option for option in fields(daemon.Options)}[name]

    assert (own.default, own.metadata) == (common.default, common.metadata)


@pytest.mark.parametrize("kind", [scheduler.Options, controllers.Options])
def test_without_an_election_there_is_no_lease(kind: type[ElectedOptions]) -> None:
    settings = kind(lock_object_namespace="other").lease_settings("me")

    assert settings is not None
    assert (settings.namespace, settings.identity) == ("other", "me")
    assert kind(leader_elect=False).lease_settings("me") is None
