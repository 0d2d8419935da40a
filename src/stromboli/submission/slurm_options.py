"""The options of `sbatch`: which take a value, which are honoured, and why the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stromboli.submission.bad_request import BadRequest

NODES = "the policy of the scheduler decides where pods are placed and which pods share a node"
BINDING = "CPUs and devices are bound by the node, not by the job"
ACCOUNTS = "there are no accounts: queues divide the cluster, see --queue"
MAIL = "no mail is sent; `stromboli job wait` tells when it has ended"
SITE = "it belongs to an installation of Slurm"
STEPS = "it is about steps of srun, which runs what it is given"
LATER = "jobs start when there is room; a CronJob of Volcano starts them by the clock"


class SlurmOption(NamedTuple):
    """An option by its long name; `unmet` says why it cannot be honoured."""

    name: str
    letter: str = ""
    takes_value: bool = True
    unmet: str = ""
    needs_value: bool = True
    """Whether the value may be left out."""


def _unmet(reason: str, *listed: str) -> list[SlurmOption]:
    """`name`, `name/L` with a letter, `name!` without a value, `name?` with one that may be left out."""
    options = []
    for text in listed:
        name, _, letter = text.rstrip("!?").partition("/")
        options.append(
            SlurmOption(name, letter, not text.endswith("!"), reason, needs_value=not text.endswith("?"))
        )
    return options


HONOURED = (
    SlurmOption("nodes", "N"),
    SlurmOption("ntasks", "n"),
    SlurmOption("ntasks-per-node"),
    SlurmOption("cpus-per-task", "c"),
    SlurmOption("mem"),
    SlurmOption("mem-per-cpu"),
    SlurmOption("mem-per-gpu"),
    SlurmOption("gres"),
    SlurmOption("gpus", "G"),
    SlurmOption("gpus-per-node"),
    SlurmOption("gpus-per-task"),
    SlurmOption("cpus-per-gpu"),
    SlurmOption("time", "t"),
    SlurmOption("array", "a"),
    SlurmOption("dependency", "d"),
    SlurmOption("partition", "p"),
    SlurmOption("job-name", "J"),
    SlurmOption("output", "o"),
    SlurmOption("error", "e"),
    SlurmOption("open-mode"),
    SlurmOption("chdir", "D"),
    SlurmOption("export"),
    SlurmOption("container-image"),
    SlurmOption("requeue", takes_value=False),
    SlurmOption("no-requeue", takes_value=False),
    SlurmOption("wait", "W", takes_value=False),
    SlurmOption("verbose", "v", takes_value=False),
    SlurmOption("quiet", "Q", takes_value=False),
    SlurmOption("parsable", takes_value=False),
)
UNMET = (
    *_unmet(
        NODES,
        "exclusive?",
        "oversubscribe/s!",
        "overcommit/O!",
        "contiguous!",
        "spread-job!",
        "use-min-nodes!",
    ),
    *_unmet(NODES, "nodelist/w", "nodefile/F", "exclude/x", "constraint/C", "prefer", "cluster-constraint"),
    *_unmet(NODES, "switches", "mincpus", "tmp", "distribution/m", "segment", "ntasks-per-socket"),
    *_unmet(NODES, "ntasks-per-core", "ntasks-per-gpu", "gpus-per-socket", "tres-per-task", "gres-flags"),
    *_unmet(BINDING, "cores-per-socket", "sockets-per-node", "threads-per-core", "extra-node-info/B", "hint"),
    *_unmet(
        BINDING, "cpu-bind", "mem-bind", "gpu-bind", "gpu-freq", "cpu-freq", "core-spec/S", "thread-spec"
    ),
    *_unmet(BINDING, "accel-bind", "tres-bind"),
    *_unmet(ACCOUNTS, "account/A", "uid", "gid", "wckey"),
    *_unmet("priority classes decide who comes first, see --priority", "qos/q", "nice?", "priority"),
    *_unmet(MAIL, "mail-type", "mail-user"),
    *_unmet(LATER, "begin/b", "deadline", "delay-boot", "hold/H!", "immediate/I?"),
    *_unmet(
        "a pod gets SIGTERM and has its grace period when it is ended early", "signal", "kill-on-invalid-dep"
    ),
    *_unmet("only the time limit of --time counts", "time-min"),
    *_unmet("a pod that fails ends the job", "no-kill/k?"),
    *_unmet(SITE, "bb", "bbf", "licenses/L", "reservation", "clusters/M", "bcast", "profile", "acctg-freq"),
    *_unmet(SITE, "power", "reboot!", "network", "mcs-label", "container", "container-id", "get-user-env?"),
    *_unmet(SITE, "propagate?", "export-file", "consolidate-segments!", "spank", "resv-ports?", "stepmgr!"),
    *_unmet(
        SITE,
        "comment",
        "extra",
        "test-only!",
        "ignore-pbs!",
        "ignore-mcs!",
        "oom-kill-step?",
        "tres-bind-opts",
    ),
    *_unmet(STEPS, "mpi", "multi-prog!", "label/l!", "kill-on-bad-exit/K?", "exact!", "overlap!", "pty!"),
    *_unmet("a job reads nothing: its input is empty", "input/i"),
    *_unmet("containers are made by Kubernetes; give them volumes in a manifest", "container-mounts"),
    *_unmet("the folder is given with --chdir", "container-workdir"),
    *_unmet("`stromboli run -- COMMAND` submits a command without a script", "wrap"),
)
BY_NAME = {option.name: option for option in (*HONOURED, *UNMET)}
BY_LETTER = {option.letter: option for option in (*HONOURED, *UNMET) if option.letter}
ALIASES = {"tasks-per-node": "ntasks-per-node"}
"""Other names of options."""
_SBATCH_ALONE = frozenset(
    (
        "array",
        "wrap",
        "parsable",
        "requeue",
        "no-requeue",
        "ignore-pbs",
        "export-file",
        "get-user-env",
        "spank",
    )
)
"""Options that `srun` does not have."""
_PYXIS = {
    **dict.fromkeys(("--container-name", "--container-env", "--container-save"), True),
    **dict.fromkeys(("--container-mount-home", "--no-container-mount-home"), False),
    **dict.fromkeys(("--container-remap-root", "--no-container-remap-root"), False),
    **dict.fromkeys(("--container-entrypoint", "--no-container-entrypoint"), False),
    **dict.fromkeys(("--container-writable", "--container-readonly"), False),
}
"""The options that Pyxis adds to `srun`, besides those that `sbatch` has here, and whether they take a value."""
SRUN_TAKES_VALUE = {
    option: known.takes_value and known.needs_value
    for known in (*HONOURED, *UNMET)
    if known.name not in _SBATCH_ALONE
    for option in (f"--{known.name}", f"-{known.letter}")
    if option != "-"
} | {
    **dict.fromkeys(("--tasks-per-node", "--jobid", "--wait", "-W", "--threads", "-T", "--het-group"), True),
    **dict.fromkeys(("--prolog", "--epilog", "--task-prolog", "--task-epilog"), True),
    **dict.fromkeys(("--msg-timeout", "--slurmd-debug", "--treewidth"), True),
    **dict.fromkeys(("--unbuffered", "-u", "--preserve-env", "-E", "--disable-status", "-X"), False),
    **dict.fromkeys(("--no-allocate", "-Z", "--whole", "--compress", "--send-libs"), False),
    **dict.fromkeys(("--quit-on-interrupt", "--interactive", "--external", "--x11"), False),
    **dict.fromkeys(("--version", "-V", "--help", "-h", "--usage"), False),
    **_PYXIS,
}
"""The options of `srun`, and whether they take the next word as their value."""
_IMAGE = "#SBATCH --container-image is the image of all tasks; mounts need a manifest"
SRUN_REFUSED = {
    **dict.fromkeys(("-o", "--output", "-e", "--error"), "redirect the output: srun COMMAND > FILE"),
    **dict.fromkeys(
        ("-t", "--time", "--signal"), "srun timeout SECONDS COMMAND, or #SBATCH --time for the job"
    ),
    "--multi-prog": "choose the program by $SLURM_PROCID in a script",
    "--mpi": "--plugin mpi starts MPI programs; other programs do not need the option",
    **dict.fromkeys(("--prolog", "--epilog"), "call the program before or after srun"),
    **dict.fromkeys(("--task-prolog", "--task-epilog"), "srun a script that calls both programs"),
    **dict.fromkeys(("--container", "--container-id", "--container-image"), _IMAGE),
    **dict.fromkeys(("--container-mounts", "--container-workdir", *_PYXIS), _IMAGE),
    "--het-group": "submit each component as a job of its own",
    "--ntasks-per-gpu": "--ntasks-per-node says how many tasks a pod has",
    "--test-only": "stromboli submit --dry-run shows the job",
    **dict.fromkeys(("--uid", "--gid"), "securityContext in a manifest sets the user"),
}
"""Options of `srun` without which a step does something else, with the remedy. `--mpi=none` is accepted.

`srun` passes over those that are neither here nor read by it.
"""


class GivenOption(NamedTuple):
    """An option and its value; empty for one without."""

    option: SlurmOption
    value: str

    @property
    def name(self) -> str:
        return self.option.name


def read_options(words: Sequence[str]) -> list[GivenOption]:
    """The options in words as `sbatch` reads them; `BadRequest` for one that it does not know either."""
    given, left = [], list(words)
    while left:
        word = left.pop(0)
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            option = _by_name(name, word)
            value = _value(option, word, left) if not equals else value
            given.append(GivenOption(option, value))
        elif word.startswith("-") and len(word) > 1:
            given += _by_letters(word, left)
        else:
            raise BadRequest("#SBATCH", word, "no option: they begin with - or --")
    return given


def _by_name(name: str, word: str) -> SlurmOption:
    """By the whole name, or by what only one name begins with."""
    name = ALIASES.get(name, name)
    if name in BY_NAME:
        return BY_NAME[name]
    near = [known for known in BY_NAME if known.startswith(name)] if name else []
    if len(near) != 1:
        hint = f"could be {', '.join(sorted(near)[:5])}" if near else "no option of sbatch"
        raise BadRequest("#SBATCH", word, f"{hint}; remove or correct it")
    return BY_NAME[near[0]]


def _by_letters(word: str, left: list[str]) -> list[GivenOption]:
    """`-N 2`, `-N2`, `-HQ`."""
    given, letters = [], word[1:]
    while letters:
        option = BY_LETTER.get(letters[0])
        if option is None:
            raise BadRequest("#SBATCH", word, "no option of sbatch; remove or correct it")
        letters = letters[1:]
        if not option.takes_value:
            given.append(GivenOption(option, ""))
            continue
        value = letters.removeprefix("=") if letters else _value(option, word, left)
        given.append(GivenOption(option, value))
        break
    return given


def _value(option: SlurmOption, word: str, left: list[str]) -> str:
    if not option.takes_value or not option.needs_value:
        return ""
    if not left:
        raise BadRequest("#SBATCH", word, "needs a value")
    return left.pop(0)
