"""Options of `stromboli run`: what they ask for, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.name_rules import dns_label_errors
from stromboli.submission.bad_request import BadRequest
from stromboli.submission.job_request import NAME_LENGTH, generated_name, name_like
from stromboli.submission.run_settings import (
    MAX_COMMAND_BYTES,
    RunSettings,
    Surroundings,
    request_of,
    time_limit,
)
from tests.submission.requests import request


def test_a_command_alone_is_one_pod_with_one_cpu() -> None:
    asked = request("python", "train.py")
    assert (asked.name, asked.replicas, asked.gang, asked.cpus, asked.workdir) == (
        "train-x2x4b",
        1,
        1,
        "1",
        "/home/me",
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"replicas": "0"}, "--replicas 0: must be a number from 1"),
        ({"replicas": "many"}, "--replicas many"),
        ({"replicas": "2", "gang": "3"}, "--gang 3: more than the 2 pods"),
        ({"replicas": "3", "gang": "2", "plugin": "pytorch"}, "--plugin pytorch needs all"),
        ({"gpus": "two"}, "--gpus two"),
        ({"gpus": "cpu=2"}, "no extended resource"),
        ({"cpus": "many"}, "--cpus many"),
        ({"cpus": "-1"}, "--cpus -1"),
        ({"memory": "4"}, "--memory 4: less than a MiB"),
        ({"memory": "lots"}, "--memory lots"),
        ({"queue": "My Queue"}, "--queue My Queue"),
        ({"priority": "High!"}, "--priority High!"),
        ({"time": "90"}, "90m are minutes, 90s are seconds"),
        ({"time": "soon"}, "--time soon: no time"),
        ({"time": "0s"}, "--time 0s"),
        ({"array": "x"}, "--array x"),
        ({"array": "0-3", "replicas": "2"}, "not with --replicas"),
        ({"array": "0-3", "plugin": "ssh"}, "not with --plugin"),
        ({"env": ("1A=2",)}, "--env 1A=2"),
        ({"env": ("NOBODY",)}, "you have no variable NOBODY"),
        ({"env": tuple(f"A{i}=1" for i in range(1001))}, "at most 1000"),
        ({"image": "my image"}, "--image my image: no image"),
        ({"after": ("a?b",)}, "--after a?b"),
        ({"plugin": "jax"}, "--plugin jax: no such plugin; use pytorch"),
        ({"workdir": "here"}, "--workdir here: must be an absolute path"),
        ({"workdir": "/a\udcff"}, r"--workdir /a\\udcff: is not text in UTF-8"),
        ({"env": ("A=\udcff",)}, "--env A: the value is not text in UTF-8; write A=VALUE"),
        ({"name": "Train"}, "--name Train"),
        ({"name": "t" * 41}, "longer than 40"),
        ({"name": "1st"}, "begin with a letter"),
        ({"name": "a\x1b[31m"}, r"--name a\\x1b\[31m"),
    ],
)
def test_what_cannot_be_is_refused_with_the_option_and_the_value(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(BadRequest) as refused:
        request("true", **settings)
    assert why.replace("\\\\", "\\").replace("\\[", "[") in str(refused.value)


def test_jobs_that_are_awaited_may_be_written_as_output_prints_their_names() -> None:
    asked = request("true", after=("job.batch.volcano.sh/a", "afterany:jobs/b:job/c", "jobs"))
    assert [str(each) for each in asked.after] == ["afterok:a", "afterany:b", "afterany:c", "afterok:jobs"]


def test_words_and_variables_of_this_machine_that_are_no_text_are_refused_by_name() -> None:
    with pytest.raises(BadRequest, match=r"command .*: is not text in UTF-8"):
        request("echo", "a\udcff")
    around = Surroundings(defaults={"PATH": "/a\udcff"}, image="none")
    with pytest.raises(BadRequest, match="--env PATH: the value is not text in UTF-8"):
        request_of(RunSettings(), ("true",), around)
    assert request_of(RunSettings(env=("PATH=/bin",)), ("true",), around).env == {"PATH": "/bin"}
    assert request("true", title="job\udcff").title == "job?"


def test_a_cluster_elsewhere_needs_an_image() -> None:
    with pytest.raises(BadRequest, match="STROMBOLI_IMAGE"):
        request_of(RunSettings(), ["true"], Surroundings())


def test_a_command_must_be_there_and_not_too_long() -> None:
    with pytest.raises(BadRequest, match="say what is to run"):
        request_of(RunSettings(), [], Surroundings(image="none"))
    with pytest.raises(BadRequest, match="put it into the image"):
        request("x" * (MAX_COMMAND_BYTES + 1))
    with pytest.raises(BadRequest, match="zero byte"):
        request("a\0b")


def test_variables_are_given_or_taken_along() -> None:
    asked = request("true", env=("A=1=2", "TOKEN", "B="))
    assert asked.env == {"A": "1=2", "TOKEN": "secret", "B": ""}


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("1:30:00", 5400), ("2-12", 216_000), ("1.5h", 5400)]
)
def test_time_limits_are_read_as_here_and_as_slurm_has_them(text: str, seconds: int) -> None:
    assert time_limit(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "unlimited", "INFINITE"])
def test_there_may_be_no_time_limit(text: str) -> None:
    assert time_limit(text) is None


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "train.py"), "train-x"),
        (("python3.11", "-u", "src/My_Train.py", "--lr", "3"), "my-train-x"),
        (("env", "A=1", "./run.sh"), "env-x"),
        (("sh", "-c", "sleep 5; echo hi"), "sleep-x"),
        (("/usr/bin/make",), "make-x"),
        (("sh",), "sh-x"),
        (("42.py",), "job-42-x"),
        (("日本語",), "job-x"),
        (("a" * 100,), "a" * 38 + "-x"),
    ],
)
def test_a_name_is_made_of_what_runs(command: tuple[str, ...], name: str) -> None:
    assert generated_name(command, "x") == name


@given(st.lists(st.text(max_size=50), max_size=4))
def test_a_generated_name_is_always_a_name(words: list[str]) -> None:
    name = generated_name(tuple(words), "x2x4b")
    assert not dns_label_errors(name)
    assert name[0].isalpha()
    assert len(name) <= NAME_LENGTH


@given(st.text(max_size=100))
def test_a_name_after_a_title_is_always_a_name(title: str) -> None:
    assert not dns_label_errors(name_like(title, "x2x4b"))
