"""What a user asks for: a command or script that runs in so many pods, with so much of everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stromboli.api.predecessors import Predecessor
from stromboli.submission.job_arrays import JobArray

NAME_LENGTH = 40
"""Characters of the name of a job: those of its pods and hosts are longer, and 63 at most."""
PLUGINS = ("pytorch", "mpi", "tensorflow", "ray", "ssh")
RUN_ONCE = ("mpi", "ray")
"""Plugins that run the command in one pod, from which they start and number processes in the others."""
_NO_NAME = re.compile(r"[^a-z0-9]+")
_INTERPRETERS = re.compile(r"(?:python|bash|sh|zsh|dash|perl|ruby|node|julia|Rscript|torchrun)[0-9.]*")


@dataclass(frozen=True, slots=True)
class Script:
    """A script that is run in place of a command, with its arguments, and where its output goes."""

    text: str
    output: str = ""
    """A path with Slurm's patterns, `%x-%j.out`; nowhere but to the log if empty."""
    error: str = ""
    append: bool = False


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A checked request; `run_settings.request_of` makes it of options."""

    name: str
    command: tuple[str, ...]
    """The arguments of the script, if there is one."""
    script: Script | None = None
    title: str = ""
    """How its user calls it, if that is no name of a Job."""
    number: int = 0
    """For `SLURM_JOB_ID`, which scripts take for a number."""
    replicas: int = 1
    gang: int = 1
    """How many pods must start together."""
    tasks: int = 0
    """Processes in all pods together, as Slurm counts them; one for each pod unless given."""
    tasks_per_pod: int = 1
    cpus: str = "1"
    memory: str = ""
    gpus: Mapping[str, int] = field(default_factory=dict)
    """By resource, for each pod."""
    queue: str = ""
    priority: str = ""
    seconds: int | None = None
    """The time limit."""
    array: JobArray | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    after: tuple[Predecessor, ...] = ()
    plugin: str = ""
    workdir: str = ""
    tty: bool = False
    requeue: bool = True
    """Whether a gang that loses a pod starts again."""

    @property
    def pods(self) -> int:
        return len(self.array.indexes) if self.array is not None else self.replicas

    @property
    def has_ranks(self) -> bool:
        """Whether several processes run the command together."""
        return self.array is None and (
            self.plugin == "pytorch" or (self.tasks > 1 and self.plugin not in RUN_ONCE)
        )

    @property
    def port(self) -> int:
        """The port of rank 0, below the ephemeral ports; pods of `stromboli up --real` share those of one machine."""
        return 20_000 + self.number % 12_000


def generated_name(words: tuple[str, ...], suffix: str) -> str:
    """A name for a job after what it runs: `python train.py` is `train-SUFFIX`."""
    for word in (first for first, *_ in (word.split() or [""] for word in words)):
        base = word.rpartition("/")[2]
        if word.startswith("-") or "=" in word or _INTERPRETERS.fullmatch(base):
            continue
        return name_like(base.partition(".")[0], suffix)
    return name_like(words[0].rpartition("/")[2] if words else "", suffix)


def name_like(text: str, suffix: str) -> str:
    """The name of a job that resembles a text."""
    plain = _NO_NAME.sub("-", text.lower())[: NAME_LENGTH - len(suffix) - 1].strip("-")
    if not plain or not plain[0].isalpha():
        plain = f"job-{plain}".strip("-")[: NAME_LENGTH - len(suffix) - 1].strip("-")
    return f"{plain}-{suffix}"
