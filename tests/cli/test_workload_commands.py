"""`stromboli workload`: workloads in numbers, and saved; and `simulate` with such files."""

import json
from pathlib import Path

import pytest
import yaml

EXAMPLES = Path(__file__).parents[2] / "examples" / "simulator"
SWF = """; MaxProcs: 4
; Queue: 1 fast
1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1
2 50 -1 300 4 -1 -1 4 200 -1 1 2 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "small.swf"
    file.write_text(SWF)
    return file


@pytest.fixture
def lists(tmp_path):
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,2,T4\n")
    pods.write_text(
        "name,cpu_milli,num_gpu,gpu_milli,creation_time,deletion_time\na,1000,1,500,5,9\nb,1000,1,1000,7,20\n"
    )
    return "--openb-nodes", nodes, "--openb-pods", pods


def test_a_workload_is_shown_in_numbers(run, trace):
    shown = run("workload", "show", trace).stdout
    assert ["Jobs", "2"] in [line.split() for line in shown.splitlines()]
    assert [line.split() for line in shown.splitlines() if line.startswith("cpu")] == [
        ["cpu", "6", "4", "500.0%"]
    ]
    wide = run("workload", "show", EXAMPLES / "lab.yaml", "-o", "wide").stdout
    narrow = run("workload", "show", EXAMPLES / "lab.yaml").stdout
    [memory] = [line.split() for line in narrow.splitlines() if line.startswith("memory")]
    assert all(amount[-2:] in ("Gi", "Ti") for amount in memory[1:3])
    assert "others" in narrow
    assert len(wide.splitlines()) > len(narrow.splitlines())


@pytest.mark.parametrize(("format", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_same_numbers_are_there_for_programs(run, trace, format, read):
    shown = read(run("workload", "show", trace, "-o", format).stdout)
    assert (shown["schema"], shown["jobs"], shown["pods"], shown["span_s"]) == (1, 2, 2, 50)
    assert shown["run_time_s"] == {"min": 100, "median": 150, "mean": 150, "max": 200}
    assert (shown["load"], shown["users"]) == ({"cpu": 5.0}, {"user-1": 1, "user-2": 1})


def test_options_of_traces_change_what_is_read(run, trace):
    options = ("--cpus-per-pod", 1, "--queues", "--overrun", "--jobs", 1)
    shown = json.loads(run("workload", "show", trace, *options, "-o", "json").stdout)
    assert (shown["jobs"], shown["pods"], shown["queues"]) == (1, 2, {"fast": 1})


def test_what_is_saved_is_simulated_as_what_it_was_made_of(run, trace, tmp_path):
    saved = tmp_path / "saved.yaml"
    result = run("workload", "save", trace, "--to", saved)
    assert (result.exit_code, result.stdout) == (0, f"{saved}: 2 jobs\n")
    options = ("-q", "-o", "json", "--backfill", "easy")
    measures = [
        json.loads(run("simulate", option, file, *options).stdout)
        for option, file in (("--swf", trace), ("--workload", saved), ("--workload", trace))
    ]
    keys = ("jobs", "mean_wait_s", "makespan_s", "utilisation")
    assert [[each[key] for key in keys] for each in measures] == [
        [2, 25.0, 300.0, pytest.approx(10 / 12)]
    ] * 3


def test_what_a_format_cannot_say_is_told(run, tmp_path):
    target = tmp_path / "lab.swf"
    result = run("workload", "save", EXAMPLES / "lab.yaml", "--to", target, "--seed", 3, "--jobs", 20)
    assert result.exit_code == 0
    assert "20 jobs request other resources than CPU and memory" in result.stderr
    assert "; Note: generated with seed 3" in target.read_text()


def test_lists_are_shuffled_by_seed_or_played_as_recorded(run, lists):
    def jobs(*options):
        shown = json.loads(run("workload", "show", *lists, *options, "-o", "json").stdout)
        return shown["jobs"], shown["without_end"], shown["span_s"]

    assert jobs("--load", 0) == (2, 2, 1)
    assert jobs("--load", 3, "--sequence", "go", "--seed", 42)[0] > 4
    assert jobs("--recorded-times") == (2, 0, 2)


def test_pods_run_on_the_models_that_they_name_and_the_rest_leaves(run, lists, tmp_path):
    lists[1].write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nt,64000,262144,1,T4\ng,64000,262144,2,G2\nc,64000,262144,0,\n"
    )
    lists[3].write_text(
        "name,cpu_milli,num_gpu,gpu_milli,gpu_spec\n"
        "on-t,1000,1,400,T4\non-g,1000,1,1000,G2|P100\nnowhere,1000,1,100,A10\nany,1000,0,0,T4\n"
        "too-much,1000,1,700,T4\n"
    )
    record = tmp_path / "record.json"
    options = ("--score", "bestfit", "--load", 0, "-q", "-o", "json", "--save", record)
    shown = json.loads(run("simulate", *lists, *options).stdout)
    kept = json.loads(record.read_text())
    placed = {kept["jobs"][pod["job"]]["name"]: pod["node"] for pod in kept["pods"]}
    one_of = {"on-t", "too-much"} & placed.keys()
    assert len(one_of) == 1, "both do not fit on the one card"
    assert placed == {"on-g": "g", "any": "c", one_of.pop(): "t"}, "without GPUs it goes where it fits best"
    assert (shown["jobs"], shown["dropped"]) == (5, 2)


def test_a_cluster_is_a_workload_as_well(run, cluster):
    shown = json.loads(run("workload", "show", "-f", cluster, "-o", "json").stdout)
    assert (shown["jobs"], shown["pods"], shown["nodes"], shown["requested"]) == (2, 5, 2, {"cpu": 9.0})
    record = json.loads(run("simulate", "-f", cluster, "--nodes", "2x4cpu", "-q", "-o", "json").stdout)
    assert record["jobs"] == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "which workload? Give one of FILE"),
        (("a.swf", "-f", "b.yaml"), "which workload?"),
        (("--openb-pods", "b.csv"), "--openb-nodes: a list of nodes and a list of pods go together"),
        (("nowhere.swf",), "nowhere.swf: cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_one_sentence(run, arguments, problem):
    result = run("workload", "show", *arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_workload_without_nodes_asks_for_some(run, tmp_path):
    file = tmp_path / "bare.yaml"
    file.write_text(
        "apiVersion: simulator.stromboli.sh/v1\nkind: Workload\nname: bare\n"
        "jobs: [{name: a, submitTime: 0, runTime: 5, requests: {cpu: 1}}]\n"
    )
    result = run("simulate", "--workload", file, "-q")
    assert (result.exit_code, "give some with --nodes" in result.stderr) == (2, True)
    shown = run("simulate", "--workload", file, "--nodes", "1x2cpu", "-q", "-o", "json").stdout
    assert json.loads(shown)["makespan_s"] == 5


@pytest.mark.parametrize(
    "status",
    ["hello", "{allocatable: 5}", "{allocatable: {cpu: [1]}}", f"{{allocatable: {{cpu: 1{400 * '0'}}}}}"],
)
def test_nodes_that_do_not_say_what_they_offer_are_shown_without_and_not_simulated(run, tmp_path, status):
    file = tmp_path / "odd.yaml"
    file.write_text(
        "apiVersion: simulator.stromboli.sh/v1\nkind: Workload\nname: odd\n"
        f"nodes: [{{apiVersion: v1, kind: Node, metadata: {{name: n}}, status: {status}}}]\n"
        "jobs: [{name: a, submitTime: 0, runTime: 5, requests: {cpu: 1}}]\n"
    )
    shown = json.loads(run("workload", "show", file, "-o", "json").stdout)
    assert not sum(shown["capacity"].values())
    refused = run("simulate", "--workload", file, "-q")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_every_seed_that_is_given_overrules_that_of_a_generator(run):
    def note(*seed):
        options = ("--jobs", 3, "-q", "-o", "json", *seed)
        return json.loads(run("simulate", "--workload", EXAMPLES / "lab.yaml", *options).stdout)["notes"][0]

    own, zero, two = note(), note("--seed", 0), note("--seed", 2)
    assert own == "generated with seed 1"
    assert (zero, two) == ("generated with seed 0", "generated with seed 2")
