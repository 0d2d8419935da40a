"""What options of `sbatch` ask for, in the options of `stromboli run`, and which of them cannot be honoured.

A pod stands for a node of the allocation. With `--nodes` there are so many; with `--ntasks` alone there is one for each
task, as the scheduler then packs them as it likes. The script runs in every pod, and `srun` in it starts the tasks of
the pod.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.run_settings import RunSettings, count
from stromboli.submission.slurm_options import GivenOption, read_options
from stromboli.submission.slurm_values import slurm_bytes, slurm_seconds

MOST = 100_000
_NODES = re.compile(r"([0-9]{1,9})([km]?)(?:-([0-9]{1,9})[km]?)?", re.ASCII)


class SlurmRequest(NamedTuple):
    """The settings, and a sentence for each option that is not honoured, or not in full."""

    settings: RunSettings
    notes: list[str]
    waits: bool = False


@dataclass(slots=True)
class _Options:
    """The last value of each option; notes on the way."""

    given: dict[str, str]
    notes: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.given.get(name, "")

    def number(self, name: str) -> int | None:
        text = self.text(name)
        return count(f"#SBATCH --{name}", text, 1, MOST) if text else None

    def note(self, name: str, text: str) -> None:
        self.notes.append(f"--{name}: {text}")


def slurm_request(words: Sequence[str]) -> SlurmRequest:
    """The request of all `#SBATCH` lines."""
    given = read_options(words)
    options = _Options({option.name: option.value for option in given})
    options.notes += _unmet(given)
    nodes, tasks, each = _shape(options)
    settings = RunSettings(
        title=options.text("job-name")[:200],
        replicas=str(nodes),
        tasks=str(tasks),
        tasks_per_pod=str(each),
        cpus=str(_cpus(options, nodes, each)),
        memory=_memory(options, nodes, each),
        gpus=_gpus_setting(options, nodes, each),
        queue=_queue(options),
        time=_time(options),
        array=options.text("array"),
        export=options.text("export"),
        image=options.text("container-image").replace("#", "/"),
        after=_after(options),
        workdir=options.text("chdir"),
        output=_file(options, "output"),
        error=_file(options, "error"),
        append=options.text("open-mode").lower().startswith("a"),
        requeue="no-requeue" not in options.given,
    )
    return SlurmRequest(settings, options.notes, "wait" in options.given)


def _unmet(given: list[GivenOption]) -> list[str]:
    """Each option once that cannot be honoured."""
    reasons = {option.name: option.option.unmet for option in given if option.option.unmet}
    return [f"--{name} is not honoured: {reason}" for name, reason in reasons.items()]


def _shape(options: _Options) -> tuple[int, int, int]:
    """Pods, tasks, and tasks of each pod."""
    nodes, tasks, each = _nodes(options), options.number("ntasks"), options.number("ntasks-per-node")
    if options.text("array") and (nodes or 1) > 1:
        raise BadRequest("#SBATCH --array", options.text("array"), "goes with --nodes=1: an index is one pod")
    if nodes is None:
        if options.text("array"):
            nodes = 1
        elif each is None:
            nodes = tasks or 1
        else:
            nodes = -(-(tasks or each) // each)
    if each is None:
        each = -(-(tasks or nodes) // nodes)
    if tasks is None:
        tasks = nodes * each
    if tasks > nodes * each:
        raise BadRequest(
            "#SBATCH --ntasks", tasks, f"more than {nodes} nodes with {each} tasks each can hold"
        )
    return nodes, tasks, each


def _nodes(options: _Options) -> int | None:
    text = options.text("nodes")
    if not text:
        return None
    match = _NODES.fullmatch(text)
    least = int(match[1]) * {"": 1, "k": 1000, "m": 1_000_000}[match[2]] if match is not None else 0
    if match is None or not 1 <= least <= MOST:
        raise BadRequest("#SBATCH --nodes", text, f"must be a number from 1 to {MOST}")
    if match[3] and int(match[3]) != least:
        options.note("nodes", f"the least number counts, {least}")
    return least


def _cpus(options: _Options, nodes: int, each: int) -> int:
    per_gpu = options.number("cpus-per-gpu")
    if per_gpu is not None and not options.text("cpus-per-task"):
        gpus = _gpus(options, nodes, each)
        return max(each, per_gpu * gpus)
    return each * (options.number("cpus-per-task") or 1)


def _memory(options: _Options, nodes: int, each: int) -> str:
    """Of a pod, in MiB."""
    if text := options.text("mem"):
        size = slurm_bytes("#SBATCH --mem", text)
        if not size:
            options.note("mem", "0, all memory of a node, is not possible; say how much")
            return ""
    elif text := options.text("mem-per-cpu"):
        size = slurm_bytes("#SBATCH --mem-per-cpu", text) * _cpus(options, nodes, each)
    elif text := options.text("mem-per-gpu"):
        size = slurm_bytes("#SBATCH --mem-per-gpu", text) * _gpus(options, nodes, each)
    else:
        return ""
    return f"{-(-size // 1024**2)}Mi" if size else ""


def _gpus_setting(options: _Options, nodes: int, each: int) -> str:
    gpus = _gpus(options, nodes, each)
    for name in ("gpus", "gpus-per-node", "gpus-per-task", "gres"):
        kinds = {kind for kind, _ in _listed(name, options.text(name)) if kind}
        if kinds:
            why = "the type of a GPU is not honoured: nodes are labelled in other words; any GPU will do"
            options.note(name, f"{', '.join(sorted(kinds))}: {why}")
    return str(gpus) if gpus else ""


def _gpus(options: _Options, nodes: int, each: int) -> int:
    """Of a pod: what is said for a node, for each task, or for all nodes together."""
    for name, factor in (("gpus-per-node", 1), ("gres", 1), ("gpus-per-task", each)):
        listed = _listed(name, options.text(name))
        if listed:
            return factor * sum(number for _, number in listed)
    total = sum(number for _, number in _listed("gpus", options.text("gpus")))
    if total % nodes:
        problem = f"can not be divided evenly among {nodes} nodes; use --gpus-per-node"
        raise BadRequest("#SBATCH --gpus", options.text("gpus"), problem)
    return total // nodes


def _listed(name: str, text: str) -> list[tuple[str, int]]:
    """`4`, `a100:4`, and for gres `gpu:4`, `gpu:a100:4`, of which several are separated by commas."""
    listed = []
    for part in filter(None, text.split(",")):
        words = part.split(":")
        if name == "gres":
            first, *words = words
            first = first.removeprefix("gres/")
            if first == "none":
                continue
            if first != "gpu":
                raise BadRequest(
                    "#SBATCH --gres",
                    part,
                    f"only gpu is known; give other resources in a manifest, not {first}",
                )
            words = words or ["1"]
        kind, number = (words[0], words[1]) if len(words) == 2 else ("", words[0])
        if len(words) == 1 and not number.isdecimal():
            kind, number = number, "1"
        if len(words) > 2 or not (number.isascii() and number.isdecimal() and len(number) < 7):
            raise BadRequest(f"#SBATCH --{name}", part, "must be a number, or a type and a number: a100:4")
        listed.append((kind, int(number)))
    return listed


def _queue(options: _Options) -> str:
    first, comma, _ = options.text("partition").partition(",")
    if comma:
        options.note("partition", f"a job is in one queue: {first}")
    return first


def _time(options: _Options) -> str:
    text = options.text("time")
    seconds = slurm_seconds("#SBATCH --time", text) if text else None
    return f"{seconds}s" if seconds is not None else ""


def _after(options: _Options) -> tuple[str, ...]:
    text = options.text("dependency")
    kept = []
    for part in filter(None, text.split(",")):
        if part == "singleton":
            options.note("dependency", "singleton is not honoured; name the jobs to wait for")
            continue
        if "+" in part:
            raise BadRequest("#SBATCH --dependency", part, "a delay (+) is not possible; leave it out")
        if part.startswith("aftercorr"):
            raise BadRequest("#SBATCH --dependency", part, "arrays are awaited as a whole; use afterok")
        kept.append(part)
    return tuple(kept)


def _file(options: _Options, name: str) -> str:
    text = options.text(name)
    return "" if text in ("none", "/dev/stdout", "/dev/stderr") else text
