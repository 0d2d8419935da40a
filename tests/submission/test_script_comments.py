"""Options in the comments of a script: which lines count, and how they are cut into words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.comment_options import settings_in
from stromboli.submission.run_settings import RunSettings
from stromboli.submission.script_comments import check_script, read_comments


def sbatch(*lines: str) -> list[str]:
    return read_comments("\n".join(("#!/bin/sh", *lines)), "job.sh").sbatch


def test_options_end_at_the_first_command() -> None:
    assert sbatch("#SBATCH -N 2", "", "# a comment", "  ", "#SBATCH -n4", "echo", "#SBATCH --bogus") == [
        "-N",
        "2",
        "-n4",
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('#SBATCH --job-name="my job"', ["--job-name=my job"]),
        ("#SBATCH -J 'it''s' --time=1:00", ["-J", "its", "--time=1:00"]),
        ("#SBATCH -N 2 # two nodes", ["-N", "2"]),
        ("#SBATCH --comment=a#b", ["--comment=a#b"]),
        ("#SBATCH\t-N\t2", ["-N", "2"]),
        ("##SBATCH -N 2", []),
        ("# SBATCH -N 2", []),
        (" #SBATCH -N 2", []),
        ("#SBATCHES -N 2", []),
        ("#SBATCH", []),
        ("#SBATCH $(rm -rf /) `x`", ["$(rm", "-rf", "/)", "`x`"]),
    ],
)
def test_a_line_is_cut_into_words_as_a_shell_would_without_running_anything(
    line: str, words: list[str]
) -> None:
    assert sbatch(line) == words


def test_quotes_that_do_not_match_are_told_with_the_line() -> None:
    with pytest.raises(BadRequest, match=r"job.sh line 2.*quotes"):
        sbatch("#SBATCH --job-name='x")


def test_options_are_not_without_bound() -> None:
    with pytest.raises(BadRequest, match="more than"):
        sbatch(*["#SBATCH -N 2"] * 1001)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo", "must begin with #!"),
        ("", "must begin"),
        ("#!/bin/sh\r\n", "Windows"),
        ("#!" + "x" * 300, "250"),
    ],
)
def test_a_script_says_what_runs_it(text: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        check_script(text, "job.sh")


def test_options_of_ours_are_those_of_run() -> None:
    text = "#!/bin/sh\n#STROMBOLI --gpus 2 --time=1h\n"
    text += "#STROMBOLI --env A=1 --env B=2 --no-requeue --tty --export=NONE\n#SBATCH -N 3\n"
    comments = read_comments(text, "job.sh")
    assert comments.sbatch == ["-N", "3"]
    expected = RunSettings(gpus="2", time="1h", env=("A=1", "B=2"), requeue=False, tty=True, export="NONE")
    assert settings_in(comments.stromboli) == expected


@pytest.mark.parametrize("words", [["--bogus"], ["word"], ["--gpus"], ["-g", "2"], ["--no-requeue=x"]])
def test_options_that_nobody_knows_are_refused(words: list[str]) -> None:
    with pytest.raises(BadRequest, match="#STROMBOLI"):
        settings_in(words)


def test_the_command_line_comes_before_the_script() -> None:
    line, script = (
        RunSettings(gpus="1", env=("A=2",)),
        RunSettings(gpus="4", cpus="2", env=("A=1",), title="t"),
    )
    assert line.over(script) == RunSettings(gpus="1", cpus="2", env=("A=1", "A=2"), title="t")


def test_other_replicas_bring_other_tasks() -> None:
    script = RunSettings(replicas="2", tasks="4", tasks_per_pod="2")
    merged = RunSettings(replicas="3").over(script)
    assert (merged.replicas, merged.tasks, merged.tasks_per_pod) == ("3", "", "2")


@given(st.text(max_size=300))
def test_no_script_does_harm(text: str) -> None:
    try:
        read_comments(text, "job.sh")
    except BadRequest as error:
        assert str(error).isprintable()


@given(st.text(max_size=80))
def test_no_line_of_options_does_harm(text: str) -> None:
    try:
        sbatch("#SBATCH " + text)
    except BadRequest as error:
        assert str(error).isprintable()
