"""Any file of a workload, told apart by what it holds: a trace, a saved workload, or a generator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeVar, get_args

import msgspec

from stromboli.api.errors import Unreadable, quoted
from stromboli.api.manifests.yaml_reader import documents
from stromboli.policy.policy_problems import suggestion
from stromboli.simulator.workloads.arrival_processes import Process
from stromboli.simulator.workloads.distributions import Distribution
from stromboli.simulator.workloads.generated_workload import generate
from stromboli.simulator.workloads.generator_schema import (
    API_VERSION,
    GENERATOR,
    BadField,
    Elastic,
    GeneratedQueue,
    Generator,
    JobClass,
    NodeGroup,
    TimeLimit,
    Users,
    WeightedName,
    check_generator,
)
from stromboli.simulator.workloads.saved_workload import (
    MAX_SAVED_JOBS,
    WORKLOAD,
    SavedJob,
    SavedLine,
    SavedWorkload,
    joined,
    restored,
    write_json_lines,
    write_yaml,
)
from stromboli.simulator.workloads.submitted_jobs import Workload
from stromboli.simulator.workloads.swf_reader import AS_RECORDED, SwfOptions, read_swf
from stromboli.simulator.workloads.swf_writer import write_swf
from stromboli.simulator.workloads.trace_lines import Progress, no_progress, trace_lines
from stromboli.simulator.workloads.workload_errors import WorkloadError

MAX_YAML = 64 * 1024 * 1024
"""Characters of a YAML file; JSON lines may be longer."""
MAX_OBJECT_LINE = 2 * 1024 * 1024
"""Bytes of a line with an object, which is more than an API server takes."""
_RECORD = (
    "this is the record of a run, not a workload: `stromboli compare {} OTHER` puts it beside another; "
    "to run it again, give what `settings` in it names"
)
_HEAD = 64 * 1024
"""Bytes that tell what a file is."""
_KINDS = f"{WORKLOAD} or {GENERATOR} of {API_VERSION}"

T = TypeVar("T")


def read_workload(
    path: str,
    seed: int | None = None,
    swf: SwfOptions = AS_RECORDED,
    progress: Progress = no_progress,
) -> Workload:
    """The workload of a file. The seed is for a generator, the options for a trace in Standard Workload Format."""
    try:
        return _read(path, seed, swf, progress)
    except WorkloadError:
        if _is_record(path):
            raise WorkloadError(path, _RECORD.format(path)) from None
        raise


def _read(path: str, seed: int | None, swf: SwfOptions, progress: Progress) -> Workload:
    if path.removesuffix(".gz").endswith(".swf"):
        return read_swf(path, swf, progress)
    lines = trace_lines(path, MAX_OBJECT_LINE, progress=progress)
    first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    if first[1].lstrip().startswith("{"):
        return _read_json_lines(path, chain([first], lines))
    if first[1].startswith(";"):
        return read_swf(path, swf, progress)
    return _read_yaml(path, chain([first], lines), seed)


def write_workload(workload: Workload, path: str) -> list[str]:
    """Write it in the format that the name says: `.swf`, `.jsonl`, `.jsonl.gz`, `.yaml`; what is lost is told."""
    try:
        if path.endswith(".swf"):
            return write_swf(workload, path)
        if path.endswith((".jsonl", ".jsonl.gz")):
            write_json_lines(workload, path)
        elif path.endswith((".yaml", ".yml")):
            write_yaml(workload, path)
        else:
            raise WorkloadError(path, "how to write it? Give a name with .swf, .jsonl, .jsonl.gz or .yaml")
    except OSError as error:
        raise WorkloadError(path, f"cannot be written: {error.strerror}") from None
    return []


def _is_record(path: str) -> bool:
    """Whether a file looks like what `simulate --save` writes."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return head.lstrip()[:1] == b"{" and b'"capacity"' in head and b'"apiVersion"' not in head


def _read_json_lines(path: str, lines: Iterator[tuple[int, str]]) -> Workload:
    number, text = next(lines)
    head = _decoded(path, number, text, SavedWorkload)
    _check_kind(path, head.api_version, head.kind, WORKLOAD)
    return restored(joined(head, _decoded_lines(path, lines)))


def _decoded_lines(path: str, lines: Iterator[tuple[int, str]]) -> Iterator[SavedLine]:
    for count, (number, text) in enumerate(lines):
        if count > MAX_SAVED_JOBS:
            raise WorkloadError(path, f"more than {MAX_SAVED_JOBS} lines; cut it into parts", number)
        if text.strip():
            yield _decoded(path, number, text, SavedLine)


def _decoded(path: str, number: int, text: str, type: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorkloadError(path, _explained(error), number) from None


def _read_yaml(path: str, lines: Iterator[tuple[int, str]], seed: int | None) -> Workload:
    document = _document(path, lines)
    kind = document.get("kind")
    _check_kind(path, document.get("apiVersion"), kind, WORKLOAD, GENERATOR)
    try:
        if kind == WORKLOAD:
            return restored(msgspec.convert(document, SavedWorkload))
        generator = msgspec.convert(document, Generator)
        check_generator(generator)
    except (msgspec.ValidationError, BadField) as error:
        raise WorkloadError(path, _explained(error)) from None
    return generate(generator, seed)


def _document(path: str, lines: Iterator[tuple[int, str]]) -> dict[str, Any]:
    texts, size = [], 0
    for number, line in lines:
        size += len(line)
        if size > MAX_YAML:
            raise WorkloadError(path, f"more than {MAX_YAML} characters of YAML; save it as .jsonl", number)
        texts.append(line)
    try:
        found = list(documents("".join(texts)))
    except Unreadable as error:
        raise WorkloadError(path, str(error)) from None
    if len(found) != 1 or not isinstance(found[0], dict):
        raise WorkloadError(path, f"expected one document, {_KINDS}")
    return found[0]


def _check_kind(path: str, version: object, kind: object, *kinds: str) -> None:
    if version != API_VERSION or kind not in kinds:
        stated = "no kind" if kind is None else f"kind {quoted(kind)} of apiVersion {quoted(version)}"
        raise WorkloadError(path, f"{stated}; expected {_KINDS}")


def _explained(error: Exception) -> str:
    """The field first, as in the file, then what is wrong, and which names there are where one is unknown."""
    problem, at, field = str(error).rpartition(" - at `$.")
    text = problem if at else str(error)
    if unknown := _UNKNOWN_FIELD.search(text):
        text += suggestion(unknown[1], _FIELDS)
    if not at:
        return text
    field = field.rstrip("`")
    tags = _TAGS.get(field.rpartition(".")[2])
    text = f"{text[:1].lower()}{text[1:]}{f'; known: {tags}' if tags else ''}"
    return f"{field}: {text}"


def _field_names() -> set[str]:
    """The fields of all that may stand in a file."""
    plain = (Generator, JobClass, TimeLimit, Elastic, Users, WeightedName, GeneratedQueue, NodeGroup)
    schemas = (*plain, SavedWorkload, SavedLine, SavedJob, *get_args(Distribution), *get_args(Process))
    return {field.encode_name for schema in schemas for field in msgspec.structs.fields(schema)}


def _tags(union: object) -> str:
    return ", ".join(sorted(str(member.__struct_config__.tag) for member in get_args(union)))


_UNKNOWN_FIELD = re.compile("unknown field `([^`]*)`")
_FIELDS = _field_names()
_TAGS = {"distribution": _tags(Distribution), "process": _tags(Process)}
