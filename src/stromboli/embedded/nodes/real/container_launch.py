"""What a container's process is started with: command, folder, variables and cgroup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stromboli.api import names
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.peer_names import local_names
from stromboli.embedded.nodes.real.container_environment import command, environment
from stromboli.embedded.nodes.real.pod_sandbox import PodSandbox
from stromboli.embedded.nodes.real.process_guardian import ROOT
from stromboli.embedded.nodes.real.resources.cgroups import ContainerCgroup


@dataclass(frozen=True, slots=True)
class ContainerLaunch:
    """A command that runs in a container later has the same folder, variables and cgroup."""

    arguments: list[str]
    folder: Path
    variables: Mapping[str, str]
    cgroup: ContainerCgroup | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


def container_launch(sandbox: PodSandbox, spec: Content) -> ContainerLaunch:
    """`ContainerError` if the container cannot be created as its pod asks."""
    volumes = sandbox.mounted_volumes
    fixed = {ROOT: str(volumes.root), **sandbox.resources.variables(str(spec.get("name", "")))}
    variables = environment(sandbox.pod, spec, sandbox.fetch, fixed)
    for name in sorted(name for name, value in fixed.items() if variables[name] != value):
        message = f"container {spec.get('name')}: {name} is overridden, the node alone sets it"
        sandbox.record(names.WARNING, "VariableOverridden", message)
    local = local_names(sandbox.pod)
    variables = {name: local(value) for name, value in variables.items()} | fixed
    folder = volumes.working_dir(str(spec.get("workingDir") or ""))
    stdin, once, tty = (bool(spec.get(name)) for name in ("stdin", "stdinOnce", "tty"))
    arguments = [local(argument) for argument in command(spec, variables)]
    return ContainerLaunch(arguments, folder, variables, stdin=stdin, stdin_once=once, tty=tty)
