"""Which tests make up a tier, and in which groups and order they run.

`make test` runs the tier `fast`, `make test-all` runs `all`. `rest` is what `all` has beyond `fast`. Tests that need a
program besides Python are marked `programs` and run by `make test-embedded`.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

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
SHARED_SERVERS = "tests/kubernetes/"
"""In a tier, the tests below this directory share servers that start once for a run, so they run in one worker."""
BASIC_PROGRAMS = (
    "awk basename bash cat chmod cp cut date dirname echo env expr false find grep head hostname id kill ln ls mkdir"
    " mkfifo mktemp mv nice nohup nproc printenv printf ps pwd rm rmdir sed seq setpriv setsid sh sleep sort stty tail"
    " tee test timeout touch tr true uname uniq wc which xargs yes"
)
"""What every machine has; tests not marked `programs` find no other program in a tier."""
DIVISIBLE = frozenset({"tests/properties/test_missed_changes.py"})
"""Files so long that several workers share their tests, which have no fixtures."""
WORDS = {"rest": ("slow", "seed", "hypothesis"), "programs": ("programs",)}
"""A test file without any of these words has no test of the tier."""
PYTHON_COMMANDS = ("python", "python3", "stromboli")

_getaddrinfo = socket.getaddrinfo
_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="", help="run the tests of one tier")
    parser.addoption(
        "--record-durations", action="store_true", help=f"keep how long files take in {DURATIONS.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    socket.getaddrinfo = _local_addresses  # no test asks the network for a name
    socket.socket.connect = _connect_locally(_connect)
    socket.socket.connect_ex = _connect_locally(_connect_ex)
    remove_proxies(os.environ)
    os.environ.pop(
        "PYTEST_ADDOPTS", None
    )  # its options are for this run, not for pytest processes that tests start
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # as in a background job; processes that tests start inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    tier = config.getoption("--tier")
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        _prepare(config, tier)
    # The same examples in every run of `make test` and of CI, so that a change is judged alike. No deadline: a busy
    # machine is no failure.
    same = tier == "fast" or bool(os.environ.get("CI"))
    settings.register_profile("tier", max_examples=scaled(EXAMPLES), derandomize=same, deadline=None)
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


def _connect_locally(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    """Connect to addresses of this machine; any other is unreachable."""

    @functools.wraps(connect)
    def guarded(client: socket.socket, address: Any) -> Any:
        internet = client.family in (socket.AF_INET, socket.AF_INET6)
        if internet and client.type == socket.SOCK_STREAM and not _is_local(client.family, address[0]):
            raise OSError(errno.ENETUNREACH, f"tests connect to no other machine: {address[0]}")
        return connect(client, address)

    return guarded


@functools.cache
def _is_local(family: socket.AddressFamily, host: str) -> bool:
    """Whether a server of this machine could listen there."""
    with socket.socket(family, socket.SOCK_STREAM) as server:
        try:
            socket.getaddrinfo(host or None, 0, family)  # looks up no name over the network, as `bind` would
            server.bind((host, 0))
        except OSError:
            return False
    return True


def _prepare(config: pytest.Config, tier: str) -> None:
    if tier == "fast":
        os.environ[VARIABLE] = str(float(os.environ.get(VARIABLE, "1")) / SHARE)
    if tier in ("", "programs"):
        programs = [_built_programs(config), os.environ["PATH"]]
    else:
        programs = [_links(config, BASIC_PROGRAMS.split())]
    os.environ["PATH"] = os.pathsep.join([_python(config), *programs])
    if config.getoption("--record-durations"):
        config.pluginmanager.register(_Recorder(_kind_of_run(config)))


def _python(config: pytest.Config) -> str:
    """Return a directory with Python and its commands alone: /usr/bin, for one, has others too."""
    beside = Path(sys.executable).parent
    if sys.prefix != sys.base_prefix:  # a virtual environment
        return str(beside)
    directory = _directory(config)
    for name in PYTHON_COMMANDS:
        if (beside / name).exists():
            (directory / name).symlink_to(beside / name)
    return str(directory)


def _links(config: pytest.Config, names: list[str]) -> str:
    """Make a directory with nothing but links to these programs."""
    found = {name: shutil.which(name) for name in names}
    if missing := [name for name, program in found.items() if program is None]:
        raise pytest.UsageError(f"tests need programs that are not on PATH: {', '.join(missing)}")
    directory = _directory(config)
    for name, program in found.items():
        (directory / name).symlink_to(str(program))
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
    if hasattr(config, "workerinput"):
        _order(items, tier, _kind_of_run(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that cannot have a test of the tier, since to import and rewrite all files takes a while."""
    words = WORDS.get(config.getoption("--tier"))
    if words is None or collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    beside = collection_path.with_name("conftest.py")  # which may mark all tests of a directory
    texts = [file.read_text() for file in (collection_path, beside) if file.exists()]
    return None if any(word in text for word in words for text in texts) else True


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


class GroupScheduling(LoadScopeScheduling):
    """Gives the tests of a group to one worker, and groups in the order in which workers list them."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid, self.config.getoption("--tier"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    if config.getoption("dist") != "load":  # a developer asked for another distribution
        return None
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


def _group(nodeid: str, tier: str) -> str:
    file = nodeid.partition("::")[0]
    if file in DIVISIBLE:
        return nodeid
    return SHARED_SERVERS if tier and file.startswith(SHARED_SERVERS) else file


def _order(items: list[pytest.Item], tier: str, kind: str) -> None:
    """Sort tests by the expected duration of their group, longest first."""
    durations = _expected_durations(kind)
    seconds: Counter[str] = Counter()
    for group, file in {(_group(item.nodeid, tier), item.nodeid.partition("::")[0]) for item in items}:
        seconds[group] += durations.get(file.removeprefix("tests/"), 0)
    ordered = {
        group: place
        for place, group in enumerate(sorted(seconds, key=lambda group: (-seconds[group], group)))
    }
    items.sort(key=lambda item: ordered[_group(item.nodeid, tier)])


def _kind_of_run(config: pytest.Config) -> str:
    """Return what durations of files depend on: the tier, or the API server of `tests/kubernetes`."""
    return str(config.getoption("--tier") or config.getoption("--server") or "real")


def _recorded() -> dict[str, dict[str, float]]:
    """Return the seconds of each file by kind of run."""
    recorded: dict[str, dict[str, float]] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return recorded


def _expected_durations(kind: str) -> dict[str, float]:
    """Return the seconds of each file in this kind of run, or the most that it took in another."""
    recorded = _recorded()
    expected: Counter[str] = Counter()
    for files in recorded.values():
        expected |= Counter(files)
    return {**expected, **recorded.get(kind, {})}


class _Recorder:
    """Keeps how long the tests of each file took, in seconds."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0].removeprefix("tests/")] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):  # such as an interrupted run
            return
        recorded = _recorded()
        known = recorded.get(self._kind, {})
        known |= {file: round(seconds, 1) for file, seconds in self._seconds.items()}
        recorded[self._kind] = {
            file: seconds for file, seconds in sorted(known.items()) if seconds >= SHORTEST
        }
        new = DURATIONS.with_suffix(".new")
        new.write_text(json.dumps(recorded, indent=1) + "\n")
        new.replace(DURATIONS)
