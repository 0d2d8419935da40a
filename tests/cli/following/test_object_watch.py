"""A watch that breaks, expires, is refused, or meets a server that is away: what its owner hears of objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.cluster.cluster_session import ObjectChange, ObjectList
from stromboli.cli.following import object_watch
from stromboli.cli.following.object_watch import ObjectWatch
from stromboli.kube.request import ApiError, Backoff, NoResponse

Answer = list[str] | Exception


class Cluster:
    """Answers lists and watches in turn; in the end it goes silent."""

    def __init__(self, lists: list[Answer], watches: list[list[str | Exception]]) -> None:
        self.lists = lists
        self.watches = watches
        self.watched_from: list[str] = []
        self.silent = asyncio.Event()

    async def list(self, *_: Any) -> ObjectList:
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ObjectList([_object(name) for name in answer], "10")

    async def watch(self, resource: Any, version: str, *_: Any) -> AsyncIterator[ObjectChange]:
        self.watched_from.append(version)
        if not self.watches:
            self.silent.set()
            await asyncio.sleep(3600)
        for change in self.watches.pop(0):
            if isinstance(change, Exception):
                raise change
            type, name, at = change.split()
            yield ObjectChange(type, _object(name, at))


def _object(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}}


def heard(
    lists: list[Answer], *watches: list[str | Exception], known: tuple[str, ...] = ()
) -> tuple[list[str], list[str], list[str]]:
    """What is heard of objects, from which versions was watched, and what is told."""
    changes: list[str] = []
    told: list[str] = []

    async def story() -> list[str]:
        cluster = Cluster(lists, list(watches))

        def changed(name: str, manifest: Any) -> None:
            changes.append(f"{name}{'' if manifest else ' gone'}")

        watch = ObjectWatch(cluster, JOBS, "team", changed, tell=told.append, known=known)  # type: ignore[arg-type]
        running = asyncio.ensure_future(watch.run())
        silent = asyncio.ensure_future(cluster.silent.wait())
        await asyncio.wait({running, silent}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        silent.cancel()
        if running.done():
            running.result()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return cluster.watched_from

    return changes, asyncio.run(story()), told


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_watch, "BACKOFF", Backoff(first=0.001, longest=0.002))
    monkeypatch.setattr(object_watch, "LOOK_AGAIN", 0.001)


def test_a_watch_that_breaks_goes_on_after_the_last_change() -> None:
    changes, versions, told = heard([["a"]], ["ADDED b 11", NoResponse("reset")], ["DELETED a 12"])
    assert (changes, versions, told) == (["a", "b", "a gone"], ["10", "11", "12"], [])


def test_after_a_version_that_is_too_old_only_the_difference_is_news() -> None:
    changes, versions, _ = heard([["a", "b"], ["b"]], [ApiError(410, "Expired", "too old")])
    assert (changes, versions) == (["a", "b", "a gone", "b"], ["10", "10"])


def test_bookmarks_move_on_where_a_watch_resumes() -> None:
    assert heard([[]], ["BOOKMARK x 50"])[:2] == ([], ["10", "50"])


def test_a_server_that_is_away_is_tried_again_and_told_once() -> None:
    away: list[Answer] = [NoResponse("refused") for _ in range(6)]
    changes, _, told = heard([*away, ["a"]])
    assert (changes, told) == (["a"], ["the API server does not answer, trying again: refused"])


def test_a_refusal_for_good_ends_it() -> None:
    with pytest.raises(ApiError, match="may not"):
        heard([ApiError(403, "Forbidden", "may not")])


def test_who_may_list_and_not_watch_looks_again_and_again() -> None:
    refusal = ApiError(403, "Forbidden", 'User "ann" cannot watch resource "jobs"')
    changes, versions, told = heard([["a"], ["a", "b"], ["b"]], [refusal], [refusal])
    assert (changes, versions, told) == (["a", "a", "b", "a gone", "b"], ["10", "10", "10"], [])


def test_an_object_that_goes_before_it_is_listed_is_gone() -> None:
    assert heard([[]], known=("a",))[0] == ["a gone"]
