"""The flags of Volcano's scheduler (spec 05 1.1), with its names, defaults and way of writing them.

A flag is `--name value`, `--name=value`, or `--name` alone where it is a yes or no; one dash does as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from stromboli.api import names, text


class BadFlag(ValueError):
    """A flag that is not known, or a value that makes no sense; says the way out."""


def _text(value: str) -> str:
    return value


def _whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise BadFlag("is not a whole number") from None


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadFlag("is not a number") from None


def _yes(value: str) -> bool:
    said = text.boolean(value)
    if said is None:
        raise BadFlag("is neither true nor false")
    return said


def _duration(value: str) -> float:
    seconds = text.duration(value)
    if seconds is None or seconds < 0:
        raise BadFlag("is no duration such as 1s or 500ms")
    return seconds


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _path(value: str) -> Path | None:
    return Path(value) if value else None


def _gates(value: str) -> tuple[tuple[str, bool], ...]:
    found = []
    for part in _listed(value):
        name, _, wanted = part.partition("=")
        found.append((name, _yes(wanted)))
    return tuple(found)


def flag(parse: Callable[[str], Any], default: Any, about: str, name: str = "") -> Any:
    """A flag, known by the name of its field unless it has another one."""
    return field(default=default, metadata={"parse": parse, "about": about, "name": name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the flags say."""

    master: str = flag(_text, "", "Address of the API server; overrides the one in the kubeconfig file")
    kubeconfig: str = flag(_text, "", "Kubeconfig file; without it, the pod's own account")
    kube_api_qps: float = flag(_number, 2000.0, "Requests per second, for each of two clients")
    kube_api_burst: int = flag(_whole, 2000, "Requests at once before that limit holds")
    scheduler_name: tuple[str, ...] = flag(
        _listed, (names.SCHEDULER_NAME,), "Pods that ask for one of these schedulers are ours; repeatable"
    )
    scheduler_conf: Path | None = flag(_path, None, "The policy file; watched while we run")
    disable_default_scheduler_config: bool = flag(
        _yes, False, "Exit rather than fall back to the built-in policy"
    )
    lenient_policy: bool = flag(
        _yes, True, "Ignore with a warning what Volcano ignores in a policy; false refuses it"
    )
    schedule_period: float = flag(_duration, 1.0, "Rest from the end of a cycle to the start of the next")
    default_queue: str = flag(_text, names.DEFAULT_QUEUE, "Queue of PodGroups that name none")
    priority_class: bool = flag(_yes, True, "Read PriorityClasses; false gives every job priority 0")
    node_selector: tuple[str, ...] = flag(
        _listed, (), "key:value; only nodes with one of these labels are used; repeatable"
    )
    resource_sync_timeout: float = flag(
        _duration, 60.0, "How long to wait for the first lists; 0: not at all"
    )
    plugins_dir: Path | None = flag(_path, None, "Folder of Python files with own actions and plugins")
    listen_address: str = flag(_text, ":8080", "Where metrics and debugging are served")
    enable_metrics: bool = flag(_yes, False, "Serve /metrics")
    enable_pprof: bool = flag(_yes, False, "Serve /debug/...: consistency, dump, stacks")
    enable_healthz: bool = flag(_yes, False, "Serve /healthz and /readyz")
    healthz_address: str = flag(_text, ":11251", "Where health is served")
    ca_cert_file: str = flag(_text, "", "Authority of health's clients, for TLS on the health endpoint")
    tls_cert_file: str = flag(_text, "", "Certificate of the health endpoint")
    tls_private_key_file: str = flag(_text, "", "Its key")
    cache_dumper: bool = flag(_yes, True, "SIGUSR1 and SIGUSR2 write the whole state to a file")
    cache_dump_dir: Path = flag(Path, Path("/tmp"), "Folder for such files")
    leader_elect: bool = flag(_yes, True, "Elect one of several schedulers by a lease")
    leader_elect_lease_duration: float = flag(_duration, 15.0, "How long others wait for a silent leader")
    leader_elect_renew_deadline: float = flag(_duration, 10.0, "How long a leader tries to renew")
    leader_elect_retry_period: float = flag(_duration, 2.0, "Rest between two tries")
    leader_elect_resource_name: str = flag(_text, names.SCHEDULER_NAME, "Name of the lease")
    leader_elect_resource_namespace: str = flag(_text, "volcano-system", "Namespace of the lease")
    lock_object_namespace: str = flag(_text, "", "Deprecated; overrides the namespace of the lease")
    feature_gates: tuple[tuple[str, bool], ...] = flag(_gates, (), "Name=true,Name=false")
    log_format: str = flag(_text, "text", "text (logfmt) or json")
    v: int = flag(_whole, 0, "How much is logged: 4 and more shows details")
    shutdown_timeout: float = flag(_duration, 20.0, "How long writes in flight may take after a stop signal")
    gang_bind_timeout: float = flag(
        _duration, 60.0, "Evict a gang of which only a part could be bound for so long; 0: never"
    )
    writes_in_flight: int = flag(_whole, 64, "Requests that may be under way at once")
    notes: tuple[str, ...] = ()
    """What was accepted and has no effect."""

    def gate(self, name: str, default: bool) -> bool:
        """Whether a feature is on."""
        return dict(self.feature_gates).get(name, default)

    @property
    def lease_namespace(self) -> str:
        return self.lock_object_namespace or self.leader_elect_resource_namespace


_VOLUMES = "volumes are not bound by this version"
ACCEPTED: dict[str, str] = {
    "resync-period": "watches resume by themselves",
    "csi-storage": _VOLUMES,
    "ignored-provisioners": _VOLUMES,
    "node-worker-threads": "nodes are taken in as they come",
    "gate-removal-worker-num": "the queue-admission gate is not removed by this version",
    "minimum-feasible-nodes": "all nodes are considered",
    "minimum-percentage-nodes-to-find": "all nodes are considered",
    "percentage-nodes-to-find": "all nodes are considered",
    "scheduler-sharding-mode": "node shards are not read by this version",
    "scheduler-sharding-name": "node shards are not read by this version",
    "leader-elect-resource-lock": "a Lease is always used",
    "log-flush-frequency": "every line is written at once",
    "logtostderr": "logs go to standard error",
    "alsologtostderr": "logs go to standard error",
    "stderrthreshold": "logs go to standard error",
    "log-dir": "logs go to standard error",
    "log-file": "logs go to standard error",
    "vmodule": "-v holds for all",
    "skip-headers": "lines have a time and a level",
    "one-output": "logs go to standard error",
}
"""Flags of Volcano's that are taken and do nothing, and why."""
_QUIET = {"scheduler-sharding-mode": "none", "leader-elect-resource-lock": "leases", "csi-storage": "true"}
"""Values of these that ask for nothing, so nothing need be said."""
_SWITCHES = {"csi-storage", "logtostderr", "alsologtostderr", "skip-headers", "one-output"}


def parse(arguments: Sequence[str]) -> Options:
    """What the command line says; `BadFlag` if it makes no sense."""
    flags = {_name(one): one for one in fields(Options) if one.metadata}
    values: dict[str, Any] = {}
    notes: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise BadFlag(f"{word}: flags begin with --")
        name, has_value, value = word.lstrip("-").replace("_", "-").partition("=")
        if has_value:
            value = word.partition("=")[2]
        known = flags.get(name)
        if known is None and name not in ACCEPTED:
            raise BadFlag(_unknown(name, [*flags, *ACCEPTED]))
        switch = known.metadata["parse"] is _yes if known else name in _SWITCHES
        if not has_value:
            if not switch and not left:
                raise BadFlag(f"--{name} needs a value")
            value = "true" if switch else left.pop(0)
        if known is None:
            if value != _QUIET.get(name):
                notes.append(f"--{name}={value} has no effect: {ACCEPTED[name]}")
            continue
        try:
            parsed = known.metadata["parse"](value)
        except BadFlag as error:
            raise BadFlag(f"--{name}: {value!r} {error}") from None
        if isinstance(parsed, tuple):
            parsed = (*values.get(known.name, ()), *parsed)
        values[known.name] = parsed
    return Options(**values, notes=tuple(notes))


def usage() -> str:
    """All flags, one per line."""
    lines = []
    for one in fields(Options):
        if one.metadata:
            lines.append(f"  --{_name(one):34}{one.metadata['about']} (default {_shown(one)})")
    accepted = ", ".join(f"--{name}" for name in ACCEPTED)
    return "\n".join(lines) + f"\n\nAccepted without effect, as Volcano has them: {accepted}"


def _shown(one: Any) -> str:
    default = one.default if one.default is not MISSING else ""
    if one.metadata["parse"] is _duration:
        return f"{default:g}s"
    if isinstance(default, tuple):
        return ",".join(map(str, default)) or "none"
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default or "none")


def _name(one: Any) -> str:
    return str(one.metadata["name"] or one.name.replace("_", "-"))


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"--{name} is not known" + (f"; did you mean --{near[0]}?" if near else "; see --help")
