"""A cluster of `stromboli up` for the tests of a module, and a namespace for each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.embedded.up_process import Up

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two simulated nodes, and two real ones."""
    options = ("--nodes", "2x8cpu", "--nodes", "real=2x4cpu,8Gi,real", "--schedule-period", "200ms")
    with Up(tmp_path_factory.mktemp("up") / "data", *options) as up:
        yield up


@pytest.fixture
def space(cluster: Up) -> Iterator[str]:
    """A namespace of its own, which kubectl uses."""
    name = f"space-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("config", "set-context", "--current", f"--namespace={name}")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
