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
# Names of its own have the prefix _srun_: a variable that the user exported keeps its value for the tasks.
_srun_fail() { printf 'srun: %s\n' "$1" >&2; exit 1; }
_srun_refuse() { [ "$_srun_option $_srun_value" = '--mpi none' ] || _srun_fail "$_srun_option is not supported; $1"; }
_srun_number() {
  case "$_srun_value" in
    ''|*[!0-9]*|0*|???????*)
      _srun_fail "invalid value \"$_srun_value\" for $_srun_option: must be a number of at least 1" ;;
  esac
}
_srun_total='' _srun_nodes=${SLURM_NNODES:-1} _srun_few='' _srun_each='' _srun_placed=''
_srun_input=all _srun_directory='' _srun_passed=${SLURM_EXPORT_ENV:-ALL}
while [ $# -gt 0 ]; do
  _srun_option=$1 _srun_value=''
  case "$1" in
    --) shift; break ;;
    --*=*) _srun_option=${1%%=*} _srun_value=${1#*=}; shift ;;
    -[LETTERS][a-zA-Z]*)
      _srun_others=${1#-?} _srun_option=${1%"${1#-?}"}; shift; set -- "-$_srun_others" "$@" ;;
    -[a-zA-Z]?*) _srun_option=${1%"${1#-?}"} _srun_value=${1#-?}; shift ;;
    FLAGS) shift ;;
    -?*) [ $# -gt 1 ] || set -- "$1" ''; _srun_value=$2; shift 2 ;;
    *) break ;;
  esac
  case "$_srun_option" in
    -V|--version) echo 'slurm (stromboli submit)'; exit 0 ;;
    -h|--help|--usage) echo 'usage: srun [-n TASKS] [-N NODES] COMMAND...'; exit 0 ;;
    -w|--nodelist|-x|--exclude|-r|--relative|-F|--nodefile) _srun_placed=$_srun_option ;;
    -n|--ntasks) _srun_number; _srun_total=$_srun_value ;;
    -N|--nodes) _srun_value=${_srun_value#*-}; _srun_number; _srun_few=$_srun_value ;;
    --ntasks-per-node|--tasks-per-node) _srun_number; _srun_each=$_srun_value ;;
    -c|--cpus-per-task) _srun_number; export SLURM_CPUS_PER_TASK="$_srun_value" ;;
    -D|--chdir) _srun_directory=$_srun_value ;;
    -i|--input) _srun_input=$_srun_value ;;
    --export) _srun_passed=$_srun_value ;;
    --jobid)
      [ "$_srun_value" = "${SLURM_JOB_ID:-}" ] ||
        _srun_fail "--jobid $_srun_value is not this job ($SLURM_JOB_ID)" ;;
REFUSALS
    KNOWN) ;;
    *) _srun_fail "unrecognized option '$_srun_option'" ;;
  esac
done
[ $# -gt 0 ] || _srun_fail 'no command given'
for _srun_word in "$@"; do
  [ "$_srun_word" != : ] ||
    _srun_fail "several programs in a step (':') are not supported; submit each as a job of its own"
done
case "$_srun_input" in
  all) ;;
  none) exec < /dev/null ;;
  *[!0-9]*)
    [ -r "$_srun_input" ] || _srun_fail "--input: cannot read $_srun_input"
    exec < "$_srun_input" ;;
  *) _srun_fail "--input=$_srun_input gives one task the input; all tasks get it, or none (--input=none)" ;;
esac
[ -z "$_srun_directory" ] || CDPATH='' cd -- "$_srun_directory" ||
  _srun_fail "--chdir: cannot change to $_srun_directory"
_srun_kept='' _srun_given='' _srun_names='' _srun_list=$_srun_passed,
while [ -n "$_srun_list" ]; do
  _srun_entry=${_srun_list%%,*} _srun_list=${_srun_list#*,}
  case "$_srun_entry" in ALL|all) _srun_passed=ALL; continue ;; ''|NONE|none|NIL|nil) continue ;; esac
  _srun_name=${_srun_entry%%=*}
  case "$_srun_name" in
    ''|[0-9]*|*[!a-zA-Z0-9_]*)
      _srun_fail "invalid value \"$_srun_entry\" for --export: must be ALL, NONE, NAME or NAME=VALUE" ;;
    _srun_*) _srun_fail "invalid name \"$_srun_name\" for --export: the prefix _srun_ is reserved" ;;
  esac
  case "$_srun_entry" in
    *=[\'\"]*) _srun_fail "--export: values in quotes are not supported; export $_srun_name in the script" ;;
    *=*) _srun_given=$_srun_given$_srun_entry, _srun_names=$_srun_names$_srun_name, ;;
  esac
  _srun_kept="$_srun_kept $_srun_name "
done
if [ "$_srun_nodes" -gt 1 ]; then
  [ -z "$_srun_placed" ] ||
    _srun_fail "$_srun_placed chooses nodes, but srun starts the tasks of its own pod, in every pod"
  mkdir "${0%/bin/*}/step" 2>/dev/null ||
    _srun_fail 'a job of several pods has one step; submit the others as jobs of their own (--after)'
fi
if [ "${_srun_few:-$_srun_nodes}" -lt "$_srun_nodes" ]; then
  _srun_nodes=$_srun_few _srun_total=${_srun_total:-$((_srun_few * ${SLURM_NTASKS_PER_NODE:-1}))}
  [ "$SLURM_NODEID" -ge "$_srun_nodes" ] && exit 0
fi
_srun_total=${_srun_total:-${SLURM_NTASKS:-1}}
[ -n "$_srun_each" ] && [ "$_srun_total" -gt $((_srun_each * _srun_nodes)) ] &&
  _srun_total=$((_srun_each * _srun_nodes))
_srun_here=$((_srun_total / _srun_nodes)) _srun_more=$((_srun_total % _srun_nodes))
_srun_first=$((SLURM_NODEID * _srun_here + (SLURM_NODEID < _srun_more ? SLURM_NODEID : _srun_more)))
[ "$SLURM_NODEID" -lt "$_srun_more" ] && _srun_here=$((_srun_here + 1))
[ "$_srun_here" -le 0 ] && exit 0
_srun_ranks=${RANK:-}
[ "$_srun_total" -gt 1 ] && _srun_ranks=all
if [ "$_srun_passed" != ALL ]; then
  _srun_env=$(command -v env)
  for _srun_name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case "$_srun_name" in
      SLURM*|SPANK_*|STROMBOLI_*|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_*|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES) ;;
      *) case "$_srun_kept" in *" $_srun_name "*) ;; *) continue ;; esac ;;
    esac
    _srun_names=$_srun_names$_srun_name,
  done
  _srun_names=${_srun_names}SLURM_NTASKS,SLURM_NPROCS,SLURM_STEP_ID,SLURM_STEPID,SLURM_LOCALID,SLURM_PROCID,
  [ -z "$_srun_ranks" ] || _srun_names=${_srun_names}RANK,LOCAL_RANK,WORLD_SIZE,
fi
# From here on the variables are those of the task: its PATH and IFS may differ from those of srun.
_srun_task() {
  _srun_local=$1
  shift
  while [ -n "$_srun_given" ]; do
    _srun_entry=${_srun_given%%,*} _srun_given=${_srun_given#*,}
    export "$_srun_entry"
  done
  export SLURM_NTASKS="$_srun_total" SLURM_NPROCS="$_srun_total" SLURM_STEP_ID=0 SLURM_STEPID=0
  export SLURM_LOCALID="$_srun_local" SLURM_PROCID="$((_srun_first + _srun_local))"
  if [ -n "$_srun_ranks" ]; then
    export RANK="$SLURM_PROCID" LOCAL_RANK="$_srun_local" WORLD_SIZE="$_srun_total"
  fi
  [ "$_srun_passed" = ALL ] || _srun_limited "$@"
  exec "$@"
}
_srun_limited() {
  _srun_program=$(command -v "$1") || _srun_program=$1
  shift
  set -- "$_srun_program" "$@"
  while [ -n "$_srun_names" ]; do
    _srun_name=${_srun_names%%,*} _srun_names=${_srun_names#*,}
    eval "[ -z \"\${$_srun_name+set}\" ] || set -- \"$_srun_name=\$$_srun_name\" \"\$@\""
  done
  exec "$_srun_env" -i "$@"
}
if [ "$_srun_here" -eq 1 ]; then _srun_task 0 "$@"; fi
_srun_at=0 _srun_started='' _srun_worst=0 _srun_copy=/dev/tty
if ! [ -t 0 ]; then
  _srun_copy=${0%/bin/*}/input.$$
  cat > "$_srun_copy" ||
    _srun_fail "cannot keep the input of $_srun_here tasks; --input=none starts them without"
fi
trap 'kill -TERM $_srun_started 2>/dev/null' TERM INT
while [ "$_srun_at" -lt "$_srun_here" ]; do
  (_srun_task "$_srun_at" "$@") < "$_srun_copy" &
  _srun_started="$_srun_started $!" _srun_at=$((_srun_at + 1))
done
for _srun_process in $_srun_started; do
  wait "$_srun_process"; _srun_code=$?
  [ "$_srun_code" -gt "$_srun_worst" ] && _srun_worst=$_srun_code
done
[ "$_srun_copy" = /dev/tty ] || rm -f "$_srun_copy"
exit "$_srun_worst"
"""


def _refusals() -> str:
    """A line for each group of options that `srun` refuses, with the remedy."""
    options: dict[str, list[str]] = {}
    for option, remedy in SRUN_REFUSED.items():
        options.setdefault(remedy, []).append(option)
    return "\n".join(
        f"    {'|'.join(group)}) _srun_refuse {shlex.quote(remedy)} ;;" for remedy, group in options.items()
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
        "_sbatch_at=0",
        f"for _sbatch_index in {' '.join(map(str, array.indexes))}; do",
        f'  if [ "$_sbatch_at" -eq "${INDEX}" ]; then',
        "    export STROMBOLI_ARRAY_INDEX=$_sbatch_index SLURM_ARRAY_TASK_ID=$_sbatch_index",
        "  fi",
        "  _sbatch_at=$((_sbatch_at + 1))",
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
        f'_sbatch_folder="${{STROMBOLI_ROOT:-}}{FOLDER}"',
        'mkdir -p "$_sbatch_folder/bin" && printf %s "$1" > "$_sbatch_folder/script" || exit 1',
        f'printf %s {shlex.quote(_SRUN)} > "$_sbatch_folder/bin/srun"',
        f'printf %s {shlex.quote(_SCONTROL)} > "$_sbatch_folder/bin/scontrol"',
        'rmdir "$_sbatch_folder/step" 2>/dev/null',
        'chmod +x "$_sbatch_folder/script" "$_sbatch_folder/bin/srun" "$_sbatch_folder/bin/scontrol"',
        'export PATH="$_sbatch_folder/bin:$PATH"',
        "shift",
        *_run_lines(request),
    ]


def _run_lines(request: JobRequest) -> list[str]:
    script = request.script
    if script is None or not (script.output or script.error):
        return ['exec "$_sbatch_folder/script" "$@"']
    pipes, redirections = [], []
    for name, pattern in (("out", script.output), ("err", script.error)):
        if pattern:
            pipes += _copy_lines(name, pattern, script.append or is_shared(pattern, request))
            redirections.append(f'{"2" if name == "err" else ""}> "$_sbatch_folder/{name}"')
    if not script.error:
        redirections.append("2>&1")
    return [
        "_sbatch_copies=''",
        *pipes,
        f'"$_sbatch_folder/script" "$@" {" ".join(redirections)} &',
        "_sbatch_script=$!",
        "trap 'kill -TERM $_sbatch_script 2>/dev/null' TERM INT",
        "wait $_sbatch_script; _sbatch_code=$?",
        'while [ "$_sbatch_code" -gt 128 ] && kill -0 $_sbatch_script 2>/dev/null; do',
        "  wait $_sbatch_script; _sbatch_code=$?",
        "done",
        "wait $_sbatch_copies",
        'exit "$_sbatch_code"',
    ]


def _copy_lines(name: str, pattern: str, append: bool) -> list[str]:
    """What goes into a pipe goes into a file and to the log."""
    flag = "-a " if append else ""
    aim = " >&2" if name == "err" else ""
    return [
        f"_sbatch_file={output_path(pattern)}",
        'case "$_sbatch_file" in */*) mkdir -p -- "${_sbatch_file%/*}" ;; esac',
        f'rm -f "$_sbatch_folder/{name}" && mkfifo "$_sbatch_folder/{name}" || exit 1',
        f'tee {flag}-- "$_sbatch_file" < "$_sbatch_folder/{name}"{aim} &',
        '_sbatch_copies="$_sbatch_copies $!"',
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
