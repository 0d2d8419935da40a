"""Which objects a command means, and how it goes on when something fails."""

from __future__ import annotations

import asyncio

import pytest
import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.bus_commands import bus_command
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, plain_name
from stromboli.cli.cluster.cluster_errors import ClusterError, TimedOut
from stromboli.cli.cluster.cluster_kinds import JOBS, QUEUES
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.kube.request import ApiError


def test_names_may_be_written_as_they_are_printed() -> None:
    for text in ("train", "job/train", "jobs/train", "job.batch.volcano.sh/train"):
        assert plain_name(JOBS, text) == "train"
    for text in ("queue/train", "job/", "", "a/b/c"):
        with pytest.raises(Usage, match="names no Job"):
            plain_name(JOBS, text)
    assert plain_name(QUEUES, "queue/a") == "a"


def test_exactly_one_way_says_which() -> None:
    check_choice(["a"], "")
    check_choice([], "", every=True)
    for names, labels, every in (([], "", None), (["a"], "x=y", None), ([], "", False), (["a"], "", True)):
        with pytest.raises(Usage, match="names"):
            check_choice(names, labels, every)


async def failing(error: Exception) -> None:
    raise error


async def working() -> str:
    return "done"


def test_what_fails_is_told_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        failures = Failures()
        assert await failures.attempt(failing(TimedOut("too late"))) is None
        assert await failures.attempt(working()) == "done"
        with pytest.raises(typer.Exit) as late:
            failures.end()
        assert late.value.exit_code == 124
        await failures.attempt(failing(ClusterError("no \x1b[2J")))
        await failures.attempt(failing(ApiError(409, "Conflict", "changed")))
        with pytest.raises(typer.Exit) as refused:
            failures.end()
        assert refused.value.exit_code == 1

    asyncio.run(story())
    assert capsys.readouterr().err == "error: too late\nerror: no \\x1b[2J\nerror: changed\n"


def test_parts_that_may_not_be_read_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = (
        'events is forbidden: User "eve" cannot list resource "events" in API group "" in the namespace "x"'
    )

    async def story() -> None:
        parts = ReadableParts()
        for _ in range(2):
            assert await parts.read("no events", failing(ApiError(403, "Forbidden", refusal)), None) is None
        with pytest.raises(ApiError):
            await parts.read("no events", failing(ApiError(500, "", "broken")), None)
        assert not parts.is_complete
        parts.tell()

    asyncio.run(story())
    told = capsys.readouterr().err
    assert told.startswith('note: no events: user "eve" may not list events in namespace x')
    assert told.count("\n") == 1


def test_a_command_names_its_target_twice() -> None:
    made = bus_command("AbortJob", JOBS, {"metadata": {"name": "train", "uid": "u"}})
    assert made["metadata"]["generateName"] == "train-abortjob-"
    assert made["metadata"]["ownerReferences"] == [made["target"]]
    assert made["target"]["uid"] == "u"
    assert made["action"] == "AbortJob"
