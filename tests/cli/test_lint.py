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
from tests.manifests import hyper_node


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


NATIVE = "scheduling.k8s.io/v1alpha2"
CONSTRAINTS = "spec.schedulingConstraints.topology"


@pytest.mark.parametrize(
    ("version", "keys", "told"),
    [
        (NATIVE, ["rack"], "1 object checked, 0 problems"),
        (NATIVE, ["rack", "zone"], f"{CONSTRAINTS}: Too many: 2: must have at most 1 item"),
        (NATIVE, ["no key"], f'{CONSTRAINTS}[0].key: Invalid value: "no key"'),
        ("scheduling.k8s.io/v1beta1", ["rack"], "1 object checked, 0 problems"),
        ("scheduling.k8s.io/v1beta1", ["rack", "zone"], f"{CONSTRAINTS}: has 2 constraints"),
        ("scheduling.k8s.io/v1beta1", ["no key"], f"{CONSTRAINTS}[0].key: 'no key' is not a label key"),
    ],
)
def test_native_groups_are_checked_by_schema_or_else_as_the_scheduler_does(
    version: str, keys: list[str], told: str
) -> None:
    topology = {"topology": [{"key": key} for key in keys]}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": topology}
    content = manifest("PodGroup", {"metadata": {"name": "g"}, "spec": spec}, version)
    result = lint("-", stdin=content)
    assert (result.exit_code, told in result.stdout) == (int(len(keys) > 1 or " " in keys[0]), True)
    assert "1 object checked" in result.stdout


def test_a_name_that_an_api_server_would_generate_is_none_of_the_users_problems() -> None:
    content = job(task())
    content["metadata"] = {"generateName": "run-"}
    assert lint("-", stdin=manifest("Job", content)).stdout == "1 object checked, 0 problems\n"
    content["metadata"] = {"generateName": "run_"}
    assert 'metadata.generateName: Invalid value: "run_"' in lint("-", stdin=manifest("Job", content)).stdout


def test_what_a_server_sets_of_workloads_and_services_is_none_of_the_users_problems() -> None:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    run = {"template": {"spec": {**pod, "restartPolicy": "Never"}}}
    selecting = {"selector": {"matchLabels": labels}, "template": template}
    ports = {"selector": labels, "ports": [{"port": 80}]}
    objects = [
        ("v1", "Service", ports),
        ("v1", "Service", {**ports, "clusterIP": "None"}),
        ("v1", "Service", {**ports, "clusterIP": "10.0.0.7", "type": "NodePort"}),
        ("v1", "Service", {"type": "ExternalName", "externalName": "example.com"}),
        *(("apps/v1", kind, selecting) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
        ("batch/v1", "Job", run),
        ("batch/v1", "CronJob", {"schedule": "0 * * * *", "jobTemplate": {"spec": run}}),
    ]
    text = "---\n".join(
        manifest(kind, {"metadata": {"name": f"o{number}"}, "spec": spec}, version)
        for number, (version, kind, spec) in enumerate(objects)
    )
    result = lint("-", stdin=text)
    assert result.stdout == f"{len(objects)} objects checked, 0 problems\n"


def test_deep_nesting_is_a_problem_of_its_object(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    kind = '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": '
    file.write_text(kind + "[" * 900 + "]" * 900 + "}")
    assert lint(str(file)).stdout == f"{file}: Deployment a: nested too deeply\n1 object checked, 1 problem\n"


def test_control_characters_of_a_manifest_do_not_reach_the_terminal() -> None:
    content = job(task())
    content["metadata"] = {"name": "\x1b[31mred\n"}
    assert (
        "-: Job \\x1b[31mred\\n: metadata.name: Invalid" in lint("-", stdin=manifest("Job", content)).stdout
    )


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


@pytest.mark.parametrize("key", ["", ".", "[0]", "a.b[1]"])
def test_a_field_with_an_odd_name_is_told_like_any_other(key: str) -> None:
    result = lint("-", stdin=manifest("Job", {**job(task()), key: 1}))
    assert f'unknown field "{key}"' in result.stdout


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
    examples = (Path(__file__).parents[2] / "examples").iterdir()
    result = lint(*(str(path) for path in examples if path.name not in ("refused", "README.md")))
    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize("text", ["hello\n", "- 1\n", "foo: bar\n", "kind: Job\n"])
def test_a_file_without_an_object_is_no_success(text: str, tmp_path: Path) -> None:
    result = lint("-", stdin=text)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "0 objects checked, 1 problem")
    assert "apiVersion and kind are needed" in result.stdout
    (tmp_path / "values.yaml").write_text(text)
    passed_over = (
        "not known here, and passed over: 1 without a kind\n0 objects checked, 1 passed over, 0 problems\n"
    )
    assert lint(str(tmp_path)).stdout == passed_over, "a folder may hold others"


def test_a_misspelt_kind_of_volcano_is_told_and_one_of_others_named() -> None:
    result = lint("-", stdin=manifest("Jbo", job(task())))
    assert result.exit_code == 1
    assert (
        'Jbo train: there is no kind "Jbo" in version "batch.volcano.sh/v1alpha1" (known: ' in result.stdout
    )
    assert result.stdout.endswith("1 object checked, 1 problem\n")
    result = lint("-", stdin=manifest("Widget", {"metadata": {"name": "w"}}, "example.com/v1"))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "not known here, and passed over: 1 Widget of example.com/v1",
        "0 objects checked, 1 passed over, 0 problems",
    ]
    result = lint("-", "-o", "json", stdin=manifest("Widget", {}, "example.com/v1"))
    assert json.loads(result.stdout) == {"checked": 0, "passedOver": 1, "problems": []}
    many = "---\n".join(manifest("Widget", {}, f"example.com/v{number}") for number in range(20))
    named, _ = lint("-", stdin=many).stdout.splitlines()
    assert named.count("Widget") == 10
    assert named.endswith(", others")


# -- what no plugin of ours honours


def template(**spec: object) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "Never", **spec}}


WINDOWS = {"os": {"name": "windows"}}


def test_hyper_nodes_that_form_no_tree_are_told() -> None:
    hyper_nodes = [
        hyper_node("rack", 1, nodes=["n"], tier_name="rack"),
        hyper_node("left", 2, children=["rack"]),
        hyper_node("right", 2, children=["rack", "not-in-the-files"]),
        hyper_node("loop", 3, children=["loop"]),
        hyper_node("low", 2, children=["right"], tier_name="rack"),
        hyper_node("high", 4, nodes=["m"], tier_name="rack"),
    ]
    result = lint("-f", "-", "-o", "json", stdin=yaml.safe_dump_all(hyper_nodes))
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(each["object"], each["field"], each["problem"]) for each in document["problems"]] == [
        (
            "HyperNode rack",
            "spec.members",
            "schedulers would leave it out: more than one HyperNode has it as a member: left, right",
        ),
        (
            "HyperNode loop",
            "spec.members",
            "schedulers would leave it out: it is a member of itself: loop > loop",
        ),
    ]
    assert [(each["object"], each["field"]) for each in document["warnings"]] == [
        ("HyperNode low", "spec.tier"),
        ("HyperNode low", "spec.tierName"),
        ("HyperNode high", "spec.tierName"),
    ]


def test_a_malformed_hyper_node_is_told_as_what_it_is_and_takes_no_part_in_the_tree() -> None:
    odd = [{**hyper_node("x"), "metadata": metadata} for metadata in (None, [], {"name": 3}, {"name": "x"})]
    odd += [{**hyper_node("y"), "spec": spec} for spec in (None, {"tier": "high"}, {"members": [None]})]
    result = lint("-f", "-", stdin=yaml.safe_dump_all([*odd, hyper_node("loop", 3, children=["loop"])]))
    assert "HyperNode loop: schedulers would leave it out: it is a member of itself" in result.stdout


def test_what_will_keep_pods_waiting_and_what_has_no_effect_is_a_warning() -> None:
    whole = job(
        {"name": "w", "replicas": 1, "template": template(**WINDOWS)}, networkTopology={"mode": "hard"}
    )
    result = lint("-", stdin=manifest("Job", whole))
    assert result.exit_code == 0
    topology, system = (line for line in result.stdout.splitlines() if line.startswith("warning: "))
    assert "spec.tasks[0].template.spec.os (windows): " in system
    assert "spec.networkTopology (hard): no plugin" in topology
    assert "so it has no effect" in topology


def test_warnings_are_told_of_pods_that_our_scheduler_places_alone() -> None:
    def warnings(**spec: object) -> list[object]:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **template(**spec)}
        found: list[object] = json.loads(lint("-", "-o", "json", stdin=yaml.safe_dump(pod)).stdout).get(
            "warnings", []
        )
        return found

    assert warnings(**WINDOWS) == []
    assert len(warnings(schedulerName="volcano", **WINDOWS)) == 1
    assert warnings(schedulerName="volcano", nodeSelector={"a": "b"}, volumes=[]) == []


def test_queues_are_warned_of_too() -> None:
    queue = {"metadata": {"name": "q"}, "spec": {"weight": 1, "dequeueStrategy": "fifo"}}
    result = lint("-", "-o", "json", stdin=manifest("Queue", queue, "scheduling.volcano.sh/v1beta1"))
    assert [warning["field"] for warning in json.loads(result.stdout)["warnings"]] == [
        "spec.dequeueStrategy of its queue",
    ]


def test_unsound_fields_are_problems_and_no_warnings() -> None:
    broken = {
        "networkTopology": {"mode": "harsh"},
        "tasks": [{"topologyPolicy": 3, "template": {"spec": WINDOWS}}],
    }
    pod = {
        "containers": [{"resources": {"limits": {"volcano.sh/vgpu-number": "x"}}}],
        "schedulerName": "volcano",
    }
    text = manifest("Job", {"metadata": {"name": "j"}, "spec": broken})
    result = lint("-", "-o", "json", stdin=text + "---\n" + manifest("Pod", {"spec": pod}, "v1"))
    assert result.exit_code == 1
    assert "warnings" not in json.loads(result.stdout)


def test_devices_in_the_version_before_are_checked_as_the_current_one_and_it_is_told() -> None:
    spec = {"devices": {"requests": [{"name": "gpus", "deviceClassName": "gpu", "cuont": 2}]}}
    text = manifest("ResourceClaim", {"metadata": {"name": "c"}, "spec": spec}, "resource.k8s.io/v1beta1")
    result = lint("-", stdin=text)
    assert 'unknown field "spec.devices.requests[0].cuont"' in result.stdout
    assert "resource.k8s.io/v1beta1 is an older version, checked as resource.k8s.io/v1" in result.stdout
    assert lint("-", stdin=text.replace("cuont", "count")).exit_code == 0


def warnings_of(
    kind: str, content: dict[str, object], version: str = "batch.volcano.sh/v1alpha1"
) -> list[str]:
    result = lint("-", stdin=manifest(kind, content, version))
    assert result.exit_code == 0, result.stdout
    return [line for line in result.stdout.splitlines() if line.startswith("warning: ")]


def test_task_topology_that_names_a_task_which_the_job_lacks_is_a_warning() -> None:
    annotations = {"volcano.sh/task-topology-affinity": "ps,wroker"}
    content = job(task("ps"), task("worker"))
    content["metadata"]["annotations"] = annotations
    (warning,) = warnings_of("Job", content)
    assert 'the job has no task "wroker"' in warning
    assert "its tasks: ps, worker" in warning
    annotations["volcano.sh/task-topology-affinity"] = "ps,worker"
    assert warnings_of("Job", content) == []


def resources(**stated: dict[str, str]) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": stated}]}}


def test_more_cores_than_a_card_has_are_a_warning() -> None:
    def warnings(cores: str) -> list[str]:
        template = resources(limits={"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": cores})
        return warnings_of("Job", job({"name": "t", "replicas": 1, "template": template}))

    (warning,) = warnings("150")
    assert "150 is more than the 100 percent of a card" in warning
    assert warnings("100") == []


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("deviceclas/gpu", "deviceclass/gpu"),
        ("DeviceClass/gpu", "deviceclass/gpu"),
        ("memory.devicclass/gpu", "memory.deviceclass/gpu"),
        ("deviceclass.resource.kubernetes.io/gpu", "deviceclass/gpu"),
        ("deviceclass/gpu", ""),
        ("memory.deviceclass/gpu", ""),
        ("nvidia.com/gpu", ""),
        ("cpu", ""),
    ],
)
def test_keys_of_queues_that_look_like_limits_on_devices_are_met_with_what_was_meant(
    key: str, meant: str
) -> None:
    queue: dict[str, object] = {"metadata": {"name": "q"}, "spec": {"weight": 1, "capability": {key: "4"}}}
    warnings = warnings_of("Queue", queue, "scheduling.volcano.sh/v1beta1")
    assert [f'did you mean "{meant}"?' in warning for warning in warnings] == ([True] if meant else [])


def test_a_topology_policy_of_pods_that_are_not_guaranteed_is_a_warning() -> None:
    def warnings(**stated: dict[str, str]) -> list[str]:
        entry = {"name": "t", "replicas": 1, "topologyPolicy": "restricted", "template": resources(**stated)}
        return warnings_of("Job", job(entry))

    (warning,) = warnings(requests={"cpu": "2"})
    assert "spec.tasks[0].topologyPolicy" in warning
    assert "not of the class Guaranteed" in warning
    assert warnings(limits={"cpu": "2", "memory": "1Gi"}) == []
