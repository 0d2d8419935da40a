"""Logs of many containers from an API server that breaks connections, refuses, and says hostile things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.following.log_streams import LogLine, LogQuery, LogStreams
from stromboli.cli.following.rank_prefix import PodRanks
from stromboli.kube.request import ApiError, NoResponse

Answer = list[bytes | float | Exception]
"""Pieces, seconds of silence, and how it breaks."""


class Logs:
    """An API server that has an answer for each request of a log."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append({key: values[0] for key, values in parse_qs(urlsplit(path).query).items()})
        pieces = self.answers.pop(0) if self.answers else []

        async def come() -> AsyncIterator[bytes]:
            for piece in pieces:
                if isinstance(piece, Exception):
                    raise piece
                if isinstance(piece, float):
                    await asyncio.sleep(piece)
                else:
                    yield piece

        yield come()


def pod(name: str = "j-worker-0", restarts: int = 0, **state: Any) -> dict[str, Any]:
    status = {"name": "main", "restartCount": restarts, "state": state or {"running": {}}}
    metadata = {"name": name, "uid": name, "annotations": {"volcano.sh/task-index": name[-1]}}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [status]},
    }


def followed(
    logs: Logs, *pods: dict[str, Any], replicas: int = 1, patience: float = 20.0, **query: Any
) -> tuple[list[str], list[str]]:
    """What is printed and what is told."""
    printed: list[LogLine] = []
    told: list[str] = []

    async def story() -> None:
        session = ClusterSession(logs, None, "team")  # type: ignore[arg-type]
        streams = LogStreams(session, "team", LogQuery(**query), printed.append, told.append)
        ranks = PodRanks({"spec": {"tasks": [{"name": "worker", "replicas": replicas}]}})
        for each in pods:
            streams.observe(each, ranks)
        await streams.finish(patience)
        await streams.close()

    asyncio.run(story())
    return [f"{line.prefix}{line.text}" for line in printed], told


def at(second: int, text: str) -> bytes:
    return f"2026-01-01T00:00:{second:02}.5Z {text}\n".encode()


def test_a_log_that_breaks_goes_on_after_the_last_line() -> None:
    logs = Logs([at(1, "one"), at(2, "two"), NoResponse("reset")], [at(2, "two"), at(3, "three")])
    assert followed(logs, pod()) == (["one", "two", "three"], [])
    assert logs.asked[1]["sinceTime"] == "2026-01-01T00:00:02.5Z"


def test_a_log_is_read_once_however_often_its_pod_changes_and_again_after_a_restart() -> None:
    logs = Logs([at(1, "first")], [at(2, "second")])
    shown, _ = followed(logs, pod(), pod(), pod(terminated={"exitCode": 1}), pod(restarts=1))
    assert (shown, len(logs.asked)) == (["first", "second"], 2)


def test_a_container_that_has_not_started_has_no_log() -> None:
    logs = Logs()
    assert followed(logs, pod(waiting={"reason": "ContainerCreating"})) == ([], [])
    assert logs.asked == []


def test_a_log_that_may_not_be_read_is_told() -> None:
    shown, told = followed(Logs([ApiError(403, "Forbidden", "may not")]), pod())
    assert (shown, told) == ([], ["the log of pod j-worker-0 cannot be read: may not"])


def test_a_pod_that_is_gone_takes_its_log_with_it() -> None:
    assert followed(Logs([at(1, "one"), ApiError(404, "NotFound", "gone")]), pod()) == (["one"], [])


def test_lines_of_several_pods_begin_with_the_rank() -> None:
    logs = Logs([at(1, "\x1b[2Jgone")], [at(1, "two")])
    shown, _ = followed(logs, pod("j-worker-0"), pod("j-worker-1"), replicas=2)
    assert sorted(shown) == ["[0] gone", "[1] two"]


def test_lines_may_show_their_time() -> None:
    assert followed(Logs([at(1, "one")]), pod(), timestamps=True)[0] == ["2026-01-01T00:00:01.5Z one"]


def test_what_is_asked_for_is_passed_on() -> None:
    logs = Logs([])
    followed(logs, pod(), follow=False, tail=5, since_seconds=60)
    assert logs.asked == [{"container": "main", "timestamps": "true", "tailLines": "5", "sinceSeconds": "60"}]


def test_the_last_line_comes_once_though_it_has_no_end() -> None:
    logs = Logs([at(1, "one"), NoResponse("reset")], [at(1, "one").rstrip()])
    assert followed(logs, pod()) == (["one"], [])


def test_logs_are_read_to_their_end_as_long_as_lines_come() -> None:
    lines: Answer = [piece for second in range(25) for piece in (0.1, at(second, str(second)))]
    assert followed(Logs(lines), pod(), patience=2.0) == ([str(second) for second in range(25)], [])


def test_a_log_that_stays_silent_is_given_up_and_told() -> None:
    shown, told = followed(Logs([at(1, "one"), 3600.0]), pod(), patience=0.2)
    assert (shown, told) == (["one"], ["nothing has come for 0.2 s of logs that have not ended: 1 of them"])
