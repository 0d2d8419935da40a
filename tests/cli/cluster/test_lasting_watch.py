"""`-w` and `--wait` go on when a watch breaks or expires, or the server is away, and pause before they ask again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.cli.cluster import change_options, lasting_watch
from stromboli.cli.cluster.change_options import wait_until
from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.cluster.lasting_watch import lasting_changes
from stromboli.kube.request import ApiError, Backoff, NoResponse
from tests.cli.following.test_object_watch import Answer, Cluster

EXPIRED = ApiError(410, "Expired")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of failures before each pause; pauses are short."""
    counted: list[int] = []

    class Counted(Backoff):
        def pause(self, failures: int, retry_after: float | None = None) -> float:
            counted.append(failures)
            return 0.0

    monkeypatch.setattr(lasting_watch, "BACKOFF", Counted())
    return counted


def changes(lists: list[Answer], *watches: list[str | Exception]) -> tuple[list[str], list[str]]:
    """What came, and from which versions was watched."""
    heard: list[str] = []
    cluster: Any = Cluster(lists, list(watches))

    async def listen() -> None:
        async for change in lasting_changes(cluster, JOBS, "3", "default"):
            heard.append(f"{change.type} {change.object['metadata']['name']}")

    async def story() -> None:
        listening = asyncio.create_task(listen())
        silent = asyncio.create_task(cluster.silent.wait())
        await asyncio.wait({listening, silent}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        silent.cancel()
        listening.cancel()
        try:
            await listening
        except asyncio.CancelledError:
            return

    asyncio.run(story())
    return heard, cluster.watched_from


def test_a_watch_that_ends_is_resumed_from_the_last_version_that_it_told() -> None:
    heard, versions = changes([], ["ADDED a 4", "BOOKMARK - 9"], ["DELETED a 12"])
    assert heard == ["ADDED a", "DELETED a"]
    assert versions == ["3", "9", "12"]


def test_a_server_that_ends_every_watch_is_asked_more_and_more_rarely(pauses: list[int]) -> None:
    changes([], [], [NoResponse("away")], [ApiError(503)], ["ADDED a 4"], [])
    assert pauses == [1, 2, 3, 1, 2]


def test_after_a_version_is_forgotten_what_has_changed_since_is_shown() -> None:
    heard, versions = changes([NoResponse("away"), ["old", "new"]], [EXPIRED])
    assert heard == []  # both are of version 1, which was shown before
    assert versions == ["3", "10"]
    heard, _ = changes([["old", "new"]], ["BOOKMARK - 0", EXPIRED])
    assert heard == ["MODIFIED old", "MODIFIED new"]


def test_a_refusal_ends_it() -> None:
    with pytest.raises(ApiError, match="may not"):
        changes([], [ApiError(403, "Forbidden", "may not")])


def test_a_server_that_stays_away_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    away = [NoResponse("connection \x1b[2J refused")]
    changes([], *[list(away) for _ in range(5)])
    assert capsys.readouterr().err.count("trying again: connection \\x1b[2J refused") == 1


# -- waits


def awaited(lists: list[Answer], *watches: list[str | Exception]) -> str:
    """The version in which a job is at last, of a wait for one of 9 or later; `gone` if it is."""
    cluster: Any = Cluster(lists, list(watches))

    def reached(current: Any) -> bool:
        return current is None or int(current["metadata"]["resourceVersion"]) >= 9

    async def story() -> Any:
        return await wait_until(cluster, JOBS, "train", reached, 60.0, "default")

    last = asyncio.run(story())
    return "gone" if last is None else str(last["metadata"]["resourceVersion"])


def test_a_wait_outlives_a_server_that_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_options, "POLL", 0.0)
    away = NoResponse("away")
    assert awaited([["train"], away, ApiError(503), ["train"]], [away], ["MODIFIED train 9"]) == "9"
    assert awaited([["train"], []], [EXPIRED]) == "gone"
    assert awaited([["train"], ["train"], []], [ApiError(403)], [ApiError(403)]) == "gone"


def test_a_wait_ends_where_the_cluster_never_answered_or_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_options, "POLL", 0.0)
    with pytest.raises(NoResponse):
        awaited([NoResponse("away")])
    with pytest.raises(ApiError, match="may not list"):
        awaited([["train"], ApiError(403, "Forbidden", "may not list")], [EXPIRED])
