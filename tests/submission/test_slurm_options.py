"""Options of `sbatch`: how they are read, what they ask for here, and which cannot be honoured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.slurm_options import HONOURED, UNMET, read_options
from stromboli.submission.slurm_request import slurm_request
from tests.submission.requests import container, pod_spec, slurm, slurm_job, variables


def given_options(*words: str) -> dict[str, str]:
    return {option.name: option.value for option in read_options(words)}


@pytest.mark.parametrize(
    "words",
    [
        ["--nodes=2"],
        ["--nodes", "2"],
        ["-N", "2"],
        ["-N2"],
        ["-N=2"],
        ["--node=2", "--nodes=2"][1:],
        ["-HN2"],
    ],
)
def test_options_are_read_in_every_form(words: list[str]) -> None:
    assert given_options(*words)["nodes"] == "2"


def test_an_option_may_be_cut_short_as_long_as_it_is_clear() -> None:
    assert given_options("--part=gpu", "--cpus-per-t", "4") == {"partition": "gpu", "cpus-per-task": "4"}
    with pytest.raises(BadRequest, match="could be"):
        read_options(["--mem-p=3"])


def test_a_value_that_may_be_left_out_does_not_take_the_next_word() -> None:
    assert given_options("--exclusive", "-N", "2") == {"exclusive": "", "nodes": "2"}
    assert given_options("--exclusive=user", "-N", "2") == {"exclusive": "user", "nodes": "2"}


@pytest.mark.parametrize(
    "words", [["--bogus"], ["-9"], ["job"], ["--nodes"], ["-N"], ["-"], ["--"], ["--=x"]]
)
def test_what_sbatch_does_not_know_is_refused(words: list[str]) -> None:
    with pytest.raises(BadRequest, match="#SBATCH"):
        read_options(words)


# What is asked for; pods, tasks and tasks of each pod.
SHAPES = [
    ("", (1, 1, 1)),
    ("-N 3", (3, 3, 1)),
    ("-n 4", (4, 4, 1)),
    ("-N 2 -n 8", (2, 8, 4)),
    ("-N 2 -n 7", (2, 7, 4)),
    ("-N 2 --ntasks-per-node=4", (2, 8, 4)),
    ("-n 8 --ntasks-per-node=4", (2, 8, 4)),
    ("-N 2 --tasks-per-node=4", (2, 8, 4)),
    ("--ntasks-per-node=4", (1, 4, 4)),
    ("-N 2-4", (2, 2, 1)),
    ("--array=0-3 -n 2", (1, 2, 2)),
]


@pytest.mark.parametrize(("line", "shape"), SHAPES)
def test_a_pod_stands_for_a_node(line: str, shape: tuple[int, int, int]) -> None:
    settings = slurm(line).settings
    assert (int(settings.replicas), int(settings.tasks), int(settings.tasks_per_pod)) == shape


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("-n 1", "1"),
        ("-N 2 --ntasks-per-node=2", "2(x2)"),
        ("-N 2 -n 3", "2,1"),
        ("-N 4 -n 7", "2(x3),1"),
        ("-N 4 -n 5", "2,1(x3)"),
        ("-N 3 -n 2", "1(x2),0"),
        ("-N 1 -n 4 -a 0-2", "4"),
    ],
)
def test_scripts_are_told_how_many_tasks_each_pod_has(line: str, text: str) -> None:
    assert variables(slurm_job(line))["SLURM_TASKS_PER_NODE"] == text


@pytest.mark.parametrize(
    ("line", "resources"),
    [
        ("-c 4", {"cpu": "4"}),
        ("-N 1 -n 2 -c 4", {"cpu": "8"}),
        ("--mem=4G", {"cpu": "1", "memory": "4096Mi"}),
        ("--mem=500", {"cpu": "1", "memory": "500Mi"}),
        ("--mem=1500K", {"cpu": "1", "memory": "2Mi"}),
        ("-c 4 --mem-per-cpu=1G", {"cpu": "4", "memory": "4096Mi"}),
        ("--gres=gpu:2", {"cpu": "1", "nvidia.com/gpu": "2"}),
        ("--gres=gpu", {"cpu": "1", "nvidia.com/gpu": "1"}),
        ("--gres=gpu:a100:2", {"cpu": "1", "nvidia.com/gpu": "2"}),
        ("-N 2 --gpus=8", {"cpu": "1", "nvidia.com/gpu": "4"}),
        ("--gpus-per-node=h100:8", {"cpu": "1", "nvidia.com/gpu": "8"}),
        ("-N 1 -n 4 --gpus-per-task=1", {"cpu": "4", "nvidia.com/gpu": "4"}),
        ("--gpus-per-node=2 --cpus-per-gpu=6", {"cpu": "12", "nvidia.com/gpu": "2"}),
        ("--gpus-per-node=2 --mem-per-gpu=1G", {"cpu": "1", "memory": "2048Mi", "nvidia.com/gpu": "2"}),
    ],
)
def test_resources_are_those_of_a_pod(line: str, resources: dict[str, str]) -> None:
    assert container(slurm_job(line))["resources"]["requests"] == resources


def test_time_queue_name_order_and_folder_are_honoured() -> None:
    manifest = slurm_job("-t 1:30:00 -p gpu -J 'My Job!' -d afterok:a:b -D /data")
    assert manifest["metadata"]["annotations"] == {
        "stromboli.sh/time-limit": "1h30m",
        "stromboli.sh/after": "afterok:a,afterok:b",
    }
    assert (manifest["metadata"]["name"], manifest["spec"]["queue"]) == ("my-job-x2x4b", "gpu")
    assert pod_spec(manifest)["activeDeadlineSeconds"] == 5400
    assert container(manifest)["workingDir"] == "/data"
    known = variables(manifest)
    assert (known["SLURM_JOB_NAME"], known["SLURM_JOB_PARTITION"]) == ("My Job!", "gpu")


def test_what_cannot_be_honoured_is_told_by_name_with_the_reason() -> None:
    notes = slurm("-A physics --mail-type=END --mail-user=me@x --exclusive -w n1,n2 -q high").notes
    assert [note.split()[0] for note in notes] == [
        "--account",
        "--mail-type",
        "--mail-user",
        "--exclusive",
        "--nodelist",
        "--qos",
    ]
    assert all(" is not honoured: " in note for note in notes)


def test_the_variables_that_are_passed_are_chosen_where_the_script_is_submitted() -> None:
    assert slurm("--export=ALL,X=1").settings.export == "ALL,X=1"


def test_what_is_honoured_in_part_is_told() -> None:
    notes = " ".join(slurm("-N 2-4 -p a,b --gres=gpu:a100:1 --mem=0 -d singleton").notes)
    for text in (
        "least number counts, 2",
        "one queue: a",
        "a100",
        "all memory",
        "singleton",
    ):
        assert text in notes


@pytest.mark.parametrize(
    "line",
    [
        "-N 0",
        "-N x",
        "-n -1",
        "-N 2 -n 9 --ntasks-per-node=2",
        "-N 3 --gpus=4",
        "--gres=license:3",
        "--gpus=a:b:c",
        "--mem=lots",
        "-t never",
        "-d after:1+5",
        "-d aftercorr:1",
        "--array=0-3 -N 2",
        "-N 99999999",
    ],
)
def test_what_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(BadRequest, match="#SBATCH"):
        slurm(line)


def test_every_option_has_one_name_and_one_letter() -> None:
    options = [*HONOURED, *UNMET]
    names, letters = (
        [option.name for option in options],
        [option.letter for option in options if option.letter],
    )
    assert len(set(names)) == len(names)
    assert len(set(letters)) == len(letters)
    assert all(not option.unmet for option in HONOURED)
    assert all(option.unmet for option in UNMET)


@given(st.lists(st.text(max_size=20), max_size=8))
def test_no_words_do_harm(words: list[str]) -> None:
    try:
        slurm_request(words)
    except BadRequest as error:
        assert str(error).isprintable()
