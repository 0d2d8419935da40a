"""The options of `stromboli run` as text, from the command line or from comments in a script, and what they ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors, qualified_name_errors
from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.predecessors import BadPredecessors, Predecessor, parse_predecessors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.submission.bad_request import BadRequest, is_text
from stromboli.submission.job_arrays import parse_array
from stromboli.submission.job_request import (
    NAME_LENGTH,
    PLUGINS,
    JobRequest,
    Script,
    generated_name,
    name_like,
)
from stromboli.submission.slurm_values import MAX_SECONDS, NO_LIMIT, slurm_seconds

_KIND_OF_JOB = re.compile(r"(?<![^,: ])jobs?(\.batch\.volcano\.sh)?/")
MAX_COMMAND_BYTES = 96 * 1024
"""Of a command with its arguments, or of a script: Linux takes no argument above 128 KiB."""
MAX_ENV = 1000
MAX_ENV_BYTES = 256 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Options as they were written; empty where nothing was."""

    name: str = ""
    title: str = ""
    replicas: str = ""
    gang: str = ""
    gpus: str = ""
    cpus: str = ""
    memory: str = ""
    queue: str = ""
    priority: str = ""
    time: str = ""
    array: str = ""
    env: tuple[str, ...] = ()
    export: str = ""
    image: str = ""
    after: tuple[str, ...] = ()
    plugin: str = ""
    workdir: str = ""
    tty: bool = False
    output: str = ""
    error: str = ""
    append: bool = False
    requeue: bool = True
    tasks: str = ""
    tasks_per_pod: str = ""

    def over(self, others: RunSettings) -> RunSettings:
        """These settings, and those of others where these say nothing; lists are put together."""
        merged: dict[str, Any] = {}
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(others, each.name)
            if isinstance(mine, tuple):
                merged[each.name] = (*theirs, *mine)
            elif each.name == "requeue":
                merged[each.name] = mine and theirs
            else:
                merged[each.name] = mine or theirs
        if self.name:
            merged["title"] = self.title
        if self.replicas or self.tasks_per_pod:
            merged["tasks"] = self.tasks
        return replace(self, **merged)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a request takes from where it is made."""

    suffix: str = "00000"
    """Makes a generated name unlike others."""
    number: int = 1
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables of the user, for `--env NAME`."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that pods have unless told otherwise."""
    image: str = ""
    workdir: str = ""


def request_of(
    settings: RunSettings, command: Sequence[str], around: Surroundings, script: str | None = None
) -> JobRequest:
    """What the options ask for; `BadRequest` for what cannot be."""
    _check_command(command, script)
    array = parse_array(settings.array) if settings.array else None
    plugin = _plugin(settings.plugin)
    replicas = count("--replicas", settings.replicas, 1, MAX_PODS)
    if array is not None and (replicas > 1 or plugin):
        other = "--replicas" if replicas > 1 else "--plugin"
        raise BadRequest("--array", settings.array, f"goes with one pod for each index, not with {other}")
    gang = count("--gang", settings.gang, 1 if array is not None else replicas, MAX_PODS)
    pods = len(array.indexes) if array is not None else replicas
    if gang > pods:
        raise BadRequest("--gang", settings.gang, f"more than the {pods} pods that there are")
    if plugin and gang < replicas:
        raise BadRequest("--gang", settings.gang, f"--plugin {plugin} needs all of its {replicas} pods")
    per_pod = count("--tasks-per-pod", settings.tasks_per_pod, 1, 10_000)
    return JobRequest(
        name=_name(settings, command, around),
        command=tuple(command),
        script=None if script is None else Script(script, settings.output, settings.error, settings.append),
        title=settings.title.encode(errors="replace").decode(),
        number=around.number,
        replicas=replicas,
        gang=gang,
        tasks=count("--tasks", settings.tasks, pods * per_pod, MAX_PODS * 10),
        tasks_per_pod=per_pod,
        cpus=_cpus(settings.cpus),
        memory=_memory(settings.memory),
        gpus=_gpus(settings.gpus),
        queue=_object_name("--queue", settings.queue),
        priority=_object_name("--priority", settings.priority),
        seconds=time_limit(settings.time),
        array=array,
        env=_env(settings.env, around),
        image=_image(settings.image or around.image),
        after=_after(settings.after),
        plugin=plugin,
        workdir=_workdir(settings.workdir or around.workdir),
        tty=settings.tty,
        requeue=settings.requeue,
    )


def count(option: str, text: str, default: int, most: int) -> int:
    """A number of at least 1."""
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadRequest(option, text, f"must be a number from 1 to {most}")
    return int(text)


def time_limit(text: str) -> int | None:
    """`1h30m`, or as Slurm has it with a colon or days: `1:30:00`, `2-12`; None for `0` or `unlimited`."""
    if not text:
        return None
    if text.strip().lower() in NO_LIMIT or ":" in text or "-" in text.strip("-"):
        return slurm_seconds("--time", text)
    seconds = duration(text)
    if seconds is None or not 1 <= seconds <= MAX_SECONDS:
        hint = f"; {text}m are minutes, {text}s are seconds" if text.isdecimal() else ""
        raise BadRequest("--time", text, f"no time; write 90s, 1h30m, 1:30:00 or 2-12:00:00{hint}")
    return int(seconds)


def _check_command(command: Sequence[str], script: str | None) -> None:
    if not command and script is None:
        raise BadRequest("command", "", "say what is to run: stromboli run -- python train.py")
    size = sum(len(word.encode(errors="replace")) + 1 for word in command) + len((script or "").encode())
    if size > MAX_COMMAND_BYTES:
        raise BadRequest(
            "command",
            "",
            f"{size} bytes, at most {MAX_COMMAND_BYTES} travel in a job; put it into the image or a volume",
        )
    if any("\0" in word for word in (*command, script or "")):
        raise BadRequest("command", "", "has a zero byte, which no program can be given")
    for word in command:
        if not is_text(word):
            raise BadRequest("command", word, "is not text in UTF-8")


def _name(settings: RunSettings, command: Sequence[str], around: Surroundings) -> str:
    given = settings.name
    if not given:
        if settings.title:
            return name_like(settings.title, around.suffix)
        return generated_name(tuple(command), around.suffix)
    if errors := dns_label_errors(given):
        raise BadRequest("--name", given, errors[0])
    if len(given) > NAME_LENGTH:
        raise BadRequest("--name", given, f"longer than {NAME_LENGTH} characters; names of pods are longer")
    if not given[0].isalpha():
        raise BadRequest("--name", given, "must begin with a letter, as it becomes the name of a Service")
    return given


def _plugin(text: str) -> str:
    if text and text not in PLUGINS:
        raise BadRequest("--plugin", text, f"no such plugin; use {', '.join(PLUGINS)}")
    return text


def _cpus(text: str) -> str:
    if not text:
        return "1"
    try:
        amount = exact(text)
    except QuantityError as error:
        raise BadRequest("--cpus", text, f"{error}; write 4, 0.5 or 500m") from None
    if not 0 <= amount <= 100_000:
        raise BadRequest("--cpus", text, "must be between 0 and 100000")
    return text if amount else ""


def _memory(text: str) -> str:
    if not text:
        return ""
    try:
        amount = exact(text)
    except QuantityError as error:
        raise BadRequest("--memory", text, f"{error}; write 4Gi or 512Mi") from None
    if not 0 < amount <= 2**60 or amount < 1024**2:
        raise BadRequest(
            "--memory", text, "less than a MiB, or more than any machine has; write 4Gi or 512Mi"
        )
    return text


def _gpus(text: str) -> dict[str, int]:
    if not text:
        return {}
    resource, equals, number = text.rpartition("=")
    resource = resource if equals else names.NVIDIA_GPU
    if not number.isdecimal() or not number.isascii() or len(number) > 6:
        raise BadRequest("--gpus", text, "must be a number, or a resource with one: amd.com/gpu=2")
    if "/" not in resource or qualified_name_errors(resource):
        raise BadRequest("--gpus", text, f'"{resource[:60]}" is no extended resource; write amd.com/gpu=2')
    return {resource: int(number)} if int(number) else {}


def _object_name(option: str, text: str) -> str:
    if text and (errors := dns_subdomain_errors(text)):
        raise BadRequest(option, text, errors[0])
    return text


def _env(given: Sequence[str], around: Surroundings) -> dict[str, str]:
    env = dict(around.defaults)
    for entry in given:
        name, equals, value = entry.partition("=")
        if not _VARIABLE.fullmatch(name):
            raise BadRequest("--env", entry, "must be NAME=VALUE, or NAME of a variable of yours")
        if not equals and name not in around.env:
            raise BadRequest("--env", entry, f"you have no variable {name}; write {name}=VALUE")
        env[name] = value if equals else around.env[name]
        if "\0" in env[name]:
            raise BadRequest("--env", name, "has a zero byte")
    for name, value in env.items():
        if not is_text(value):
            raise BadRequest("--env", name, f"the value is not text in UTF-8; write {name}=VALUE")
    size = sum(len(name) + len(value.encode(errors="replace")) for name, value in env.items())
    if len(env) > MAX_ENV or size > MAX_ENV_BYTES:
        raise BadRequest("--env", "", f"at most {MAX_ENV} variables of {MAX_ENV_BYTES} bytes together")
    return env


def _image(text: str) -> str:
    if not text or len(text) > 500 or not text.isprintable() or " " in text:
        problem = "say in which image the command runs, or set STROMBOLI_IMAGE" if not text else "no image"
        raise BadRequest("--image", text, problem)
    return text


def _after(given: Sequence[str]) -> tuple[Predecessor, ...]:
    """Names of jobs, also as `-o name` prints them: job.batch.volcano.sh/train."""
    if not given:
        return ()
    try:
        return parse_predecessors(_KIND_OF_JOB.sub("", ",".join(given)))
    except BadPredecessors as error:
        raise BadRequest("--after", ",".join(given), str(error)) from None


def _workdir(text: str) -> str:
    if text and (not text.startswith("/") or len(text) > 4096 or "\0" in text):
        raise BadRequest("--workdir", text, "must be an absolute path")
    if not is_text(text):
        raise BadRequest("--workdir", text, "is not text in UTF-8")
    return text


def whole_cpus(text: str) -> int:
    """CPUs of a pod as Slurm counts them: at least one."""
    amount = exact(text) if text else Fraction(1)
    return max(1, -(-amount.numerator // amount.denominator))
