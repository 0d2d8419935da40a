"""The feed: polls once per interval, never holds up the loop, and keeps the last good data."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from stromboli.model.cluster import Cluster
from stromboli.model.node_usage import NodeUsage
from stromboli.policy.policy import METRICS_TYPES
from stromboli.sources.usage_feed import UsageFeed
from stromboli.sources.usage_sources import ALL, LOCAL, TIMEOUT, BadMetrics
from stromboli.testing import World
from tests.serving import behaving, dead, serving, silent
from tests.sources.test_sources import NOW, prometheus

FILE = {"type": "file", "address": "unused"}


class Scripted:
    """A source that says what the test wants."""

    def __init__(self) -> None:
        self.says: dict[str, NodeUsage] | Exception = {}
        self.asked: list[float] = []

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        self.asked.append(now)
        if isinstance(self.says, Exception):
            raise self.says
        return {name: usage for name, usage in self.says.items() if name in nodes}


def cluster_of(*names: str) -> Cluster:
    return World(nodes="; ".join(f"{name} cpu=4" for name in names)).cluster


def scripted() -> tuple[UsageFeed, Scripted, list[str]]:
    source, warnings = Scripted(), list[str]()
    return UsageFeed({"file": lambda metrics: source}, warnings.append), source, warnings


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def test_it_asks_once_per_interval() -> None:
    feed, source, _ = scripted()
    cluster = cluster_of("n1")
    for second in range(61):
        feed.refresh(cluster, FILE, NOW + second)
    assert source.asked == [NOW, NOW + 30, NOW + 60]
    for second in range(61, 67):
        feed.refresh(cluster, {**FILE, "interval": "2s"}, NOW + second)
    assert source.asked[3:] == [NOW + 61, NOW + 63, NOW + 65]
    feed.refresh(cluster, {**FILE, "interval": "2s"}, NOW - 1000)
    assert source.asked[6:] == [NOW - 1000], "a clock that is set back stops nothing"


def test_the_last_good_data_stays_until_it_is_too_old() -> None:
    feed, source, warnings = scripted()
    cluster = cluster_of("n1", "n2")
    both = {"n1": NodeUsage(1, 1, NOW), "n2": NodeUsage(2, 2, NOW)}
    source.says = both
    feed.refresh(cluster, FILE, NOW)
    assert cluster.usage == both
    source.says = BadMetrics("down")
    feed.refresh(cluster, FILE, NOW + 30)
    feed.refresh(cluster, FILE, NOW + 60)
    assert cluster.usage == both
    assert warnings == ["node usage is not up to date: down"], "said once"
    source.says = {"n1": NodeUsage(3, 3, NOW + 90)}
    feed.refresh(cluster, FILE, NOW + 90)
    assert cluster.usage == {**both, **source.says}, "of n2 nothing new is known"
    source.says = {"n1": NodeUsage(4, 4, NOW + 330)}
    feed.refresh(cluster, FILE, NOW + 330)
    assert cluster.usage == source.says, "what was known of n2 is too old"


def test_usage_is_replaced_never_changed_in_place() -> None:
    feed, source, _ = scripted()
    cluster = cluster_of("n1")
    source.says = {"n1": NodeUsage(1, 1, NOW)}
    feed.refresh(cluster, FILE, NOW)
    before = cluster.usage
    source.says = {"n1": NodeUsage(2, 2, NOW)}
    feed.refresh(cluster, FILE, NOW + 30)
    assert before == {"n1": NodeUsage(1, 1, NOW)}
    assert cluster.usage["n1"].cpu == 2


def test_a_source_that_has_a_bug_costs_nothing_either() -> None:
    feed, source, warnings = scripted()
    source.says = ZeroDivisionError("oops")
    feed.refresh(cluster_of("n1"), FILE, NOW)
    assert warnings == ["node usage is not up to date: oops"]


def test_without_a_type_nothing_is_asked_and_an_unknown_one_is_named() -> None:
    warnings: list[str] = []
    feed, cluster = UsageFeed(warn=warnings.append), cluster_of("n1")
    feed.refresh(cluster, {}, NOW)
    feed.refresh(cluster, {"address": "x"}, NOW)
    assert warnings == []
    feed.refresh(cluster, {"type": "graphite"}, NOW)
    feed.refresh(cluster, {"type": "graphite"}, NOW + 60)
    feed.refresh(cluster, {"type": "prometheus"}, NOW)
    assert [text.partition(";")[0] for text in warnings] == [
        "metrics: unknown type 'graphite'",
        "metrics: type prometheus needs an address",
    ]
    assert set(METRICS_TYPES) == {"", *ALL}


def test_a_rehearsal_asks_no_network() -> None:
    warnings: list[str] = []
    feed = UsageFeed(LOCAL, warnings.append)
    with serving(prometheus({"n1": "1"}, {"n1": "1"})) as server:
        feed.refresh(cluster_of("n1"), {"type": "prometheus", "address": server.url}, NOW)
        assert server.asked == []
    assert warnings == ["metrics: prometheus is not asked in a rehearsal: nodes have no usage"]


def test_what_is_on_a_network_is_asked_behind_the_back_of_the_loop() -> None:
    feed, cluster = UsageFeed(), cluster_of("n1")
    with serving(prometheus({"n1": "7"}, {"n1": "8"})) as server:
        metrics = {"type": "prometheus", "address": server.url}

        def known() -> bool:
            feed.refresh(cluster, metrics, NOW)
            return bool(cluster.usage)

        until(known)
    assert cluster.usage == {"n1": NodeUsage(7, 8, NOW)}
    assert len(server.asked) == 2


def test_a_slow_source_holds_nothing_up_and_is_not_asked_twice_at_a_time() -> None:
    feed, cluster = UsageFeed(), cluster_of("n1")
    links: list[socket.socket] = []

    def noted(link: socket.socket, over: threading.Event) -> None:
        links.append(link)
        silent(link, over)

    with behaving(noted) as url:
        begin = time.monotonic()
        for cycle in range(100):
            feed.refresh(cluster, {"type": "prometheus", "address": url, "interval": "1s"}, NOW + cycle)
        assert time.monotonic() - begin < TIMEOUT / 2, "no answer was waited for"
        until(lambda: len(links) == 1)
        feed.refresh(cluster, {"type": "prometheus", "address": url, "interval": "1s"}, NOW + 100)
    assert len(links) == 1
    assert cluster.usage == {}


def test_a_dead_source_is_mentioned_and_asked_again() -> None:
    warnings: list[str] = []
    feed, cluster = UsageFeed(warn=warnings.append), cluster_of("n1")
    metrics = {"type": "elasticsearch", "address": dead()}

    def warned() -> bool:
        feed.refresh(cluster, metrics, NOW)
        return bool(warnings)

    until(warned)
    assert "Connection refused" in warnings[0]
    with serving(lambda asked: b'{"aggregations": {"hosts": {"buckets": []}}}') as server:
        feed.refresh(cluster, {**metrics, "address": server.url}, NOW + 1)
        until(lambda: server.asked)


def test_another_policy_does_not_wait_for_the_source_before(tmp_path: Path) -> None:
    feed, cluster = UsageFeed(), cluster_of("n1")
    file = tmp_path / "usage.json"
    file.write_text('{"nodes": {"n1": {"cpu": 1, "memory": 2}}}')
    with behaving(silent) as url:
        feed.refresh(cluster, {"type": "prometheus", "address": url}, NOW)
        feed.refresh(cluster, {"type": "file", "address": str(file)}, NOW + 1)
    assert cluster.usage == {"n1": NodeUsage(1, 2, NOW + 1)}


@pytest.mark.parametrize("interval", ["", "0s", "-5s", "soon"])
def test_an_interval_that_is_none_is_thirty_seconds(interval: str) -> None:
    feed, source, _ = scripted()
    cluster = cluster_of("n1")
    for second in (0, 29, 30):
        feed.refresh(cluster, {**FILE, "interval": interval}, NOW + second)
    assert source.asked == [NOW, NOW + 30]
