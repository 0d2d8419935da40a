"""Variables that `stromboli submit` passes to a job: as `sbatch --export` does, with less on other machines."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.exported_environment import exported
from stromboli.submission.run_settings import MAX_ENV, MAX_ENV_BYTES

USER = {
    "SEED": "7",
    "EDITOR": "vi",
    "PATH": "/opt/bin",
    "HF_TOKEN": "hf_1",
    "PWD": "/home/me",
    "SLURM_JOB_ID": "1",
}


def passed(export: str, on_this_machine: bool = True, **more: str) -> dict[str, str]:
    return exported(export, USER | more, on_this_machine).variables


@pytest.mark.parametrize(
    ("export", "variables"),
    [
        ("NONE", {}),
        ("NIL", {}),
        ("", {}),
        ("SEED", {"SEED": "7"}),
        ("SEED,EDITOR=emacs", {"SEED": "7", "EDITOR": "emacs"}),
        ("A=1=2,B=", {"A": "1=2", "B": ""}),
        ("A=\"x,y\",B='1,2'", {"A": "x,y", "B": "1,2"}),
        ("ALL", {"SEED": "7", "EDITOR": "vi", "PATH": "/opt/bin", "HF_TOKEN": "hf_1"}),
        (
            "all,SEED=9,PWD",
            {"SEED": "9", "EDITOR": "vi", "PATH": "/opt/bin", "HF_TOKEN": "hf_1", "PWD": "/home/me"},
        ),
        ("PWD=/a,PWD=/b", {"PWD": "/b"}),
    ],
)
def test_variables_are_chosen_as_sbatch_chooses_them(export: str, variables: dict[str, str]) -> None:
    assert passed(export) == variables


@pytest.mark.parametrize(
    "name", ["RANK", "MASTER_ADDR", "STROMBOLI_ROOT", "CUDA_VISIBLE_DEVICES", "HOSTNAME", "_"]
)
def test_all_leaves_out_what_each_pod_has_of_its_own(name: str) -> None:
    assert name not in passed("ALL", **{name: "1"})
    assert passed(name, **{name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    ("name", "value"), [("BASH_FUNC_module%%", "() { :; }"), ("A.B", "1"), ("BYTES", "\udcff")]
)
def test_all_leaves_out_what_a_job_cannot_have(name: str, value: str) -> None:
    assert name not in passed("ALL", **{name: value})


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "CONDA_PREFIX", "VIRTUAL_ENV", "SSH_AUTH_SOCK"]
)
def test_on_another_cluster_all_leaves_out_what_belongs_to_this_machine(name: str) -> None:
    assert name not in passed("ALL", on_this_machine=False, **{name: "/x"})
    assert passed(f"ALL,{name}", on_this_machine=False, **{name: "/x"})[name] == "/x"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("WANDB_API_KEY", "x"),
        ("DB_PASSWORD", "x"),
        ("DATABASE_URL", "postgres://me:pw@db/x"),
    ],
)
def test_on_another_cluster_all_leaves_out_credentials_and_reports_their_names(name: str, value: str) -> None:
    environment = {"SEED": "7", name: value}
    variables, notes = exported("ALL", environment, on_this_machine=False)
    assert variables == {"SEED": "7"}
    assert name in notes[0]
    assert value not in notes[0] or value == "x"
    assert exported(f"ALL,{name}", environment, on_this_machine=False) == (environment, [])
    assert exported("ALL", environment, on_this_machine=True) == (environment, [])


def test_a_name_that_is_not_set_is_left_out_as_sbatch_does_with_a_note() -> None:
    variables, notes = exported("SEED,MISSING", USER, True)
    assert variables == {"SEED": "7"}
    assert notes == ["--export MISSING: the variable is not set; write MISSING=VALUE to set it"]


@pytest.mark.parametrize(
    ("export", "more", "why"),
    [
        ("1A=2", {}, "--export 1A=2: must be ALL, NONE, NAME"),
        ("A-B", {}, "--export A-B"),
        ("BYTES", {"BYTES": "\udcff"}, "--export BYTES: the value is not text in UTF-8; write BYTES=VALUE"),
        ("BYTES=\udcff", {}, "--export BYTES: the value is not text in UTF-8"),
        ("ALL", {f"A{index}": "1" for index in range(MAX_ENV)}, "name those that it needs"),
        ("ALL", {f"A{index}": "x" * (MAX_ENV_BYTES // 2) for index in range(2)}, "--export=NONE"),
    ],
)
def test_what_cannot_be_passed_is_refused_with_the_remedy(
    export: str, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        passed(export, **more)
    assert why in str(refused.value)
