"""`stromboli plan` reads a cluster from files and says what a cycle would decide."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests

Run = Callable[..., Result]
CASES = Path(__file__).parents[1] / "conformance" / "cases"
KEYS = {
    "schema",
    "binds",
    "bound_per_job",
    "evicted",
    "pipelined",
    "phases",
    "pending",
    "evictions",
    "timing",
}


def planned(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("plan", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def write_case(file: Path, objects: list[dict[str, Any]], config: str | None = None) -> Path:
    case: dict[str, Any] = {"name": f"made/{file.stem}", "objects": objects}
    file.write_text(json.dumps(case if config is None else {**case, "config": config}))
    return file


# -- what it says


def test_json_has_the_decisions_and_the_reasons(run: Run, cluster: Path, policy: Path) -> None:
    plan = planned(run, "-f", cluster, "--policy", policy)
    assert plan.keys() >= KEYS
    assert plan["schema"] == 1
    assert plan["bound_per_job"] == {"default/train": 3}
    assert plan["phases"] == {"default/train": "Inqueue", "default/huge": "Inqueue"}
    assert plan["evicted"] == plan["evictions"] == []
    waiting = plan["pending"]["default/huge"]
    assert waiting["reason"] == "Larger than the cluster"
    assert waiting["counts"] == {"Insufficient cpu": 2}
    assert waiting["message"] == "huge-1: 0/2 nodes are unavailable: 2 Insufficient cpu."
    assert plan["timing"].keys() == {"load_s", "cycle_s", "open_s", "actions", "close_s"}
    assert plan["timing"]["actions"].keys() == {"enqueue", "allocate", "backfill"}


def test_yaml_says_the_same(run: Run, cluster: Path, policy: Path) -> None:
    text = run("plan", "-f", cluster, "--policy", policy, "-o", "yaml").stdout
    as_yaml = yaml.safe_load(text)
    as_json = planned(run, "-f", cluster, "--policy", policy)
    del as_yaml["timing"], as_json["timing"]
    assert as_yaml == as_json
    assert "&id" not in text


def test_the_table_tells_people(run: Run, cluster: Path, policy: Path) -> None:
    text = run("plan", "-f", cluster, "--policy", policy).stdout
    assert "default/train-0  n" in text
    assert "default/huge  (2 pods, queue default)  Larger than the cluster" in text
    assert "-> even empty nodes fit fewer of its pods than the 2 that must start together: add nodes" in text
    assert "3 bound, 0 evicted, 1 job waiting; PodGroups: 2 Inqueue" in text


def test_between_cycles_decisions_come_true(run: Run, cluster: Path, policy: Path) -> None:
    plan = planned(run, "-f", cluster, "--policy", policy, "--cycles", 3)
    assert [len(cycle["binds"]) for cycle in plan["cycles"]] == [3, 0, 0]
    assert [cycle["phases"]["default/train"] for cycle in plan["cycles"]] == ["Inqueue", "Running", "Running"]
    assert len(plan["binds"]) == 3, "the whole is told together"
    assert plan["phases"]["default/train"] == "Running"
    assert "Binds of cycle 1" in run("plan", "-f", cluster, "--policy", policy, "--cycles", 2).stdout


@pytest.mark.parametrize(
    ("extra", "job", "reason", "hint"),
    [
        (job_manifests("lost", cpu=1)[1:], "default/lost", "PodGroup missing", "create it"),
        (
            job_manifests("lost", cpu=1, queue="nowhere"),
            "default/lost",
            "Queue missing",
            "one of: default, shut",
        ),
        (
            job_manifests("late", pods=1, minimum=3, cpu=1),
            "default/late",
            "Not enough valid tasks for gang-scheduling",
            "create 2 more pods",
        ),
        (
            job_manifests("gated", cpu=1, spec={"schedulingGates": [{"name": "a/b"}]}),
            "default/gated",
            "SchedulingGated",
            "removes them",
        ),
        (job_manifests("empty", pods=0, minimum=2), "default/empty", "Pods missing", "create 2 more"),
    ],
)
def test_what_a_cycle_cannot_see_is_told_with_the_next_step(
    run: Run, tmp_path: Path, policy: Path, extra: list[dict[str, Any]], job: str, reason: str, hint: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump_all([*nodes("n1 cpu=4"), *queues("shut state=Closed"), *extra]))
    waiting = planned(run, "-f", file, "--policy", policy)["pending"][job]
    assert waiting["reason"] == reason
    assert hint in waiting["hint"]


def test_pods_that_nobody_will_place_are_told(run: Run, tmp_path: Path) -> None:
    loner = job_manifests("loner", cpu=1)[1]
    del loner["metadata"]["annotations"]
    foreign = job_manifests("foreign", cpu=1)[1]
    foreign["spec"]["schedulerName"] = "default-scheduler"
    case = write_case(tmp_path / "case.json", [loner, foreign, {"kind": "Widget", "metadata": {"name": "d"}}])
    plan = planned(run, "-f", case)
    assert plan["ungrouped"] == ["default/loner-0"]  # no controller gives pods of a case a group
    assert plan["other_schedulers"] == {"default-scheduler": 1}
    assert plan["unread_kinds"] == {"Widget": 1}
    text = run("plan", "-f", case).stdout
    assert "Not scheduled (no PodGroup): default/loner-0" in text
    assert "set spec.schedulerName: volcano" in text


def test_lines_end_where_their_words_do_and_only_what_was_read_is_counted(
    run: Run, cluster: Path, policy: Path
) -> None:
    text = run("plan", "-f", cluster, "--policy", policy).stdout
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "10 objects in" in text
    assert planned(run, "-f", cluster, "--policy", policy)["objects"] == 10


def test_what_jobs_ask_for_without_effect_is_a_warning_and_what_cannot_be_had_a_reason(
    run: Run, tmp_path: Path
) -> None:
    wish, hard = {"networkTopology": {"mode": "soft"}}, {"networkTopology": {"highestTierAllowed": 1}}
    objects = [*nodes("n1 cpu=9")]
    objects += [made for name in "abcde" for made in job_manifests(name, cpu=1, group=wish)]
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump_all([*objects, *job_manifests("hard", cpu=1, group=hard)]))
    document = planned(run, "-f", file)
    (told,) = document["warnings"]
    assert told.startswith(
        "PodGroup default/a, default/b, default/c and 2 more: spec.networkTopology (soft): "
    )
    assert len(document["binds"]) == 5
    waits = document["pending"]["default/hard"]
    assert "the cluster has no HyperNodes" in waits["message"]
    assert waits["hint"].startswith("add network-topology-aware to the policy")


def test_a_priority_class_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    objects = [*nodes("n1 cpu=4"), *job_manifests("a", pods=5, cpu=1, group={"priorityClassName": "urgnt"})]
    for pod in objects[2:]:
        pod["spec"]["priorityClassName"] = "nope"
    objects[2]["spec"]["priority"] = 7  # as read from a cluster that knows the class
    objects[3]["spec"]["priorityClassName"] = "system-node-critical"
    objects.append({"kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9})
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    gone, misspelt = planned(run, "-f", file)["warnings"]
    pods = "Pod default/a-2, Pod default/a-3, Pod default/a-4"
    assert gone.startswith(f'PriorityClass "nope" of {pods} is not among the objects')
    assert gone.endswith("(it counts as 0)")
    assert misspelt.startswith(
        'PriorityClass "urgnt" of PodGroup default/a is not among the objects; did you mean "urgent"?'
    )
    assert f"warning: {misspelt}\n" in run("plan", "-f", file).stderr


def test_nodes_without_the_hostname_that_a_rule_goes_by_are_told(run: Run, tmp_path: Path) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec = {"affinity": {"podAntiAffinity": {required: [term]}}, "topologySpreadConstraints": [spread]}
    objects = [*nodes("n1 cpu=4; n2 cpu=4; n3 cpu=4"), *job_manifests("a", pods=2, cpu=1, spec=spec)]
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    assert "warnings" not in planned(run, "-f", file)
    del objects[0]["metadata"]["labels"], objects[2]["metadata"]["labels"]
    file.write_text(yaml.safe_dump_all(objects))
    warnings = planned(run, "-f", file)["warnings"]
    begin = "2 of 3 nodes (n1, n3) lack the label kubernetes.io/hostname, by which "
    assert [text.removeprefix(begin).partition(" of ")[0] for text in warnings] == [
        "podAntiAffinity",
        "topologySpreadConstraints",
    ]
    assert "of Pod default/a-0 goes" in warnings[0]
    case = write_case(tmp_path / "case.json", objects)
    assert "warnings" not in planned(run, "-f", case), "a case says what is meant"


# -- where it comes from


def test_what_is_defined_twice_is_told_with_both_places(run: Run, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(nodes(f"{name} cpu=1; n cpu=1")))
    result = run("plan", "-f", tmp_path)
    first, second = (f"{tmp_path / name}.yaml#1" for name in "ab")
    assert f"{second}: Node n: metadata.name: defined twice: {first} has it too" in result.stderr


def test_folders_several_paths_and_standard_input(
    run: Run, cluster: Path, tmp_path: Path, policy: Path
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "job.json").write_text(json.dumps({"kind": "List", "items": job_manifests("more", cpu=1)}))
    for arguments in (["-f", cluster, "-f", folder], ["-f", cluster, folder]):
        assert planned(run, *arguments, "--policy", policy)["bound_per_job"]["default/more"] == 1
    result = run("plan", "-f", "-", "--policy", policy, "-o", "json", input=cluster.read_text())
    assert json.loads(result.stdout)["bound_per_job"] == {"default/train": 3}
    assert run("plan", "-", input="kind: [").stderr.startswith("error: -: not YAML: ")


def test_a_pipe_is_read_once(run: Run, cluster: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(cluster.read_text()))
    writer.start()
    assert planned(run, "-f", pipe)["bound_per_job"]["default/train"] == 3
    writer.join()


def test_kinds_that_were_meant_to_be_read_are_told(run: Run) -> None:
    kinds = (
        "kind: Podgroup",
        "kind: Job",
        "{apiVersion: v1, kind: Queue}",
        "{apiVersion: v1, kind: StatefulSet}",
    )
    text = run("plan", "-", input="\n---\n".join((*kinds, "{apiVersion: apps/v1, kind: deployment}"))).stdout
    assert "1 Job, 1 Podgroup, 1 Queue, 1 StatefulSet, 1 deployment" in text
    assert "-> Podgroup is spelled PodGroup" in text
    assert "-> a Job is read if its apiVersion is batch.volcano.sh/... or batch/..." in text
    assert "-> a Queue is read if its apiVersion is scheduling.volcano.sh/..." in text
    assert "-> a StatefulSet is read if its apiVersion is apps/..." in text
    assert "-> deployment is spelled Deployment" in text


def test_a_case_brings_its_policy_its_defaults_and_its_clock(run: Run, tmp_path: Path) -> None:
    objects = [*nodes("n1 cpu=4"), *job_manifests("a", cpu=1)]
    del objects[-1]["spec"]["schedulerName"]
    case = write_case(tmp_path / "case.json", objects, 'actions: "enqueue"')
    plan = planned(run, "-f", case)
    assert (plan["name"], plan["binds"]) == ("made/case", {})
    assert list(plan["timing"]["actions"]) == ["enqueue"]
    assert planned(run, "-f", case, "--preset", "basic")["bound_per_job"] == {"default/a": 1}
    piped = run("plan", "-f", "-", "-o", "json", input=case.read_text())
    assert json.loads(piped.stdout)["timing"]["actions"].keys() == {"enqueue"}


def test_the_clock_can_be_set(run: Run, tmp_path: Path) -> None:
    clock = tmp_path / "plugins" / "clock.py"
    clock.parent.mkdir()
    clock.write_text(
        "from stromboli.engine.catalog import action\n"
        "@action('tell-time')\n"
        "def tell_time(session):\n"
        "    '''Print the time.'''\n"
        "    print(int(session.now))\n"
    )
    case = write_case(tmp_path / "case.json", nodes("n1 cpu=1"), 'actions: "tell-time"')
    arguments = ("plan", "-f", case, "--plugins-dir", clock.parent, "--cycles", 2, "--period", 60)
    assert run(*arguments).stdout.split()[:2] == ["1793534400", "1793534460"]
    assert run(*arguments, "--now", "2026-01-01T00:00:00Z").stdout.split()[0] == "1767225600"
    assert run(*arguments, "--now", "100").stdout.split()[0] == "100"
    for odd in ("noon", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+14:00"):
        assert f"--now {odd}: no time" in run(*arguments, "--now", odd).stderr
    assert "--period nan: no number of seconds" in run(*arguments, "--period", "nan").stderr


def test_a_plugin_that_forgets_to_return_is_named_and_the_plan_has_failed(run: Run, tmp_path: Path) -> None:
    plugin = tmp_path / "plugins" / "mute.py"
    plugin.parent.mkdir()
    plugin.write_text(
        "from stromboli.engine.plugin import Plugin\n\n\n"
        "class Mute(Plugin):\n"
        '    """Has a return missing."""\n\n'
        '    name = "mute"\n\n'
        "    def job_ready(self, job):\n"
        "        job.enough_ready\n"
    )
    case = write_case(
        tmp_path / "case.json",
        [*nodes("n1 cpu=4"), *job_manifests("a", cpu=1)],
        'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: mute}]}]',
    )
    result = run("plan", "-f", case, "--plugins-dir", plugin.parent)
    assert result.exit_code == 1
    assert "plugin 'mute' failed in job_ready: TypeError: it returned None" in " ".join(result.stdout.split())


# -- many cases


def test_every_case_of_a_folder_is_a_line(run: Run, tmp_path: Path) -> None:
    write_case(tmp_path / "b.json", [*nodes("n1 cpu=4"), *job_manifests("a", cpu=1)], 'actions: "allocate"')
    write_case(tmp_path / "c.json", [], 'actions: "alocate"')
    (tmp_path / "a.json").write_text("{")
    write_case(tmp_path / "d.json", [{"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": 3}}])
    result = run("plan", "-f", tmp_path, "-o", "jsonl")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [line["name"] for line in lines] == ["a", "made/b", "made/c", "made/d"]
    assert lines[1]["bound_per_job"] == {"default/a": 1}
    assert lines[0].keys() == lines[2].keys() == lines[3].keys() == {"name", "error"}
    assert 'did you mean "allocate"' in lines[2]["error"]
    assert "Node n: spec.taints: expected array" in lines[3]["error"]


@pytest.mark.slow
def test_all_cases_run_in_one_process(run: Run) -> None:
    result = run("plan", "-f", CASES, "-o", "jsonl")
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == len(list(CASES.rglob("*.json")))
    assert all(line.keys() >= KEYS | {"name"} for line in lines)


def test_json_holds_one_cluster(run: Run, tmp_path: Path) -> None:
    for name in "ab":
        write_case(tmp_path / f"{name}.json", nodes("n1 cpu=4"))
    result = run("plan", "-f", tmp_path, "-o", "json")
    assert result.exit_code == 2
    assert "take -o jsonl" in result.stderr
    assert "made/b" in run("plan", "-f", tmp_path).stdout
    assert len(list(yaml.safe_load_all(run("plan", "-f", tmp_path, "-o", "yaml").stdout))) == 2


# -- what may go wrong


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to plan"),
        (["-f", "/nowhere.yaml"], "/nowhere.yaml: cannot be read: No such file or directory"),
        (["-f", "{cluster}", "--preset", "basik"], 'no preset "basik"; did you mean "basic"?'),
        (["-f", "{cluster}", "--preset", "basic", "--policy", "x"], "exclude each other"),
        (["-f", "{cluster}", "--policy", "/nowhere.conf"], "/nowhere.conf: cannot be read"),
        (["-f", "{cluster}", "--plugins-dir", "/nowhere"], "/nowhere: is not a directory"),
        (["-f", "{cluster}", "--cycles", "0"], "--cycles"),
        (["-f", "{cluster}", "-o", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_explained(run: Run, cluster: Path, arguments: list[str], complaint: str) -> None:
    result = run("plan", *(argument.format(cluster=cluster) for argument in arguments))
    assert result.exit_code == 2
    assert complaint in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("switches", "accepted"),
    [
        ([], True),
        (["--lenient-policy"], True),
        (["--lenient-policy=true"], True),
        (["--lenient-policy=false"], False),
        (["--no-lenient-policy"], False),
    ],
)
def test_what_volcano_ignores_in_a_policy_is_a_warning_unless_we_are_strict(
    switches: list[str], accepted: bool, run: Run, cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "p.conf"
    file.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gnag\n')
    problem = f'{file}:4: unknown plugin "gnag"; did you mean "gang"?'
    result = run("plan", "-f", cluster, "--policy", file, *switches)
    assert result.exit_code == (0 if accepted else 2)
    assert f"{'warning' if accepted else 'error'}: {problem}" in result.stderr
    if accepted:
        assert problem in planned(run, "-f", cluster, "--policy", file, *switches)["warnings"]
    checked = run("policy", "check", file, *switches)
    assert checked.exit_code == (0 if accepted else 1), "policy check and the scheduler agree on errors"
    assert problem in checked.stderr


def test_a_plugin_that_breaks_the_cycle_is_named_without_a_traceback(
    cluster: Path, tmp_path: Path, policy: Path
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "bad.py").write_text(
        "from stromboli.engine.plugin import Plugin\n"
        "class Bad(Plugin):\n"
        "    '''Fails.'''\n"
        "    name = 'bad'\n"
        "    def opening(self, session, dirty): raise RuntimeError('no luck')\n"
    )
    policy.write_text(policy.read_text() + "  - name: bad\n")
    arguments = ["plan", "-f", cluster, "--policy", policy, "--plugins-dir", plugins]

    def command(*options: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "stromboli", *options, *map(str, arguments), "-o", "json"]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    done = command()
    assert done.returncode == 1
    assert "plugin 'bad' failed in opening: RuntimeError: no luck" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["lost"] == "plugin 'bad' failed in opening: RuntimeError: no luck"
    assert "Traceback" in command("--debug").stderr
