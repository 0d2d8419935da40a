"""The shell around a script, run by a real shell: what the script finds, where its output goes, how it ends."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stromboli.submission import launch_command
from stromboli.submission.job_manifest import job_manifest
from stromboli.submission.launch_command import literal, output_path
from stromboli.submission.run_settings import Surroundings, request_of
from stromboli.submission.script_comments import read_comments
from stromboli.submission.slurm_options import SRUN_REFUSED, SRUN_TAKES_VALUE
from stromboli.submission.slurm_request import slurm_request
from tests.submission.requests import Manifest, container


def submitted(script: str, *arguments: str) -> Manifest:
    asked = slurm_request(read_comments(script, "job.sh").sbatch)
    around = Surroundings("x2x4b", 4711, image="none")
    return job_manifest(request_of(asked.settings, arguments, around, script), "team")


def run(manifest: Manifest, root: Path, pod_index: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """As a node runs the pod of an index, with Kubernetes' references resolved."""
    pod = container(manifest)
    known = {
        "PATH": os.environ["PATH"],
        "HOSTNAME": f"pod-{pod_index}",
        "STROMBOLI_ROOT": str(root / str(pod_index)),
    }
    for variable in pod["env"]:
        known[variable["name"]] = resolved(variable["value"]) if "value" in variable else str(pod_index)
    command = [resolved(word) for word in pod["command"]]
    return subprocess.run(
        command, cwd=root, env={**known, **env}, capture_output=True, text=True, timeout=60, check=False
    )


def resolved(text: str) -> str:
    """What a kubelet makes of a text: `$$` is `$`, and a name that nobody knows stays."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda match: "$" if match[0] == "$$" else match[0], text)


def test_a_script_runs_by_its_first_line_with_its_arguments(tmp_path: Path) -> None:
    manifest = submitted('#!/bin/sh\necho "$# $1" $(basename $0) $$\n', "a  b", "c")
    done = run(manifest, tmp_path)
    assert (done.returncode, re.sub(r"\d+$", "PID", done.stdout.strip())) == (0, "2 a  b script PID")


def test_a_script_in_another_language_runs_too(tmp_path: Path) -> None:
    manifest = submitted(
        "#!/usr/bin/env python3\n#SBATCH -n 1\nimport os\nprint(os.environ['SLURM_NTASKS'])\n"
    )
    assert run(manifest, tmp_path).stdout == "1\n"


def test_a_script_knows_its_place(tmp_path: Path) -> None:
    names = ("NODEID", "PROCID", "LOCALID", "NNODES", "NTASKS", "CPUS_PER_TASK", "JOB_ID")
    shown = " ".join(f"$SLURM_{name}" for name in names)
    script = f"#!/bin/sh\n#SBATCH -N 3 --ntasks-per-node=2 -c 4\necho {shown}\n"
    assert run(submitted(script), tmp_path, 2).stdout == "2 4 0 3 6 4 4711\n"


def test_srun_starts_the_tasks_of_the_pod(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -N 2 -n 7\nsrun --label -c 1 --mpi none sh -c 'echo $SLURM_PROCID/$SLURM_LOCALID'\n"
    manifest = submitted(script)
    assert sorted(run(manifest, tmp_path, 0).stdout.split()) == ["0/0", "1/1", "2/2", "3/3"]
    assert sorted(run(manifest, tmp_path, 1).stdout.split()) == ["4/0", "5/1", "6/2"]


def test_srun_has_the_options_of_slurm(tmp_path: Path) -> None:
    steps = (
        "srun -K -E -H ./none --version || echo none",
        "srun --version",
        "srun -K echo a",
        "srun -K0 echo -lw",
        "srun -lun1 echo c",
        "srun --treewidth=8 --treewidth 8 echo d",
        "srun --preserve-env -lu --mpi none --exclusive echo b",
        "srun -n",
    )
    done = run(submitted("\n".join(["#!/bin/sh", *steps, "true"])), tmp_path)
    shown = ["none", "slurm (stromboli submit)", "a", "-lw", "c", "d", "b", ""]
    assert done.stdout.split("\n") == shown, done.stderr


@pytest.mark.parametrize(
    ("options", "step", "tasks"),
    [
        ("-N 4 -n 5", "", ["0 1", "2", "3", "4"]),
        ("-N 3 -n 2", "", ["0", "1", ""]),
        ("-N 2 --ntasks-per-node=3", "-n 2", ["0", "1"]),
        ("-N 2 --ntasks-per-node=3", "--ntasks-per-node=1", ["0", "1"]),
        ("-N 2 --ntasks-per-node=3", "-n1 -N1 --exclusive", ["0", ""]),
        ("-N 3 --ntasks-per-node=3", "-N 2 -n 3", ["0 1", "2", ""]),
        ("-N 2 --ntasks-per-node=3", "--nodes=1", ["0 1 2", ""]),
        ("-N 2 --ntasks-per-node=1", "-N 1-2", ["0", "1"]),
    ],
)
def test_tasks_are_spread_evenly_over_the_pods(
    tmp_path: Path, options: str, step: str, tasks: list[str]
) -> None:
    manifest = submitted(f"#!/bin/sh\n#SBATCH {options}\nsrun {step} sh -c 'echo $SLURM_PROCID'\n")
    shown = [run(manifest, tmp_path, index).stdout.split() for index in range(len(tasks))]
    assert [" ".join(sorted(numbers)) for numbers in shown] == tasks


def test_the_first_task_of_a_pod_has_the_same_number_with_and_without_srun(tmp_path: Path) -> None:
    manifest = submitted(
        "#!/bin/sh\n#SBATCH -N 4 -n 6\necho $SLURM_PROCID\nsrun sh -c 'echo $SLURM_PROCID'\n"
    )
    for index in range(4):
        first, *started = run(manifest, tmp_path, index).stdout.split()
        assert int(first) == min(map(int, started))


def test_all_tasks_of_a_pod_get_the_input_of_srun(tmp_path: Path) -> None:
    """As in Slurm. The command that a shell starts in the background would otherwise have none."""
    for tasks in (1, 3):
        script = f"srun -n {tasks} sh <<'EOF'\necho $SLURM_PROCID a b\nEOF\necho code $?\n"
        done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 3\n{script}"), tmp_path)
        assert sorted(done.stdout.splitlines()) == [*(f"{rank} a b" for rank in range(tasks)), "code 0"]
        assert done.stderr == ""
    assert list(tmp_path.glob("**/input.*")) == []


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        ("echo text | srun --input=all cat", "text\ntext\n"),
        ("echo text | srun --input=none cat", ""),
        ("echo text | srun -i none cat; cat < /dev/null", ""),
        ("echo text > file; srun -ifile cat", "text\ntext\n"),
        ("echo text > file; mkdir -p sub; srun -D sub --input=file cat", "text\ntext\n"),
        ("echo text | srun true; echo $?", "0\n"),
        ("srun cat", ""),
    ],
)
def test_srun_reads_what_it_is_told(tmp_path: Path, step: str, shown: str) -> None:
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\n{step}\n"), tmp_path)
    assert (done.stdout, done.stderr) == (shown, "")


SHOW = "sh -c 'echo A=$A B=$B C=$C RANK=$RANK N=$SLURM_NTASKS'"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("", "A=1 B=2 C= RANK=0 N=2"),
        ("--export=ALL", "A=1 B=2 C= RANK=0 N=2"),
        ("--export=ALL,A=0.5", "A=0.5 B=2 C= RANK=0 N=2"),
        ("--export C=3,ALL", "A=1 B=2 C=3 RANK=0 N=2"),
        ("--export=A", "A=1 B= C= RANK=0 N=2"),
        ("--export=B,A=x=y,C", "A=x=y B=2 C= RANK=0 N=2"),
        ("--export='A=a  b',C='$(id)'", "A=a b B= C=$(id) RANK=0 N=2"),
        ("--export=NONE", "A= B= C= RANK=0 N=2"),
        ("--export=NIL", "A= B= C= RANK=0 N=2"),
        ("--export=NONE,A=4", "A=4 B= C= RANK=0 N=2"),
    ],
)
def test_srun_passes_the_variables_that_are_asked_for(tmp_path: Path, options: str, shown: str) -> None:
    several, one = (
        submitted(f"#!/bin/sh\n#SBATCH {pods}\nexport A=1 B=2\nsrun {options} {SHOW}\n")
        for pods in ("-N 2 --ntasks-per-node=1", "-N 1 -n 2")
    )
    done, both = run(several, tmp_path), run(one, tmp_path)
    assert (done.stdout, done.stderr) == (f"{shown}\n", "")
    assert sorted(both.stdout.splitlines()) == [shown, shown.replace("RANK=0", "RANK=1")]


def test_the_variables_of_a_pod_are_always_passed(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -N 2\nsrun --export=NONE env\n"
    done = run(submitted(script), tmp_path, CUDA_VISIBLE_DEVICES="3", A="1\nSLURM_X=2\nB=3")
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names >= {"RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID"}
    assert not names & {"A", "B", "PATH", "HOSTNAME"}


PLAIN_NAMES = re.findall(
    r"\w+",
    "at code copy directory each entry few first here input kept list more name nodes option others passed"
    " placed program task tasks total value word worst",
)
"""Names that a script may export, and that a shell program would likely use itself."""


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("passed", ["", "--export=ALL,SEED=3", f"--export=PATH,{','.join(PLAIN_NAMES)}"])
def test_srun_leaves_exported_variables_as_they_are(tmp_path: Path, passed: str, tasks: int) -> None:
    (tmp_path / "text").write_text("")
    exports = "\n".join(f"export {name}='{name} of the user'" for name in PLAIN_NAMES)
    shown = " ".join(f'"{name}=${name}"' for name in PLAIN_NAMES)
    options = f"-l -n{tasks} -N1 --ntasks-per-node=2 -c 1 -D . -i text {passed}"
    step = f"srun {options} sh -c 'printf \"%s\\n\" {shown}'"
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\n{exports}\n{step}\n"), tmp_path)
    expected = [f"{name}={name} of the user" for name in PLAIN_NAMES]
    assert (sorted(done.stdout.splitlines()), done.stderr) == (sorted(expected * tasks), "")


@pytest.mark.parametrize("passed", ["ALL,", "PATH,"])
@pytest.mark.parametrize(
    ("variable", "value"), [("total", "3"), ("list", "a"), ("nodes", "2"), ("name", "x"), ("IFS", "0")]
)
def test_the_values_of_export_reach_the_tasks_only(
    tmp_path: Path, passed: str, variable: str, value: str
) -> None:
    step = f"srun --export={passed}{variable}={value} printenv {variable} SLURM_PROCID WORLD_SIZE"
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\n{step}\n{step}\n"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split()) == sorted([value, "0", "2", value, "1", "2"] * 2)


@pytest.mark.parametrize("passed", ["ALL", "NONE"])
def test_the_path_of_export_is_that_of_the_tasks_only(tmp_path: Path, passed: str) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho $PATH\n")
    (tmp_path / "tool").chmod(0o755)
    script = f"#!/bin/sh\n#SBATCH -N 1 -n 2\nsrun --export={passed},PATH={tmp_path} tool\n"
    done = run(submitted(script), tmp_path)
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n" * 2, "")


def test_the_variables_of_a_task_are_those_of_srun_whatever_export_says(tmp_path: Path) -> None:
    step = f"srun --export=ALL,SLURM_PROCID=7,RANK=8,SLURM_NTASKS=9 {SHOW}"
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\n{step}\n"), tmp_path)
    assert sorted(done.stdout.splitlines()) == [f"A= B= C= RANK={rank} N=2" for rank in (0, 1)]


def test_a_line_of_a_value_is_not_taken_for_a_variable(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -N 1\nsrun --export=A,C env\n"
    shown = run(submitted(script), tmp_path, A="1\nC=2\nSLURM_X=3").stdout
    assert shown.count("C=") == shown.count("SLURM_X=") == 1


def test_srun_assigns_only_names_of_its_own_and_those_of_slurm() -> None:
    code = re.sub(r"(?m)^#.*$|NAME=VALUE", "", launch_command._SRUN)
    assigned = set(re.findall(r"(?<![\w-])([A-Za-z_]\w*)=", code)) | set(re.findall(r"for (\w+) in", code))
    functions = set(re.findall(r"(?m)^(\w+)\(\)", code))
    others = {name for name in assigned | functions if not name.startswith("_srun_")}
    slurm = {"CPUS_PER_TASK", "NTASKS", "NPROCS", "STEP_ID", "STEPID", "LOCALID", "PROCID"}
    ranks = {"RANK", "LOCAL_RANK", "WORLD_SIZE"}
    assert others == {f"SLURM_{name}" for name in slurm} | ranks | {"CDPATH"}
    assert {"_srun_total", "_srun_word", "_srun_fail"} <= assigned | functions


def test_srun_starts_tasks_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for options in ("--chdir=sub", "-D sub", f"-D{tmp_path}/sub"):
        done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1\nsrun {options} pwd; pwd\n"), tmp_path)
        assert done.stdout == f"{tmp_path}/sub\n{tmp_path}\n"


def test_tasks_know_their_cpus(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -N 1 -c 4\nsrun -c2 sh -c 'echo $SLURM_CPUS_PER_TASK'\n"
    assert run(submitted(script), tmp_path).stdout == "2\n"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("-n x", 'invalid value "x" for -n: must be a number of at least 1'),
        ("-n0", 'invalid value "0" for -n: must be a number of at least 1'),
        ("--ntasks=99999999999999999999", 'invalid value "99999999999999999999" for --ntasks: must be'),
        ("-N two", 'invalid value "two" for -N: must be'),
        ("--ntasks-per-node='1 = 1 -o 1'", 'invalid value "1 = 1 -o 1" for --ntasks-per-node: must be'),
        ("--export='A B=1'", 'invalid value "A B=1" for --export: must be ALL, NONE, NAME or NAME=VALUE'),
        ("--export=ALL,1A=2", 'invalid value "1A=2" for --export: must be'),
        ("--export=ALL,A=\"'a,b'\"", "--export: values in quotes are not supported; export A in the script"),
        (
            "--export=ALL,_srun_total=3",
            'invalid name "_srun_total" for --export: the prefix _srun_ is reserved',
        ),
        ("--export=_srun_at", 'invalid name "_srun_at" for --export: the prefix _srun_ is reserved'),
        ("--chdir=/none", "--chdir: cannot change to /none"),
        ("--input=none.txt", "--input: cannot read none.txt"),
        ("--input=0", "--input=0 gives one task the input"),
        ("--jobid=1", "--jobid 1 is not this job (4711)"),
        ("--nosuch", "unrecognized option '--nosuch'"),
        ("--array=1-3", "unrecognized option '--array'"),
        ("--mpi=pmix", "--mpi is not supported; --plugin mpi"),
        ("-o log.%t", "-o is not supported; redirect the output"),
        ("-lt 10", "-t is not supported; srun timeout"),
        ("--tree-width=2", "unrecognized option '--tree-width'"),
        ("--container-mount-home", "--container-mount-home is not supported; #SBATCH --container-image is"),
        ("--container-name a", "--container-name is not supported; #SBATCH --container-image is"),
        ("--container-writable", "--container-writable is not supported; #SBATCH --container-image is"),
        ("--multi-prog", "--multi-prog is not supported; choose the program by $SLURM_PROCID"),
    ],
)
def test_srun_says_what_it_cannot_do(tmp_path: Path, step: str, error: str) -> None:
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\nsrun {step} touch started\n"), tmp_path)
    assert (done.returncode, done.stdout, list(tmp_path.glob("started"))) == (1, "", [])
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"srun: {error}")


@pytest.mark.parametrize("option", SRUN_REFUSED)
def test_srun_refuses_each_option_that_is_listed(tmp_path: Path, option: str) -> None:
    value = " x" if SRUN_TAKES_VALUE[option] else ""
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1\nsrun {option}{value} echo a\n"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"srun: {option} is not supported; {SRUN_REFUSED[option]}\n"


def test_an_input_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    done = run(submitted("#!/bin/sh\n#SBATCH -N 1 -n 2\nsrun cat <&-\n"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "srun: cannot keep the input of 2 tasks; --input=none starts them without" in done.stderr


def test_srun_starts_as_many_as_it_is_told_and_ends_with_the_worst_code(tmp_path: Path) -> None:
    options = "#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=2\n"
    one, worst = (
        submitted(f"{options}srun -n1 echo one\n"),
        submitted(f"{options}srun sh -c 'exit $SLURM_PROCID'\n"),
    )
    assert [run(one, tmp_path, index).stdout for index in (0, 1)] == ["one\n", ""]
    assert [run(worst, tmp_path, index).returncode for index in (0, 1)] == [1, 3]


RANKS = "echo $RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT"


def test_tasks_of_a_gang_know_their_ranks_and_where_to_meet(tmp_path: Path) -> None:
    manifest = submitted(f"#!/bin/sh\n#SBATCH -J a -N 2 --ntasks-per-node=2\n{RANKS}\nsrun sh -c '{RANKS}'\n")
    meet = "a-x2x4b-worker-0.a-x2x4b:24711"
    first, *started = run(manifest, tmp_path, 1).stdout.splitlines()
    assert first == f"2/4 0 {meet}"
    assert sorted(started) == [f"2/4 0 {meet}", f"3/4 1 {meet}"]


def test_tasks_of_one_pod_meet_there(tmp_path: Path) -> None:
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N 1 -n 2\nsrun sh -c '{RANKS}'\n"), tmp_path)
    assert sorted(done.stdout.splitlines()) == ["0/2 0 localhost:24711", "1/2 1 localhost:24711"]


def test_a_single_task_has_no_rank(tmp_path: Path) -> None:
    script = f"#!/bin/sh\n#SBATCH -N 1\n{RANKS}\nsrun sh -c '{RANKS}'\n"
    assert run(submitted(script), tmp_path).stdout == "/ :\n/ :\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sh -c 'srun echo a; srun echo b'", "srun: a job of several pods has one step"),
        ("srun -w node1 echo a", "srun: -w chooses nodes"),
        ("srun -n1 --nodelist=node1 echo a", "srun: --nodelist chooses nodes"),
        ("srun -luw node1 echo a", "srun: -w chooses nodes"),
    ],
)
def test_srun_refuses_what_only_steps_of_slurm_can_do(tmp_path: Path, line: str, why: str) -> None:
    several, one = (submitted(f"#!/bin/sh\n#SBATCH -N {nodes}\n{line}\n") for nodes in (2, 1))
    refused = run(several, tmp_path)
    assert (refused.returncode, refused.stderr.startswith(why)) == (1, True), refused.stderr
    assert run(one, tmp_path).returncode == 0


@pytest.mark.parametrize("nodes", [1, 2])
def test_srun_refuses_several_programs_in_a_step(tmp_path: Path, nodes: int) -> None:
    done = run(submitted(f"#!/bin/sh\n#SBATCH -N {nodes}\nsrun -n1 echo a : -n1 echo b\n"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("srun: several programs in a step")


def test_scontrol_lists_the_hosts(tmp_path: Path) -> None:
    script = '#!/bin/sh\n#SBATCH -N 2 -J a\nscontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1\n'
    assert run(submitted(script), tmp_path).stdout == "a-x2x4b-worker-0.a-x2x4b\n"


@pytest.mark.parametrize(("array", "ids"), [("0-2", "0 1 2"), ("5-9:2", "5 7 9"), ("1,2,7", "1 2 7")])
def test_pods_of_an_array_have_its_indexes(tmp_path: Path, array: str, ids: str) -> None:
    manifest = submitted(f"#!/bin/sh\n#SBATCH -a {array}\necho $SLURM_ARRAY_TASK_ID $SLURM_JOB_ID\n")
    shown = [run(manifest, tmp_path, index).stdout.split() for index in range(3)]
    assert ([pair[0] for pair in shown], [pair[1] for pair in shown]) == (
        ids.split(),
        ["4711", "4712", "4713"],
    )


def test_a_script_finds_the_variables_of_its_pod_as_they_are(tmp_path: Path) -> None:
    names = ("at", "code", "copies", "file", "folder", "index", "script")
    shown = " ".join(f"${name}" for name in names)
    manifest = submitted(f"#!/bin/sh\n#SBATCH -a 1,2,7 -o out\necho {shown}\n")
    assert (
        run(manifest, tmp_path, 1, **dict.fromkeys(names, "user")).stdout == f"{'user ' * 7}".strip() + "\n"
    )


def test_output_goes_to_the_log_and_to_a_file(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -o logs/%x-%j_%4n.out -J job\necho out; echo err >&2; exit 3\n"
    done = run(submitted(script), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\nerr\n", "")
    assert (tmp_path / "logs" / "job-4711_0000.out").read_text() == "out\nerr\n"


def test_errors_may_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    script = "#!/bin/sh\n#SBATCH -o out -e err --open-mode=append\necho out; echo err >&2\n"
    for _ in range(2):
        done = run(submitted(script), tmp_path)
        assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("out\nout\n", "err\nerr\n")


@pytest.mark.parametrize("options", ["-N 2", "-a 0-1"])
def test_pods_that_write_into_one_file_do_not_overwrite_each_other(tmp_path: Path, options: str) -> None:
    manifest = submitted(f"#!/bin/sh\n#SBATCH {options} -o out\necho of $STROMBOLI_INDEX\n")
    for index in (0, 1):
        run(manifest, tmp_path, index)
    assert (tmp_path / "out").read_text() == "of 0\nof 1\n"


@pytest.mark.parametrize(
    ("options", "file"), [("-N 2", "%n"), ("-a 0-1", "%a"), ("-a 0-1", "%N"), ("-n 1", "0")]
)
def test_a_file_of_one_pod_begins_anew(tmp_path: Path, options: str, file: str) -> None:
    manifest = submitted(f"#!/bin/sh\n#SBATCH {options} -o out-{file}\necho text\n")
    for _ in range(2):
        run(manifest, tmp_path)
    assert [path.read_text() for path in tmp_path.glob("out-*0")] == ["text\n"]


@pytest.mark.parametrize(
    "pattern", ["a'b", "$(touch x)", "`touch x`", "a;touch x", 'a"b', "-rf", "a b", "%%j", "~", "*"]
)
def test_a_hostile_path_is_only_a_path(tmp_path: Path, pattern: str) -> None:
    shell = f"printf %s {output_path(pattern)}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == pattern.replace("%%", "%")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["$(HOME)", "$$", "$$(A)", "$", "a$b", "$$$", "$(", "$()", "no"])
def test_no_text_is_changed_on_its_way_through_kubernetes(text: str) -> None:
    assert resolved(literal(text)) == text


def test_a_hostile_script_is_only_text(tmp_path: Path) -> None:
    script: Any = "#!/bin/sh\ncat <<'EOF'\n'\"`$(id)` $$ \\n %s $1\nEOF\n"
    assert run(submitted(script), tmp_path).stdout == "'\"`$(id)` $$ \\n %s $1\n"
