"""The command of a container: as it was given, or in a shell that sets what depends on the index of the pod.

A script travels as an argument of the shell, which writes it into a volume of the pod and runs it by its first line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from stromboli.submission.job_arrays import JobArray
from stromboli.submission.job_request import JobRequest
from stromboli.submission.slurm_options import SRUN_REFUSED, SRUN_TAKES_VALUE

FOLDER = "/run/stromboli"
"""A volume of each pod of a script: the script itself, and the commands of Slurm that it may call."""
INDEX = "STROMBOLI_INDEX"
"""The index of the pod in its task."""
_PATTERN = re.compile(r"%([0-9]{0,2})([jxAaNntsu%])", re.ASCII)
_PATTERNS = {
    "j": "$SLURM_JOB_ID",
    "x": "$SLURM_JOB_NAME",
    "A": "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}",
    "a": "${SLURM_ARRAY_TASK_ID:-0}",
    "N": "$SLURMD_NODENAME",
    "n": "$SLURM_NODEID",
    "t": "$SLURM_PROCID",
    "s": "0",
    "u": "${USER:-}",
}
_MARKS_OF_PODS, _MARKS_OF_INDEXES = frozenset("Nnt"), frozenset("Naj")
"""Patterns that differ from pod to pod of a gang, or of an array."""
_SRUN_LINES = r"""#!/bin/sh
# The tasks of this pod, as `srun` starts those of a node.
fail() { printf 'srun: %s\n' "$1" >&2; exit 1; }
refuse() { [ "$option $value" = '--mpi none' ] || fail "$option is not supported; $1"; }
number() {
  case "$value" in
    ''|*[!0-9]*|0*|???????*) fail "invalid value \"$value\" for $option: must be a number of at least 1" ;;
  esac
}
total='' nodes=${SLURM_NNODES:-1} few='' each='' placed='' input=all directory='' passed=${SLURM_EXPORT_ENV:-ALL}
while [ $# -gt 0 ]; do
  option=$1 value=''
  case "$1" in
    --) shift; break ;;
    --*=*) option=${1%%=*} value=${1#*=}; shift ;;
    -[LETTERS][a-zA-Z]*) others=${1#-?} option=${1%"${1#-?}"}; shift; set -- "-$others" "$@" ;;
    -[a-zA-Z]?*) option=${1%"${1#-?}"} value=${1#-?}; shift ;;
    FLAGS) shift ;;
    -?*) [ $# -gt 1 ] || set -- "$1" ''; value=$2; shift 2 ;;
    *) break ;;
  esac
  case "$option" in
    -V|--version) echo 'slurm (stromboli submit)'; exit 0 ;;
    -h|--help|--usage) echo 'usage: srun [-n TASKS] [-N NODES] COMMAND...'; exit 0 ;;
    -w|--nodelist|-x|--exclude|-r|--relative|-F|--nodefile) placed=$option ;;
    -n|--ntasks) number; total=$value ;;
    -N|--nodes) value=${value#*-}; number; few=$value ;;
    --ntasks-per-node|--tasks-per-node) number; each=$value ;;
    -c|--cpus-per-task) number; export SLURM_CPUS_PER_TASK=$value ;;
    -D|--chdir) directory=$value ;;
    -i|--input) input=$value ;;
    --export) passed=$value ;;
    --jobid) [ "$value" = "${SLURM_JOB_ID:-}" ] || fail "--jobid $value is not this job ($SLURM_JOB_ID)" ;;
REFUSALS
    KNOWN) ;;
    *) fail "unrecognized option '$option'" ;;
  esac
done
[ $# -gt 0 ] || fail 'no command given'
for word in "$@"; do
  [ "$word" != : ] ||
    fail "several programs in a step (':') are not supported; submit each as a job of its own"
done
case "$input" in
  all) ;;
  none) exec < /dev/null ;;
  *[!0-9]*) [ -r "$input" ] || fail "--input: cannot read $input"; exec < "$input" ;;
  *) fail "--input=$input gives one task the input; all tasks get it, or none (--input=none)" ;;
esac
[ -z "$directory" ] || CDPATH='' cd -- "$directory" || fail "--chdir: cannot change to $directory"
kept='' list=$passed,
while [ -n "$list" ]; do
  entry=${list%%,*} list=${list#*,}
  case "$entry" in ALL|all) passed=ALL; continue ;; ''|NONE|none|NIL|nil) continue ;; esac
  case "${entry%%=*}" in
    ''|[0-9]*|*[!a-zA-Z0-9_]*) fail "invalid value \"$entry\" for --export: must be ALL, NONE, NAME or NAME=VALUE" ;;
  esac
  case "$entry" in
    *=[\'\"]*) fail "--export: values in quotes are not supported; export ${entry%%=*} in the script" ;;
    *=*) export "$entry" ;;
  esac
  kept="$kept ${entry%%=*} "
done
if [ "$nodes" -gt 1 ]; then
  [ -z "$placed" ] || fail "$placed chooses nodes, but srun starts the tasks of its own pod, in every pod"
  mkdir "${0%/bin/*}/step" 2>/dev/null ||
    fail 'a job of several pods has one step; submit the others as jobs of their own (--after)'
fi
if [ "${few:-$nodes}" -lt "$nodes" ]; then
  nodes=$few total=${total:-$((few * ${SLURM_NTASKS_PER_NODE:-1}))}
  [ "$SLURM_NODEID" -ge "$nodes" ] && exit 0
fi
total=${total:-${SLURM_NTASKS:-1}}
[ -n "$each" ] && [ "$total" -gt $((each * nodes)) ] && total=$((each * nodes))
here=$((total / nodes)) more=$((total % nodes)) tasks=''
first=$((SLURM_NODEID * here + (SLURM_NODEID < more ? SLURM_NODEID : more)))
[ "$SLURM_NODEID" -lt "$more" ] && here=$((here + 1))
[ "$here" -le 0 ] && exit 0
export SLURM_NTASKS=$total SLURM_NPROCS=$total SLURM_STEP_ID=0 SLURM_STEPID=0
task() {
  export SLURM_LOCALID=$1 SLURM_PROCID=$((first + $1))
  shift
  if [ "$total" -gt 1 ] || [ -n "${RANK:-}" ]; then
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$total
  fi
  [ "$passed" = ALL ] || limited "$@"
  exec "$@"
}
limited() {
  program=$(command -v "$1") || program=$1
  shift
  set -- "$program" "$@"
  for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case "$name" in
      SLURM*|SPANK_*|STROMBOLI_*|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_*|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES) ;;
      *) case "$kept" in *" $name "*) ;; *) continue ;; esac ;;
    esac
    eval "set -- \"$name=\$$name\" \"\$@\""
  done
  exec env -i "$@"
}
if [ "$here" -eq 1 ]; then task 0 "$@"; fi
at=0 worst=0 copy=/dev/tty
if ! [ -t 0 ]; then
  copy=${0%/bin/*}/input.$$
  cat > "$copy" || fail "cannot keep the input of $here tasks; --input=none starts them without"
fi
trap 'kill -TERM $tasks 2>/dev/null' TERM INT
while [ "$at" -lt "$here" ]; do
  (task "$at" "$@") < "$copy" &
  tasks="$tasks $!" at=$((at + 1))
done
for task in $tasks; do
  wait "$task"; code=$?
  [ "$code" -gt "$worst" ] && worst=$code
done
[ "$copy" = /dev/tty ] || rm -f "$copy"
exit "$worst"
"""


def _refusals() -> str:
    """A line for each group of options that `srun` refuses, with the remedy."""
    options: dict[str, list[str]] = {}
    for option, remedy in SRUN_REFUSED.items():
        options.setdefault(remedy, []).append(option)
    return "\n".join(
        f"    {'|'.join(group)}) refuse {shlex.quote(remedy)} ;;" for remedy, group in options.items()
    )


_FLAGS = [option for option, takes_value in SRUN_TAKES_VALUE.items() if not takes_value]
_SRUN = (
    _SRUN_LINES.replace("FLAGS", "|".join(_FLAGS))
    .replace("LETTERS", "".join(option[1] for option in _FLAGS if len(option) == 2))
    .replace("REFUSALS", _refusals())
    .replace("KNOWN", "|".join(option for option in SRUN_TAKES_VALUE if option not in SRUN_REFUSED))
)
_SCONTROL = r"""#!/bin/sh
case "$1 $2" in
  'show hostname'*)
    IFS=,
    for host in ${3:-$SLURM_JOB_NODELIST}; do printf '%s\n' "$host"; done ;;
  *) echo "scontrol: only 'show hostnames' works here; see kubectl and stromboli" >&2; exit 1 ;;
esac
"""


def literal(text: str) -> str:
    """A text of a container's command or variables that Kubernetes hands on as it is: `$(NAME)` is no reference."""
    return text.replace("$", "$$") if "$(" in text or "$$" in text else text


def launch(request: JobRequest, setup: Sequence[str] = (), first_rank: int = 0) -> list[str]:
    """The command of the pods of a task whose first pod has this rank; `setup` are lines for the shell before it."""
    lines = [*setup]
    if request.array is not None and not (request.array.counts_from_zero and request.script is None):
        lines += array_lines(request.array)
    if request.script is None:
        if not lines:
            return [literal(word) for word in request.command]
        shell = "\n".join([*lines, 'exec "$@"'])
        return [literal(word) for word in ("sh", "-c", shell, "sh", *request.command)]
    shell = "\n".join([*_place_lines(request, first_rank), *lines, *_script_lines(request)])
    return [literal(word) for word in ("sh", "-c", shell, "sh", request.script.text, *request.command)]


def array_lines(array: JobArray) -> list[str]:
    """The index of the array that a pod has, by its own."""
    if array.step:
        value = f"$(({array.indexes[0]} + ${INDEX} * {array.step}))"
        return [f"export STROMBOLI_ARRAY_INDEX={value} SLURM_ARRAY_TASK_ID={value}"]
    return [
        "at=0",
        f"for index in {' '.join(map(str, array.indexes))}; do",
        f'  if [ "$at" -eq "${INDEX}" ]; then',
        "    export STROMBOLI_ARRAY_INDEX=$index SLURM_ARRAY_TASK_ID=$index",
        "  fi",
        "  at=$((at + 1))",
        "done",
    ]


def _place_lines(request: JobRequest, first_rank: int) -> list[str]:
    """What a script knows of its place among the pods."""
    if request.array is not None:
        place = [
            "export SLURM_NODEID=0 SLURM_PROCID=0",
            f"export SLURM_JOB_ID=$(({request.number} + {INDEX}))",
            "export SLURM_JOBID=$SLURM_JOB_ID",
        ]
    else:
        tasks, more = divmod(request.tasks, request.replicas)
        rest = f" + (SLURM_NODEID < {more} ? SLURM_NODEID : {more})" if more else ""
        place = [
            f"export SLURM_NODEID=$(({INDEX} + {first_rank}))",
            f"export SLURM_PROCID=$((SLURM_NODEID * {tasks}{rest}))",
        ]
    if request.has_ranks:
        ranks = {"RANK": "$SLURM_PROCID", "LOCAL_RANK": "0", "WORLD_SIZE": "$SLURM_NTASKS"}
        place += [f"export {name}={value}" for name, value in ranks.items() if name not in request.env]
    return [*place, 'export SLURM_LOCALID=0 SLURM_TASK_PID=$$ SLURMD_NODENAME="${HOSTNAME:-$(hostname)}"']


def _script_lines(request: JobRequest) -> list[str]:
    """Write the script and what it may call, and run it."""
    return [
        f'folder="${{STROMBOLI_ROOT:-}}{FOLDER}"',
        'mkdir -p "$folder/bin" && printf %s "$1" > "$folder/script" || exit 1',
        f'printf %s {shlex.quote(_SRUN)} > "$folder/bin/srun"',
        f'printf %s {shlex.quote(_SCONTROL)} > "$folder/bin/scontrol"',
        'rmdir "$folder/step" 2>/dev/null',
        'chmod +x "$folder/script" "$folder/bin/srun" "$folder/bin/scontrol"',
        'export PATH="$folder/bin:$PATH"',
        "shift",
        *_run_lines(request),
    ]


def _run_lines(request: JobRequest) -> list[str]:
    script = request.script
    if script is None or not (script.output or script.error):
        return ['exec "$folder/script" "$@"']
    pipes, redirections = [], []
    for name, pattern in (("out", script.output), ("err", script.error)):
        if pattern:
            pipes += _copy_lines(name, pattern, script.append or is_shared(pattern, request))
            redirections.append(f'{"2" if name == "err" else ""}> "$folder/{name}"')
    if not script.error:
        redirections.append("2>&1")
    return [
        "copies=''",
        *pipes,
        f'"$folder/script" "$@" {" ".join(redirections)} &',
        "script=$!",
        "trap 'kill -TERM $script 2>/dev/null' TERM INT",
        "wait $script; code=$?",
        'while [ "$code" -gt 128 ] && kill -0 $script 2>/dev/null; do wait $script; code=$?; done',
        "wait $copies",
        'exit "$code"',
    ]


def _copy_lines(name: str, pattern: str, append: bool) -> list[str]:
    """What goes into a pipe goes into a file and to the log."""
    flag = "-a " if append else ""
    aim = " >&2" if name == "err" else ""
    return [
        f"file={output_path(pattern)}",
        'case "$file" in */*) mkdir -p -- "${file%/*}" ;; esac',
        f'rm -f "$folder/{name}" && mkfifo "$folder/{name}" || exit 1',
        f'tee {flag}-- "$file" < "$folder/{name}"{aim} &',
        'copies="$copies $!"',
    ]


def is_shared(pattern: str, request: JobRequest) -> bool:
    """Whether several pods write into that file, so that none of them may begin it anew."""
    marks = {match[2] for match in _PATTERN.finditer(pattern)}
    return request.pods > 1 and not marks & (
        _MARKS_OF_INDEXES if request.array is not None else _MARKS_OF_PODS
    )


def output_path(pattern: str) -> str:
    """A path with Slurm's patterns as an expression of the shell."""
    parts, at = [], 0
    for match in _PATTERN.finditer(pattern):
        parts.append(_quoted(pattern[at : match.start()]))
        at = match.end()
        if match[2] == "%":
            parts.append("%")
        elif match[1] and match[2] in "jAant":
            parts.append(f'"$(printf %0{int(match[1]) or 1}d "{_PATTERNS[match[2]]}")"')
        else:
            parts.append(f'"{_PATTERNS[match[2]]}"')
    return "".join([*parts, _quoted(pattern[at:])])


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""
