"""Manifests checked offline: all that an API server and admission would refuse, for all objects at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.admission.rules.admission_table import admit
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.api import names
from stromboli.api.decoding import decode_as, subject_of
from stromboli.api.errors import BadObject, Unreadable, printable
from stromboli.api.manifests.device_versions import content_as_v1
from stromboli.api.manifests.manifest_sources import find_files, read_sources
from stromboli.api.object_checks import check_object
from stromboli.api.schemas.schema_problems import Problem, sentence
from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.scheduling import HyperNode, Queue, QueueStatus
from stromboli.cli.hyper_node_check import HyperNodeCheck
from stromboli.cli.manifest_demands import ignored_demands
from stromboli.cli.manifest_warnings import odd_requests
from stromboli.embedded.kinds.offline_schemas import OfflineSchemas

_JOBS = "batch.volcano.sh"
_VOLCANO = ".volcano.sh"
_NO_OBJECT = "no Kubernetes object: apiVersion and kind are needed"
_TOO_DEEP = "nested too deeply"
_UNKNOWN = "kubectl refuses it, other clients lose it without a word"


class Finding(NamedTuple):
    """One problem of one object of one file."""

    file: str
    subject: str
    problem: Problem

    def __str__(self) -> str:
        return ": ".join(
            printable(part) for part in (self.file, self.subject, self.problem.with_remedy) if part
        )

    def as_json(self) -> dict[str, Any]:
        problem = self.problem
        return {
            "file": self.file,
            "object": self.subject,
            "field": problem.field,
            "value": problem.value,
            "problem": str(problem).strip(" ;"),
            "wayOut": problem.remedy,
        }


class LintResult(NamedTuple):
    """How many objects were checked, the problems, what has no effect, and the kinds that were passed over."""

    checked: int
    unknown: Counter[str]
    """`PriorityClass of scheduling.k8s.io/v1beta1`, or that a document has no kind, and how often."""
    findings: list[Finding]
    warnings: list[Finding]

    @property
    def passed_over(self) -> int:
        return self.unknown.total()


class _Manifest(NamedTuple):
    where: str
    content: dict[str, Any]
    written_as: str = ""
    """The older version of its API in which the file has it."""

    @property
    def version(self) -> str:
        version = self.content.get("apiVersion")
        return version if isinstance(version, str) else ""

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        kind = self.content.get("kind")
        return kind if isinstance(kind, str) else ""

    @property
    def is_native_group(self) -> bool:
        return (self.group, self.kind) == ("scheduling.k8s.io", "PodGroup")


def lint_paths(paths: Iterable[str], settings: Settings) -> LintResult:
    """The problems of the objects in files and folders; unknown kinds are passed over."""
    findings: list[Finding] = []
    warnings: list[Finding] = []
    manifests = list(_read(paths, findings))
    queues = _queues(manifests)
    schemas = OfflineSchemas()
    unknown: Counter[str] = Counter()
    for manifest in manifests:
        subject = subject_of(manifest.kind, manifest.content.get("metadata"))
        known = schemas.knows(manifest.content)
        try:
            problems = list(
                _problems(manifest, schemas, queues, settings) if known else _unknown_kind(manifest, schemas)
            )
        except RecursionError:
            problems = [sentence(_TOO_DEEP)]
        if not known and not problems and not manifest.is_native_group:
            unknown[_description(manifest)] += 1
        findings += [Finding(manifest.where, subject, problem) for problem in problems]
        if known:
            of_volcano = manifest.group.endswith(_VOLCANO)
            ignored = ignored_demands(manifest.content, of_volcano, settings.scheduler_names)
            told = (*_older(manifest), *ignored, *odd_requests(manifest.content, of_volcano))
            warnings += [Finding(manifest.where, subject, problem) for problem in told]
    _lint_hyper_nodes(manifests, findings, warnings)
    return LintResult(len(manifests) - unknown.total(), unknown, findings, warnings)


def _lint_hyper_nodes(
    manifests: Iterable[_Manifest], findings: list[Finding], warnings: list[Finding]
) -> None:
    """What is wrong with the tree that the HyperNodes of the files form."""
    kind = ("topology.volcano.sh", HyperNode.__name__)
    sources = [manifest for manifest in manifests if (manifest.group, manifest.kind) == kind]
    check = HyperNodeCheck(manifest.content for manifest in sources)
    for manifest in sources:
        metadata = manifest.content.get("metadata")
        subject = subject_of(manifest.kind, metadata)
        name = str(metadata.get("name")) if isinstance(metadata, dict) else ""
        findings += [Finding(manifest.where, subject, problem) for problem in check.problems(name)]
        warnings += [Finding(manifest.where, subject, problem) for problem in check.warnings(name)]


def _description(manifest: _Manifest) -> str:
    if not manifest.kind or not manifest.version:
        return "without a kind"
    return f"{manifest.kind[:63]} of {manifest.version[:128]}"


def _read(paths: Iterable[str], findings: list[Finding]) -> Iterator[_Manifest]:
    for path in paths:
        try:
            files = find_files(path)
        except Unreadable as error:
            findings.append(Finding(path, "", sentence(str(error))))
            continue
        for file in files:
            try:
                for source in read_sources(file):
                    content = msgspec.json.decode(source.raw)
                    manifest = _manifest(source.where, content if isinstance(content, dict) else {})
                    if file == path and not (manifest.kind and manifest.version):
                        findings.append(Finding(source.where, "", sentence(_NO_OBJECT)))
                    else:  # a folder may well hold other files
                        yield manifest
            except (Unreadable, msgspec.DecodeError, RecursionError) as error:
                findings.append(Finding(file, "", sentence(str(error))))


def _manifest(where: str, content: dict[str, Any]) -> _Manifest:
    current = content_as_v1(content)
    return _Manifest(where, current, "" if current is content else str(content["apiVersion"]))


def _older(manifest: _Manifest) -> Iterator[Problem]:
    """Fields are told where the current version has them."""
    if manifest.written_as:
        text = f"{manifest.written_as} is an older version, checked as {manifest.version}, which has other fields"
        yield sentence(text, "apiVersion", f"write it in {manifest.version}", manifest.written_as)


def _queues(manifests: Iterable[_Manifest]) -> QueueIndex:
    """The queues of the files, and those that always exist, all of them open."""
    known = QueueIndex(
        Queue(metadata=ObjectMeta(name=name), status=QueueStatus(state="Open"))
        for name in (names.ROOT_QUEUE, names.DEFAULT_QUEUE)
    )
    for manifest in manifests:
        if manifest.kind == "Queue" and manifest.group == "scheduling.volcano.sh":
            try:
                known.put(decode_as(Queue, msgspec.json.encode(manifest.content)))
            except (BadObject, RecursionError):
                continue  # reported when its turn comes
    return known


def _problems(
    manifest: _Manifest, schemas: OfflineSchemas, queues: QueueIndex, settings: Settings
) -> Iterator[Problem]:
    """First what the schema says, then the rules, except for fields that the schema has complained about."""
    content, group, kind = _named(manifest.content), manifest.group, manifest.kind
    result = admit(group, kind, content, _context(content, queues, settings))
    reported = set()
    for path in schemas.validate(content).unknown:
        meant = schemas.suggested_field(content, path)
        question = f', did you mean "{meant}"?' if meant else ""
        yield sentence(f'unknown field "{path}"{question}', path, _UNKNOWN)
    for problem in schemas.validate(result.object).problems:
        reported.add(problem.field)
        yield problem
    rules = list(result.report)
    if kind == "JobTemplate" or (group, kind) == (_JOBS, "CronJob"):
        rules += _problems_inside(manifest, queues, settings)
    if manifest.is_native_group:
        rules += _refused_by_scheduler(manifest)
    yield from (problem for problem in rules if problem.field not in reported)


def _named(content: dict[str, Any]) -> dict[str, Any]:
    """With a name as long as the one that an API server would generate."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") or not metadata.get("generateName"):
        return content
    return {**content, "metadata": {**metadata, "name": f"{metadata['generateName']}xxxxx"}}


def _unknown_kind(manifest: _Manifest, schemas: OfflineSchemas) -> Iterator[Problem]:
    """An unknown kind of Volcano's groups is a mistake; those of other groups may well exist.

    Of native groups in a version without a schema, it is told what the scheduler would refuse.
    """
    if manifest.is_native_group:
        yield from _refused_by_scheduler(manifest)
    kinds = schemas.kinds_of(manifest.group) if manifest.group.endswith(_VOLCANO) else []
    if kinds:
        text = f'there is no kind "{manifest.kind}" in version "{manifest.version}"'
        yield sentence(text, "kind", f"known: {', '.join(kinds)}", manifest.kind)


def _refused_by_scheduler(group: _Manifest) -> Iterator[Problem]:
    """What the scheduler cannot do for a native group."""
    try:
        check_object(decode_as(NativePodGroup, msgspec.json.encode(_named(group.content))))
    except BadObject as error:
        yield sentence(f"{error.field}: {error.problem}", error.field)


def _problems_inside(manifest: _Manifest, queues: QueueIndex, settings: Settings) -> Iterator[Problem]:
    """The problems of the jobs that will be made from this template."""
    spec = manifest.content.get("spec")
    inside, spec = ("", spec) if manifest.kind == "JobTemplate" else ("spec.jobTemplate.", _template(spec))
    job = {"metadata": {"name": "job"}, "spec": spec}
    for problem in admit(_JOBS, "Job", job, _context(job, queues, settings)).report:
        yield problem._replace(field=f"{inside}{problem.field}")


def _template(spec: Any) -> Any:
    template = spec.get("jobTemplate") if isinstance(spec, dict) else None
    return template.get("spec") if isinstance(template, dict) else None


def _context(content: dict[str, Any], queues: QueueIndex, settings: Settings) -> Context:
    """Queues are checked only if the files define them: others may well exist in the cluster."""
    spec = content.get("spec")
    named = [spec.get("queue"), spec.get("parent")] if isinstance(spec, dict) else []
    known = all(not name or (isinstance(name, str) and queues.get(name) is not None) for name in named)
    return Context(queues if known else None, settings=settings)
