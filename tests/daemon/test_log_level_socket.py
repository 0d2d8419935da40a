"""The socket on which the log is made more talkative for a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from stromboli.daemon.log_level_socket import NAME, VARIABLE, LogLevel


@pytest.fixture(autouse=True)
def level_as_before() -> Iterator[None]:
    ours = logging.getLogger("stromboli")
    before = ours.level
    yield
    ours.setLevel(before)


def asked(folder: Path, *questions: str, after: float = 0.0) -> list[tuple[int, str]]:
    """Answers to these questions, the last one asked a little later."""

    async def story() -> list[tuple[int, str]]:
        level = LogLevel({VARIABLE: str(folder)}, default=2)
        await level.start()
        answers = []
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(folder / NAME))) as session:
            for number, question in enumerate(questions):
                await asyncio.sleep(after if number == len(questions) - 1 else 0)
                async with session.get(f"http://log{question}") as answer:
                    answers.append((answer.status, (await answer.text()).strip()))
        await level.stop()
        return answers

    return asyncio.run(story())


def test_a_level_holds_for_a_while(tmp_path: Path) -> None:
    answers = asked(tmp_path, "/getlevel", "/setlevel?level=5&duration=60s", "/getlevel")
    assert answers == [(200, "2"), (200, "5 for 60 seconds"), (200, "5")]
    assert logging.getLogger("stromboli").level == logging.DEBUG


def test_afterwards_it_is_as_the_flag_says(tmp_path: Path) -> None:
    (*_, last) = asked(tmp_path, "/setlevel?level=5&duration=20ms", "/getlevel", after=0.1)
    assert last == (200, "2")
    assert logging.getLogger("stromboli").level == logging.INFO


def test_a_later_wish_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    wishes = ("/setlevel?level=5&duration=20ms", "/setlevel?level=6&duration=1h", "/getlevel")
    assert asked(tmp_path, *wishes, after=0.1)[-1] == (200, "6")


@pytest.mark.parametrize(
    "query", ["", "level=0&duration=1s", "level=5", "level=x&duration=1s", "level=5&duration=-1s"]
)
def test_nonsense_is_refused(tmp_path: Path, query: str) -> None:
    assert asked(tmp_path, f"/setlevel?{query}")[0][0] == 400


def test_the_socket_is_ours_alone_and_gone_afterwards(tmp_path: Path) -> None:
    asked(tmp_path / "deep" / "down", "/getlevel")
    assert (tmp_path / "deep" / "down").stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "deep" / "down").iterdir())


def test_where_it_cannot_be_served_we_run_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")

    async def story() -> None:
        level = LogLevel({VARIABLE: str(tmp_path / "file")}, default=0)
        await level.start()
        await level.stop()

    asyncio.run(story())
    assert "cannot be set there" in caplog.text
