"""`stromboli lint`: what admission would say, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from stromboli.cli.main import app
from tests.admission.reviewing import job, task
from tests.admission.test_small_kinds import cron


def lint(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["lint", *arguments], input=stdin, catch_exceptions=False)


def manifest(kind: str, content: dict[str, object], version: str = "batch.volcano.sh/v1alpha1") -> str:
    return yaml.safe_dump({"apiVersion": version, "kind": kind, **content})


def test_a_good_file_passes(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(manifest("Job", job(task())))
    result = lint(str(file))
    assert (result.exit_code, result.stdout) == (0, "1 object checked, 0 problems\n")


def test_every_problem_of_every_object_is_told(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text("---\n".join([manifest("Job", job(plugins={})), manifest("CronJob", cron("never"))]))
    result = lint(str(file), "-o", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["checked"] == 2
    assert [(problem["file"], problem["field"]) for problem in document["problems"]] == [
        (f"{file}#0", "spec.tasks"),
        (f"{file}#1", "spec.jobTemplate"),
        (f"{file}#1", "spec.schedule"),
        (f"{file}#1", "spec.jobTemplate.spec.tasks"),
    ]


def test_slips_of_the_pen_are_found(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, images: x}]}\n---\n"
    result = lint("-", stdin=pod + manifest("Job", job(task(), minAvailble=1, maxRetry="many")))
    assert 'unknown field "spec.containers[0].images"' in result.stdout
    assert "spec.containers[0].image: Required value" in result.stdout
    assert 'unknown field "spec.minAvailble", did you mean "minAvailable"?' in result.stdout
    assert "spec.maxRetry: Invalid value" in result.stdout
    assert result.stdout.endswith("2 objects checked, 4 problems\n")


POD = {
    "containers": [{"name": "main", "image": "i", "resource": {"limits": {"cpu": 1}}, "command": "sleep"}],
    "nodeSelecter": {"gpu": "yes"},
    "hostNetwork": "yes",
}
TASKS = {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": POD}}]}
IN_PODS = [
    ("batch.volcano.sh/v1alpha1", "Job", TASKS, "spec.tasks[0].template.spec"),
    ("flow.volcano.sh/v1alpha1", "JobTemplate", TASKS, "spec.tasks[0].template.spec"),
    (
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        {"flows": [{"name": "a", "patch": {"jobSpec": TASKS}}]},
        "spec.flows[0].patch.jobSpec.tasks[0].template.spec",
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "CronJob",
        {"schedule": "0 2 * * *", "jobTemplate": {"spec": TASKS}},
        "spec.jobTemplate.spec.tasks[0].template.spec",
    ),
    ("v1", "Pod", POD, "spec"),
    ("apps/v1", "Deployment", {"selector": {}, "template": {"spec": POD}}, "spec.template.spec"),
]


@pytest.mark.parametrize(("version", "kind", "spec", "pod"), IN_PODS, ids=[row[1] for row in IN_PODS])
def test_a_slip_of_the_pen_in_a_pod_is_met_with_what_was_meant(
    version: str, kind: str, spec: dict[str, object], pod: str
) -> None:
    text = manifest(kind, {"metadata": {"name": "x"}, "spec": spec}, version)
    result = lint("-f", "-", "-o", "json", stdin=text)
    problems = {problem["field"]: problem["problem"] for problem in json.loads(result.stdout)["problems"]}
    meant = f'unknown field "{pod}.nodeSelecter", did you mean "nodeSelector"?'
    assert problems[f"{pod}.nodeSelecter"] == meant
    assert problems[f"{pod}.containers[0].resource"].endswith(', did you mean "resources"?')
    assert "must be of type array" in problems[f"{pod}.containers[0].command"]
    assert "must be of type boolean" in problems[f"{pod}.hostNetwork"]
    assert result.exit_code == 1


def test_files_are_named_after_a_flag_or_without(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a.yaml", "b.yaml", "folder/c.yaml"):
        (tmp_path / name).write_text(manifest("Job", job(task())))
    files = ("-f", str(tmp_path / "a.yaml"), "--filename", str(tmp_path / "folder"), str(tmp_path / "b.yaml"))
    assert lint(*files, "-f", "-", stdin=manifest("Job", job(task()))).stdout.startswith("4 objects checked")


def test_naming_no_file_is_a_wrong_command_line() -> None:
    result = CliRunner().invoke(app, ["lint"])
    assert result.exit_code == 2
    assert "nothing to check" in result.output


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{")
    (tmp_path / "b.yaml").write_text(manifest("Job", job()))
    result = lint(str(tmp_path), str(tmp_path / "missing.yaml"))
    assert result.exit_code == 1
    assert "a.yaml: not YAML" in result.stdout
    assert "b.yaml: Job train: spec.tasks: " in result.stdout
    assert "missing.yaml: cannot be read: No such file or directory" in result.stdout


@pytest.mark.parametrize(("queue", "code"), [("default", 0), ("elsewhere", 0), ("root", 1), ("shut", 1)])
def test_queues_count_as_far_as_the_files_name_them(queue: str, code: int) -> None:
    closed = {"metadata": {"name": "shut"}, "spec": {}, "status": {"state": "Closed"}}
    text = manifest("Job", job(task(), queue=queue)) + "---\n"
    result = lint("-", stdin=text + manifest("Queue", closed, "scheduling.volcano.sh/v1beta1"))
    assert result.exit_code == code, result.stdout


def test_the_jobs_of_a_template_are_checked() -> None:
    result = lint("-", stdin=manifest("JobTemplate", job(task(), task()), "flow.volcano.sh/v1alpha1"))
    assert "duplicated task name worker" in result.stdout


def test_plugins_of_your_own_can_be_named() -> None:
    text = manifest("Job", job(task(), plugins={"mine": []}))
    assert lint("-", stdin=text).exit_code == 1
    assert lint("-", "--job-plugin", "mine", stdin=text).exit_code == 0


def test_our_own_examples_pass() -> None:
    result = lint(str(Path(__file__).parents[2] / "examples"))
    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize("text", ["hello\n", "- 1\n", "foo: bar\n", "kind: Job\n"])
def test_a_file_without_an_object_is_no_success(text: str, tmp_path: Path) -> None:
    result = lint("-", stdin=text)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "0 objects checked, 1 problem")
    assert "apiVersion and kind are needed" in result.stdout
    (tmp_path / "values.yaml").write_text(text)
    assert lint(str(tmp_path)).stdout == "0 objects checked, 1 passed over, 0 problems\n", (
        "a folder may hold others"
    )


def test_a_misspelt_kind_of_volcano_is_told_and_one_of_others_counted() -> None:
    result = lint("-", stdin=manifest("Jbo", job(task())))
    assert result.exit_code == 1
    assert (
        'Jbo train: there is no kind "Jbo" in version "batch.volcano.sh/v1alpha1" (known: ' in result.stdout
    )
    assert result.stdout.endswith("1 object checked, 1 problem\n")
    result = lint("-", stdin=manifest("Widget", {"metadata": {"name": "w"}}, "example.com/v1"))
    assert (result.exit_code, result.stdout) == (0, "0 objects checked, 1 passed over, 0 problems\n")
    result = lint("-", "-o", "json", stdin=manifest("Widget", {}, "example.com/v1"))
    assert json.loads(result.stdout) == {"checked": 0, "passedOver": 1, "problems": []}
