"""Scripts of several pods: which are refused because they would do something else than on Slurm, and which are not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.submission.script_steps import Findings, gang_findings


def findings(script: str) -> Findings:
    return gang_findings(f"#!/bin/bash\n#SBATCH -N 2\n{script}\n")


PLACED, STEPS, RANDOM = "chooses nodes", "more than one srun step", "differs between pods"
MPI = "starts the processes of all pods"
NO_OPTION, UNSUPPORTED = "is no option of srun", "is not supported"
REFUSED = {
    "a node by its name": ("srun -w node1 ./a", PLACED),
    "a node by a variable": ('ip=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)', PLACED),
    "a list of nodes": ("srun -l --nodelist=$nodes ./a", PLACED),
    "nodes that are left out": ("srun -n 4 -x node1 ./a", PLACED),
    "a node by its number": ("srun --jobid $SLURM_JOBID --wait 60 -r1 ./a", PLACED),
    "two steps": ("srun ./prepare\nsrun ./train", STEPS),
    "two steps on a line": ("srun ./prepare && srun ./train", STEPS),
    "steps side by side": ("srun -n1 ./a &\nsrun -n1 ./b &\nwait", STEPS),
    "a step in a loop": ("for seed in 1 2 3; do\n  srun ./train --seed $seed\ndone", STEPS),
    "a step in a loop of C": ("for ((i = 0; i < 3; i++)); do srun ./train $i; done", STEPS),
    "a step until it succeeds": ("until srun ./train; do sleep 5; done", STEPS),
    "a step whose output is used": ("first=`srun -n1 hostname`\nsrun ./train $first", STEPS),
    "a function that is called twice": ("step() {\n  srun ./train $1\n}\nstep a\nstep b", STEPS),
    "a step in a branch and one after it": (
        'if [ -n "$A" ]; then srun ./a; else srun ./b; fi\nsrun ./c',
        STEPS,
    ),
    "steps behind other commands": ("timeout 1h srun ./a\nexec srun ./b", STEPS),
    "steps by a path": ("/usr/bin/srun ./a; env A=1 /usr/bin/srun ./b", STEPS),
    "a step for each line of a file": ("while read -r line; do srun ./a $line; done < lines.txt", STEPS),
    "a step in a subshell and one outside": ("(cd x && srun ./a)\n{ srun ./b; } > log", STEPS),
    "a random port": ("export MASTER_PORT=$((10000 + RANDOM % 50000))\nsrun ./train", RANDOM),
    "a random port without export": ("MASTER_PORT=$((RANDOM + 1))\nsrun ./train", RANDOM),
    "a random argument": ("srun torchrun --rdzv_id $RANDOM train.py", RANDOM),
    "a random value by way of a variable": ('PORT=$RANDOM\nsrun ./train --port "$PORT"', RANDOM),
    "a random value that is exported later": ("SEED=${RANDOM}0\nexport SEED\nsrun ./train", RANDOM),
    "a shuffled port": ("PORT=$(shuf -i 10000-20000 -n 1)\nsrun ./train $PORT", RANDOM),
    "an identifier": ('RUN="run-$(uuidgen)"\nsrun ./train "$RUN"', RANDOM),
    "a free port of one host": (
        "export PORT=$(python -c 'import socket; s = socket.socket(); s.bind((\"\", 0)); print(s.getsockname()[1])')",
        RANDOM,
    ),
    "bytes at random": ("export KEY=$(head -c 8 /dev/urandom | xxd -p)\nsrun ./train", RANDOM),
    "arithmetic of its own": ("((port = 1000 + RANDOM % 9))\nsrun ./train $port", RANDOM),
    "a random value for one command": ("SEED=$RANDOM srun ./train", RANDOM),
    "a random value without srun": ("export SEED=$RANDOM\npython train.py", RANDOM),
    "a random element of an array": ("args=(--seed $RANDOM)\nsrun ./train ${args[@]}", RANDOM),
    "the host of the first pod": ("export MASTER_ADDR=$(hostname -s)\nsrun ./train", RANDOM),
    "a port by the process": ("export MASTER_PORT=$((20000 + $$ % 1000))\nsrun ./train", RANDOM),
    "a port by the process of a subshell": ("srun ./train --port $BASHPID", RANDOM),
    "a port by the time": ("export MASTER_PORT=$((20000 + $(date +%s) % 1000))\nsrun ./train", RANDOM),
    "a seed of awk": ("export SEED=$(awk 'BEGIN { srand(); print rand() }')\nsrun ./train", RANDOM),
    "a random value by let": ("let PORT=RANDOM%10+20000\nsrun ./train $PORT", RANDOM),
    "a random value by printf": ("printf -v PORT '2%04d' $((RANDOM % 9999))\nsrun ./train $PORT", RANDOM),
    "a random port of torch's module": ("python -m torch.distributed.run --rdzv-id=$RANDOM train.py", RANDOM),
    "a random seed of a process of the gang": ("python3.11 train.py --seed $RANDOM", RANDOM),
    "a node behind other letters": ("srun -lvw node1 ./a", PLACED),
    "several programs in a step": ("srun -n1 ./a : -n3 ./b", STEPS),
    "Horovod": ("horovodrun -np 4 python train.py", MPI),
    "MPI": ("module load openmpi\nmpirun -np $SLURM_NTASKS ./a", MPI),
    "MPI by a path behind a command": ("time timeout 1h /opt/bin/mpiexec ./a", MPI),
    "a default that is assigned": (": ${SEED:=$RANDOM}; export SEED\nsrun ./train", RANDOM),
    "a default that is assigned if unset": ('echo "${SEED=$(shuf -n1 -e 1 2)}"\nsrun ./train $SEED', RANDOM),
    "a value that set exports": ("set -a; SEED=$RANDOM\nsrun ./train", RANDOM),
    "a value that set exports by name": ("set -euo allexport\nSEED=$RANDOM\nsrun ./train", RANDOM),
    "the output of a function": (
        "port() { echo $((20000 + RANDOM % 100)); }\nexport P=$(port)\nsrun ./train",
        "the output of port differs between pods",
    ),
    "a value that is read": ("read -r SEED < <(shuf -n1 -i 1-9)\nsrun ./train $SEED", RANDOM),
    "a value that is read from a text": ("read A B <<< $RANDOM\nexport B\nsrun ./train", RANDOM),
    "values that are read": ("mapfile -t SEEDS < <(shuf -i 1-9)\nsrun ./train ${SEEDS[@]}", RANDOM),
    "an identifier of Python": ("srun ./a $(python -c 'import uuid; print(uuid.uuid4())')", RANDOM),
    "a secret of Python": (
        "export A=$(python3 -c 'import secrets; print(secrets.token_hex())')\nsrun ./a",
        RANDOM,
    ),
    "a temporary folder that pods share": ("D=$(mktemp -d /shared/run.XXXX)\nsrun ./train $D", RANDOM),
    "a temporary folder in the folder": ("srun ./train $(mktemp -d ./run.XXXX)", RANDOM),
    "a temporary file by an option": ('export F=$(mktemp -p "$SCRATCH/x" run.XXXX)\nsrun ./train', RANDOM),
    "random text of a here-document": ("export X=$(cat <<EOF\n$RANDOM\nEOF\n)\nsrun ./a", "$RANDOM differs"),
    "nodes of a function that is called": ("f() { srun -w x ./a; }\nf", PLACED),
    "a step of a function and another": ("f() { srun ./a; }\nf\nsrun ./b", STEPS),
    "MPI of a function of a function": ("f() { mpirun ./a; }\ng() { f; }\nsrun ./b\ng", MPI),
    "MPI by srun": ("srun --mpi=pmix ./a", UNSUPPORTED),
    "MPI by srun, by a word": ("srun -l --mpi pmix ./a", UNSUPPORTED),
    "a file for the output": ("srun -ologs/%t.out ./a", "srun -o is not supported; redirect the output"),
    "the time of a step": ("srun -lt 10 ./a", UNSUPPORTED),
    "a container by its name": (
        "srun --container-name=a ./a",
        "--container-name is not supported; #SBATCH --container-image is the image",
    ),
    "the home in a container": ("srun --no-container-mount-home ./a", UNSUPPORTED),
    "an unknown option": ("srun -n 4 --nosuch=x ./a", NO_OPTION),
    "an option of sbatch": ("srun --array=1-3 ./a", NO_OPTION),
    "an expansion of braces": ("srun --{nodelist,x}=y ./a", NO_OPTION),
    "a copy on all nodes": ("sbcast data /tmp/data\nsrun ./a", "so use cp"),
    "the host by its variable": ("MASTER_ADDR=$HOSTNAME\nsrun ./train", RANDOM),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_script_that_would_do_something_else_than_on_slurm_is_refused(name: str) -> None:
    script, why = REFUSED[name]
    problems, _ = findings(script)
    assert any(why in problem for problem in problems), problems


ACCEPTED = {
    "one step": "srun ./train",
    "nothing but the script": "./train",
    "comments": "# srun ./a\nsrun ./b # then srun ./c\n: # $RANDOM",
    "text in quotes": "echo 'srun a; srun b' \"srun c\" srun\\ d\nsrun ./e",
    "a here-document": "cat > run.sh <<EOF\nsrun ./a\nsrun -w x ./b\nexport A=$RANDOM\nEOF\nsrun ./c",
    "a quoted here-document with tabs": "cat <<-'END OF'\n\tsrun ./a\n\tEND OF\nsrun ./c",
    "two here-documents": "cat <<A <<B\nsrun\nA\nsrun\nB\nsrun ./c",
    "a here-string": "srun ./a <<< 'srun b'",
    "a function that is called once": "train() { srun ./train; }\ntrain",
    "a function that is not called": "function twice { srun ./a; srun ./b; }\nsrun ./c",
    "a function that is not called and would be refused": (
        "f() { srun -w x --mpi=pmix ./a; export A=$RANDOM; mpirun b; ssh c; }\ng() { f; }\nsrun ./c"
    ),
    "a function whose output is equal": "f() { echo 1; }\ng() { echo $RANDOM; }\nexport A=$(f)\nsrun ./a",
    "a default that is assigned to what is set": ": ${MASTER_PORT:=$RANDOM}\nexport A=${B:=1}\nsrun ./a",
    "what is read": "read A B < file\nread C <<< text > $RANDOM\nexport A B C\nsrun ./a $A",
    "what set exported before": "set -a; . ./env; A=1; set +a; B=$RANDOM; set -x; set -e -o pipefail\nsrun ./a",
    "temporary folders of a pod": (
        'export A=$(mktemp -d /tmp/x.XX) B=$(mktemp -d "$TMPDIR/x.XX") C=$(mktemp -p /dev/shm) '
        "D=$(mktemp --tmpdir=/tmp x)\nsrun ./a"
    ),
    "branches": 'if [ "$1" = debug ]; then\n  srun -n1 ./a\nelif true; then srun ./c\nelse\n  srun ./b\nfi',
    "cases": 'case "$1" in\n  a) srun ./a ;;\n  (b|c) srun ./b ;;\n  *) echo srun; exit 1\nesac',
    "a test with parentheses": "[[ $A =~ ^(x|y)$ && a < b ]] && srun ./a",
    "options of the program": "srun ping -w 3 host\n",
    "options after a separator": "srun -n 2 -- ./a -w 4 --nodelist=x",
    "options in a variable": 'srun $OPTIONS ./a -w "$x"',
    "other options of srun": "srun -l -u -K --mpi=none --cpu-bind=none -c 4 --export=ALL -W 60 --mpi none ./a -x",
    "whether there is srun": "command -v srun > /dev/null || exit 1\nwhich srun\nsrun --version\nsrun ./a",
    "whether there is MPI": "command -v mpirun\nmpirun --version\nwhich mpiexec\nsrun ./a",
    "letters and a value": "srun -ln4 ./a -w x\nwhich horovodrun",
    "files by the process": "log=/tmp/log.$$; echo $$ > $log; let n=2+3; printf -v x %s a; printf -v\nsrun ./a",
    "a random pause": "sleep $((RANDOM % 10))\nsrun ./train",
    "a random file of the pod": "tmp=/tmp/$RANDOM\nmkdir $tmp\nsrun ./train",
    "a temporary directory": "export TMPDIR=$(mktemp -d)\nsrun ./train",
    "random values in each task": "srun bash -c 'echo $RANDOM'\n",
    "an escaped variable": 'srun bash -c "echo \\$RANDOM \\${HOSTNAME}"',
    "a variable that is set anew": "A=$RANDOM\nA=1\nexport A\nsrun ./train $A",
    "a default that is not needed": "export MASTER_PORT=${MASTER_PORT:-$((RANDOM + 1))}\nsrun ./train",
    "a port by the number of the job": "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))\nsrun ./train",
    "the first host": 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\nsrun ./train',
    "how long it took": 'begin=$(date +%s)\nsrun ./train\necho "$(($(date +%s) - begin)) s"',
    "the date": "echo started $(date)\nexport DAY=$(date +%Y-%m-%d)\nsrun ./train",
    "arrays": "args=(\n  --lr 1  # srun\n  --x 'srun b; srun c'\n)\nargs+=(--y)\nsrun ./train \"${args[@]}\"",
    "continued lines": "srun \\\n  --ntasks=4 \\\n  ./train \\\n  -w 4",
    "process substitution": "diff <(sort a) <(sort b) > >(tee log)\nsrun ./train",
    "expansions": 'x=${1:-a}; y=${x%%.*}; z="${x/#\\}/b}"; n=${#x}; echo $# $$ $? $! "$@"\nsrun ./train',
    "quotes in quotes": 'a="$(echo "b $(echo ")")")"; c=$\'it\\\'s\'\nsrun ./train',
    "redirections": "srun ./train > out 2>&1 < /dev/null &> log &\nwait",
    "loops around other commands": "for f in *; do echo $f; done; while false; do :; done\nsrun ./train",
    "a loop over arguments": "for x do\n  echo $x\ndone\nsrun ./train",
    "a shift": "echo $((1 << 2))\n((x = 1 << 2))\nsrun ./train",
    "Windows": "srun ./train\r",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_ordinary_script_is_accepted(name: str) -> None:
    assert findings(ACCEPTED[name]) == ([], [])


@pytest.mark.parametrize("script", ACCEPTED.values())
def test_what_is_accepted_is_read_to_its_end(script: str) -> None:
    """A script that cannot be read is accepted, too: here a further step is seen behind each."""
    problems, _ = findings(f"{script}\nsrun ./y; srun ./z")
    assert any(STEPS in problem for problem in problems)


def test_values_that_may_have_to_be_equal_are_reported() -> None:
    assert "line 3: $(date" not in str(findings("RUN=$(date +%s)\nsrun ./train --run $RUN").problems)
    for script in (
        "RUN=$(date +%s)\nsrun ./train --run $RUN",
        "export RUN=run-$(date '+%Y%m%d-%H%M%S')\nsrun ./a",
    ):
        problems, (note,) = findings(script)
        assert (problems, RANDOM in note, "$SLURM_JOB_ID" in note) == ([], True, True)
    for script in ("export A=$EPOCHREALTIME\nsrun ./a", "for h in a b; do ssh $h ./worker & done\nsrun ./a"):
        problems, notes = findings(script)
        assert (problems, len(notes)) == ([], 1)
    assert "$MASTER_ADDR" in findings("srun ./train --log /scratch/$HOSTNAME").notes[0]


def test_the_line_and_the_remedy_are_named() -> None:
    problems = findings("echo\nsrun -w a ./a\nexport A=$RANDOM\nsrun ./b").problems
    assert [problem.partition(":")[0] for problem in problems] == ["line 4", "line 5", "line 6"]
    for problem, remedy in zip(problems, ("$MASTER_ADDR", "$SLURM_JOB_ID", "--after"), strict=True):
        assert remedy in problem


@pytest.mark.parametrize("plugin", ["mpi", "ray"])
def test_a_script_that_a_plugin_runs_in_one_pod_may_do_everything_but_srun(plugin: str) -> None:
    script = "#!/bin/bash\n#SBATCH -N 2\nexport A=$RANDOM MASTER_ADDR=$(hostname)\nmpirun ./a; mpirun ./b\n"
    assert gang_findings(script, plugin) == ([], [])
    problems, notes = gang_findings(f"{script}srun -w a ./c\nsrun ./d\n", plugin)
    assert (len(problems), notes) == (1, [])
    assert problems[0].startswith("line 5: srun starts tasks in its own pod only")
    assert f"--plugin {plugin}" in problems[0]
    assert len(gang_findings(script, "pytorch").problems) == 3


def test_problems_are_in_the_order_of_their_lines() -> None:
    problems = findings("srun ./a\nsrun ./b\nexport A=$RANDOM\nsrun -w a ./c").problems
    assert [problem.partition(":")[0] for problem in problems] == ["line 4", "line 5", "line 6"]


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/perl -w", "#!/bin/shfoo"])
def test_only_shells_are_read(first: str) -> None:
    assert gang_findings(f"{first}\nsrun a\nsrun b\n") == ([], [])


@pytest.mark.parametrize(
    "first", ["#!/bin/sh", "#!/bin/bash -l", "#! /usr/bin/env bash", "#!/usr/bin/env -S zsh -f"]
)
def test_shells_are_known_by_the_first_line(first: str) -> None:
    assert gang_findings(f"{first}\nsrun a\nsrun b\n").problems


def test_a_script_that_was_written_for_every_pod_may_differ_there() -> None:
    assert gang_findings("#!/bin/bash\n#STROMBOLI --replicas 2\nexport SEED=$RANDOM\npython train.py\n") == (
        [],
        [],
    )


@pytest.mark.parametrize(
    "piece", ["$(", "${a:-", "`", "((", "if ", "f() { ", '"$(', "case a in b) ", "x=(", "<(", "'", "<<A\n"]
)
def test_a_script_that_nests_too_deep_or_does_not_end_is_not_judged(piece: str) -> None:
    assert findings(f"srun a\nsrun b\n{piece * 5001}") == ([], [])


@pytest.mark.parametrize(
    "piece",
    [
        "date + ",
        "$(date +",
        "srun a; ",
        "RANDOM ",
        "a=$RANDOM ",
        "x",
        "\\\n",
        "$(a) ",
        '"$b" ',
        "@(a)",
        "f() { a; }; f; ",
        "${a:=$(b)}",
    ],
)
def test_a_script_of_any_text_is_read_in_no_time(piece: str) -> None:
    begin = time.process_time()
    findings(piece * (96 * 1024 // len(piece)))
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "script",
    [f"(({'a' * 90_000}))", f"((a{' ' * 90_000}))", f"a[{'x' * 45_000}]={'()' * 25_000}", "(" * 90_000]
    + [
        f"$({piece * (90_000 // len(piece))})"
        for piece in ("mktemp ", "mktemp =", "mktemp a/", "mktemp x=/tmp ")
    ],
    ids=("name", "blanks", "arrays", "parentheses", "mktemp", "mktemp =", "mktemp /", "mktemp /tmp"),
)
def test_a_script_is_read_in_no_time_however_long_its_words_are(script: str) -> None:
    begin = time.process_time()
    findings(script)
    assert time.process_time() - begin < 5


@given(st.text(alphabet="srun -w$({[`'\"\\})]<>|&;#=a1\n\t RANDOMifdoestc", max_size=200))
def test_no_script_does_harm(text: str) -> None:
    for sentence in (*findings(text).problems, *findings(text).notes):
        assert sentence.isprintable()
