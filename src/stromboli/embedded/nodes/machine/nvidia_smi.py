"""The NVIDIA GPUs of this machine, as `nvidia-smi` lists them."""

from __future__ import annotations

import csv
import logging
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

log = logging.getLogger(__name__)

PROGRAM = "nvidia-smi"
FIELDS = ("index", "uuid", "name", "memory.total", "mig.mode.current")
TIMEOUT = 20.0
"""Seconds; without persistence mode the driver takes a second or two for each card."""
MAX_OUTPUT = 64 * 1024
MAX_GPUS = 128
VISIBLE = "CUDA_VISIBLE_DEVICES"
_UUID = re.compile(r"GPU-[0-9A-Za-z-]{8,60}")


class NvidiaSmiError(Exception):
    """`nvidia-smi` does not say which GPUs there are; the message says why."""


class Gpu(NamedTuple):
    """A card that works."""

    number: int
    """The index of nvidia-smi."""
    uuid: str
    name: str
    memory: int
    """MiB."""


def find_gpus(environment: Mapping[str, str] = os.environ) -> list[Gpu]:
    """The cards that work and that our own `CUDA_VISIBLE_DEVICES` shows, by index; none without the program."""
    program = shutil.which(PROGRAM, path=environment.get("PATH"))
    if program is None:
        return []
    output = _run([program, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"], environment)
    gpus, problems = parse_gpus(output)
    for problem in problems:
        _warn(problem)
    return visible_gpus(gpus, environment.get(VISIBLE))


@lru_cache(maxsize=MAX_GPUS)
def _warn(problem: str) -> None:
    """Said once, however often the cards are looked at."""
    log.warning("%s: %s; it is left out", PROGRAM, problem)


def parse_gpus(output: str) -> tuple[list[Gpu], list[str]]:
    """The cards that work, by index, and what is wrong with the others; `NvidiaSmiError` if nothing makes sense."""
    gpus: dict[str, Gpu] = {}
    problems = []
    rows = [row for row in csv.reader(output.splitlines(), skipinitialspace=True) if row]
    for row in rows[:MAX_GPUS]:
        problem = _problem(row, gpus)
        if problem:
            problems.append(f"GPU {', '.join(row)[:120]}: {problem}")
        else:
            index, uuid, name, memory = (field.strip() for field in row[:4])
            gpus[uuid] = Gpu(int(index), uuid, name, int(memory))
    if len(rows) > MAX_GPUS:
        problems.append(f"{len(rows)} GPUs, of which {MAX_GPUS} are taken: the rest")
    if rows and all(len(row) != len(FIELDS) for row in rows) and rows != [["No devices were found"]]:
        raise NvidiaSmiError(f"{PROGRAM} says {output.strip()[:200]!r}, which is no list of GPUs")
    return sorted(gpus.values()), problems


def _problem(row: list[str], known: Mapping[str, Gpu]) -> str:
    """Why a row is no card that can be given to pods; empty if it is."""
    if len(row) != len(FIELDS):
        return f"{len(FIELDS)} fields were asked for"
    index, uuid, name, memory, mig = (field.strip() for field in row)
    if not index.isdecimal() or len(index) > 4:
        return f"no index: {index[:40]!r}"
    if not _UUID.fullmatch(uuid):
        return f"no UUID: {uuid[:40]!r}, so the card is in an error state"
    if uuid in known:
        return "the UUID of another card"
    if not memory.isdecimal() or len(memory) > 12:
        return f"no memory: {memory[:40]!r}, so the card is in an error state"
    if name.startswith("[") or "ERR!" in name or not name:
        return f"no name: {name[:40]!r}, so the card is in an error state"
    if mig.lower() == "enabled":
        return "it is divided by MIG, and instances are not given out"
    return ""


def visible_gpus(gpus: list[Gpu], visible: str | None) -> list[Gpu]:
    """Those that `CUDA_VISIBLE_DEVICES` shows, by index or (the beginning of) the UUID: as in CUDA, up to the first
    entry that names none.
    """
    if visible is None:
        return gpus
    shown: list[Gpu] = []
    for entry in (entry.strip() for entry in visible.split(",")):
        matches = [
            gpu
            for gpu in gpus
            if str(gpu.number) == entry or (entry.startswith("GPU-") and gpu.uuid.startswith(entry))
        ]
        if len(matches) != 1 or matches[0] in shown:
            break
        shown += matches
    return sorted(shown)


def _run(command: list[str], environment: Mapping[str, str]) -> str:
    """The output of a command, bounded in time and size; one that does not even end when killed is left behind."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environment),
        )
    except OSError as error:
        raise NvidiaSmiError(f"{command[0]} cannot be run: {error.strerror or error}") from None
    assert process.stdout is not None
    try:
        output = _read(process.stdout.fileno(), time.monotonic() + TIMEOUT)
        code = process.wait(1.0)
    except (TimeoutError, subprocess.TimeoutExpired):
        raise NvidiaSmiError(f"{PROGRAM} does not answer within {TIMEOUT:g} s") from None
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.stdout.close()
    text = output.decode(errors="replace")
    if code:
        raise NvidiaSmiError(f"{PROGRAM} failed with exit code {code}: {text.strip()[:200]}")
    return text


def _read(descriptor: int, deadline: float) -> bytes:
    """Read to the end; `TimeoutError` after the deadline, `NvidiaSmiError` if it is too much."""
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError
            piece = os.read(descriptor, MAX_OUTPUT)
            if not piece:
                return bytes(output)
            output += piece
            if len(output) > MAX_OUTPUT:
                raise NvidiaSmiError(f"{PROGRAM} writes more than {MAX_OUTPUT} bytes")
