"""The base of every job plugin: one method changes pods before they are created, one names objects to create with them.

A user's own plugin is a class like these, found by entry point or in the folder given by `--plugins-dir`. Other public
methods are refused when the class is defined, so that a misspelt name is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from stromboli.api.types.volcano_job import Job, Manifest, TaskSpec
from stromboli.controllers.job.job_pods import Member, mapping


@dataclass(frozen=True, slots=True)
class NoArguments:
    """This plugin takes no arguments."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """An object that exists beside the pods while the job is live; the job owns it."""

    manifest: Manifest
    follows: str = ""
    """The field that is kept up to date (`data`); everything else stays as it was created or was changed since."""
    secrets: Callable[[], dict[str, str]] | None = None
    """Entries of that field that are generated once, when the object is created."""

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


class PluginFailure(Exception):
    """A plugin cannot do its work for this job; the text is for the user."""


class JobPlugin:
    """What a framework needs. Override what you care about."""

    name: ClassVar[str] = ""
    """As in `spec.plugins` of a job."""
    Arguments: ClassVar[type] = NoArguments
    """A frozen dataclass whose fields are made with `arg`; users write them as flags, `--port=2222`."""
    after: ClassVar[tuple[str, ...]] = ()
    """Plugins that must be called before this one."""
    is_marked: ClassVar[bool] = True
    """Whether `controlledResources` in the status of a job names it."""

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        known = {name for base in cls.__mro__[1:] for name in vars(base)}
        for name, value in vars(cls).items():
            if name.startswith("_") or name in known or not callable(value) or isinstance(value, type):
                continue
            near = difflib.get_close_matches(name, ("dress", "attachments"), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(
                f"job plugin {cls.name or cls.__name__}: {name!r} is none of dress, attachments{hint}"
                " (begin the names of helpers with an underscore)"
            )

    def dress(self, member: Member, pod: Manifest) -> None:
        """Change the manifest of a pod that is about to be created. `PluginFailure` if that cannot be done."""

    def attachments(self, job: Job) -> Iterable[Attachment]:
        """The objects to be kept beside the pods."""
        return ()


def task_named(job: Job, name: str) -> TaskSpec | None:
    return next((task for task in job.spec.tasks if task.name == name), None)


def hosts_of(job: Job, task: TaskSpec, each: bool = False) -> list[str]:
    """The DNS names of a task's pods, `host.subdomain`; a template with a hostname names one host.

    `each`: one entry for every pod nevertheless.
    """
    spec = mapping(task.template, "spec", f"spec.tasks[{task.name}].template")
    hostname, subdomain = spec.get("hostname"), spec.get("subdomain") or job.name
    if hostname and not each:
        return [f"{hostname}.{subdomain}"]
    return [f"{hostname or f'{job.name}-{task.name}-{index}'}.{subdomain}" for index in range(task.replicas)]


def first_host(job: Job, task: TaskSpec) -> str:
    """Also of a task without replicas."""
    return hosts_of(job, msgspec.structs.replace(task, replicas=1))[0]


def declares_port(container: Manifest, number: int) -> bool:
    ports = container.get("ports") or ()
    return any(isinstance(port, dict) and port.get("containerPort") == number for port in ports)
