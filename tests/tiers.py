"""Which tests make up a tier, and in which groups and order they run.

`make test` runs the tier `fast`, `make test-all` runs `all`. `rest` is what `all` has beyond `fast`. Tests that need a
program besides Python are marked `programs` and run by `make test-embedded`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Hashable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.kubernetes.program import cached, helm_folder
from tests.number_of_examples import VARIABLE, scaled

TIERS = ("fast", "rest", "all", "programs")
SHARE = 3
"""The tier `fast` runs one in so many seeds of a test, and of the examples of a property."""
EXAMPLES = 40
"""Examples of a property that sets no number."""
DURATIONS = Path(__file__).with_name("durations.json")
SHORTEST = 0.5
"""Seconds below which the duration of a file is not kept."""
SHARED_CLUSTERS = {
    "shared_cluster": "shared_cluster",
    "gate": "gate",
    "admitting_plane": "gate",
    "workload_plane": "workload_plane",
    "plane": "plane",
}
"""Fixtures that start servers once for a run, with a name for these servers: their tests run in one worker."""
BASIC_PROGRAMS = (
    "awk basename bash cat chmod cp cut date dirname echo env expr false find grep head hostname id kill ln ls mkdir"
    " mkfifo mktemp mv nice nohup nproc printf ps pwd rm rmdir sed seq setpriv setsid sh sleep sort stty tail tee test"
    " timeout touch tr true uname uniq wc which xargs yes"
)
"""What every machine has; tests of the tier `fast` find no other program."""

_getaddrinfo = socket.getaddrinfo


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="", help="run the tests of one tier")
    parser.addoption(
        "--record-durations", action="store_true", help=f"keep how long files take in {DURATIONS.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    socket.getaddrinfo = _local_addresses  # no test asks the network for a name
    remove_proxies(os.environ)
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as in a background job; processes that tests start inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        _prepare(config, config.getoption("--tier"))
    # The same examples in every run of CI, so that a change is judged alike. No deadline: a busy machine is no failure.
    settings.register_profile(
        "tier", max_examples=scaled(EXAMPLES), derandomize=bool(os.environ.get("CI")), deadline=None
    )
    settings.load_profile("tier")


def remove_proxies(environment: MutableMapping[str, str]) -> None:
    """Take proxies out of an environment: clients of Python would look for servers of this machine behind them."""
    for name in [name for name in environment if name.lower().endswith("_proxy")]:
        del environment[name]


def _local_addresses(
    host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> Any:
    """Look up addresses and names of this machine; any other name is unknown."""
    name = host.decode() if isinstance(host, bytes) else host
    if name not in (None, "", "localhost", socket.gethostname()):
        flags |= socket.AI_NUMERICHOST
    return _getaddrinfo(host, port, family, type, proto, flags)


def _prepare(config: pytest.Config, tier: str) -> None:
    if tier == "fast":
        os.environ[VARIABLE] = str(float(os.environ.get(VARIABLE, "1")) / SHARE)
        os.environ["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), _links(config, BASIC_PROGRAMS.split())]
        )
    else:
        os.environ["PATH"] = os.pathsep.join([_built_programs(config), os.environ["PATH"]])
    if config.getoption("--record-durations"):
        config.pluginmanager.register(_Recorder())


def _links(config: pytest.Config, names: list[str]) -> str:
    """Make a directory with nothing but links to these programs."""
    directory = _directory(config)
    for name in names:
        if (program := shutil.which(name)) is not None:
            (directory / name).symlink_to(program)
    return str(directory)


def _built_programs(config: pytest.Config) -> str:
    """Make a directory with the kubectl and the Helm that `make test-kubernetes` built."""
    directory = _directory(config)
    if (cached() / "kubetest").exists():
        kubectl = directory / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {cached() / "kubetest"} kubectl "$@"\n')
        kubectl.chmod(0o755)
    if (helm_folder() / "helm").exists():
        (directory / "helm").symlink_to(helm_folder() / "helm")
    return str(directory)


def _directory(config: pytest.Config) -> Path:
    directory = tempfile.TemporaryDirectory(prefix="stromboli-programs-")
    config.add_cleanup(directory.cleanup)
    return Path(directory.name)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as processors, since many tests wait for others."""
    return max(3 * (os.cpu_count() or 1) // 2, 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier:
        _mark_other_seeds(items)
        chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            chosen[_belongs(item, tier)].append(item)
        config.hook.pytest_deselected(items=chosen[False])
        items[:] = chosen[True]
    if config.getoption("dist", "no") == "loadgroup":
        _group(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("programs"):
        for name in mark.args:
            if shutil.which(name) is None:
                pytest.skip(f"there is no {name} on PATH")


def _belongs(item: pytest.Item, tier: str) -> bool:
    if (item.get_closest_marker("programs") is not None) != (tier == "programs"):
        return False
    slow = item.get_closest_marker("slow") is not None
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return tier in ("all", "programs") or (slow or is_property if tier == "rest" else not slow)


def _mark_other_seeds(items: list[pytest.Item]) -> None:
    """Mark as slow all but every third seed of a test."""
    seen: Counter[Hashable] = Counter()
    for item in items:
        params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "seed" in params:
            others = tuple(str(value) for name, value in params.items() if name != "seed")
            family = (item.path, getattr(item, "originalname", ""), others)
            if seen[family] % SHARE:
                item.add_marker("slow")
            seen[family] += 1


# -- groups and durations


def _group(items: list[pytest.Item]) -> None:
    """Let the tests of a file, or of a cluster that several files share, run in one worker; longest groups first."""
    durations = json.loads(DURATIONS.read_text())
    tests = Counter(_file(item) for item in items)
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        shared = next((servers for name, servers in SHARED_CLUSTERS.items() if name in fixtures), None)
        groups[shared or _file(item)].append(item)
    seconds = {
        name: sum(durations.get(_file(item), 0) / tests[_file(item)] for item in group)
        for name, group in groups.items()
    }
    ordered = sorted(groups, key=lambda name: -seconds[name])
    for name in ordered:
        for item in groups[name]:
            item.add_marker(pytest.mark.xdist_group(name))
    items[:] = [item for name in ordered for item in groups[name]]


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(DURATIONS.parent).as_posix()


class _Recorder:
    """Keeps how long the tests of each file took, in seconds."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0].removeprefix("tests/")] += report.duration

    def pytest_sessionfinish(self) -> None:
        known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        known |= {file: round(seconds, 1) for file, seconds in self._seconds.items()}
        kept = {file: seconds for file, seconds in sorted(known.items()) if seconds >= SHORTEST}
        DURATIONS.write_text(json.dumps(kept, indent=1) + "\n")
