"""Which tests make up a tier, and in which groups and order they run.

`make test` runs the tier `fast`, `make test-all` runs `all`. `rest` is what `all` has beyond `fast`. Tests that need a
program besides Python are marked `programs` and run by `make test-embedded`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Generator, Hashable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.isolation import isolate_network, set_path
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
DIVISIBLE = frozenset({"tests/properties/test_missed_changes.py"})
"""Files so long that several workers share their tests, which have no fixtures."""
WORDS = {"rest": ("slow", "seed", "hypothesis"), "programs": ("programs",)}
"""A test file without any of these words has no test of the tier."""
SKIPS = (
    r"/proc|Linux|cgroup",
    "needs a device without room",
    "this machine does not have that family|this machine has no address but loopback",
    "this system does not tell whose connections are",
    r"STROMBOLI_DATA names the folder|an extra: stromboli\[plots\]",
    "screenshots are made on request|only before the first release",
)
"""Reasons for which a test of any tier may be skipped: another platform, no traces, or on purpose."""
SKIPS_OF_PROGRAMS = (
    r"there is no \S+ (here|on PATH)|in \$VOLCANO_E2E",
    "no package index can be reached",
    "this is no clone of the repository|needs the history of the repository",
)
"""Reasons in the tier `programs` besides: a program, a network or a history that the machine lacks."""


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, default="", help="run the tests of one tier")
    parser.addoption(
        "--record-durations", action="store_true", help=f"keep how long files take in {DURATIONS.name}"
    )


def pytest_configure(config: pytest.Config) -> None:
    isolate_network()
    # Options of this run are not for pytest processes that tests start.
    os.environ.pop("PYTEST_ADDOPTS", None)
    # A background job ignores interrupts, and so would processes that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    tier = config.getoption("--tier")
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        _prepare(config, tier)
    # The same examples in every run of `make test` and of CI, so that a change is judged alike. No deadline: a busy
    # machine is no failure.
    same = tier == "fast" or bool(os.environ.get("CI"))
    settings.register_profile("tier", max_examples=scaled(EXAMPLES), derandomize=same, deadline=None)
    settings.load_profile("tier")


def _prepare(config: pytest.Config, tier: str) -> None:
    if tier == "fast":
        os.environ[VARIABLE] = str(float(os.environ.get(VARIABLE, "1")) / SHARE)
    set_path(config, every_program=tier in ("", "programs"))
    if config.getoption("--record-durations"):
        config.pluginmanager.register(_Recorder(_kind_of_run(config)))


def pytest_xdist_auto_num_workers() -> int:
    """One and a half workers per processor, since many tests wait for others."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(3 * usable // 2, 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier:
        _mark_other_seeds(items)
        chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            chosen[_belongs(item, tier)].append(item)
        if tier == "fast":
            _check_words(config, chosen[False])
        config.hook.pytest_deselected(items=chosen[False])
        items[:] = chosen[True]
    if hasattr(config, "workerinput"):
        _order(items, tier, _kind_of_run(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that cannot have a test of the tier, since to import and rewrite all files takes a while."""
    tier = config.getoption("--tier")
    if tier not in WORDS or collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    return None if _has_word(collection_path, tier) else True


@functools.cache
def _has_word(file: Path, tier: str) -> bool:
    """Whether a test file has a word of the tier, or the conftest beside it, which may mark all its tests."""
    texts = [each.read_text() for each in (file, file.with_name("conftest.py")) if each.exists()]
    return any(word in text for word in WORDS[tier] for text in texts)


def _check_words(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Report an error for each file that a tier would leave alone though one of these tests there belongs to it.

    An exception would not do: pytest-xdist shows no message of one that ends a worker.
    """
    for tier, words in WORDS.items():
        unseen = {item.path for item in items if _belongs(item, tier) and not _has_word(item.path, tier)}
        for file in sorted(unseen):
            text = (
                f"{file}: tests of the tier {tier} need one of these words in their file: {', '.join(words)}"
            )
            report = pytest.CollectReport(str(file), "failed", text, [])
            config.hook.pytest_collectreport(report=report)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("programs"):
        for name in mark.args:
            if shutil.which(name) is None:
                pytest.skip(f"there is no {name} on PATH")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _allowed((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _allowed((yield), collector.config)


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _allowed(report: Report, config: pytest.Config) -> Report:
    """Let a test of a tier fail that is skipped for a reason that the tier does not allow."""
    tier = config.getoption("--tier")
    if not tier or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    allowed = SKIPS + (SKIPS_OF_PROGRAMS if tier == "programs" else ())
    if not any(re.search(pattern, reason) for pattern in allowed):
        report.outcome = "failed"
        report.longrepr = f"tests/tiers.py does not allow this reason in the tier {tier}: {reason}"
    return report


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
