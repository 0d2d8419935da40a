"""What a container's process is started with: command, folder and variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.real.container_environment import command, environment
from stromboli.embedded.nodes.real.pod_sandbox import PodSandbox
from stromboli.embedded.nodes.real.process_guardian import ROOT


@dataclass(frozen=True, slots=True)
class ContainerLaunch:
    """A command that runs in a container later has the same folder and variables."""

    arguments: list[str]
    folder: Path
    variables: Mapping[str, str]


def container_launch(sandbox: PodSandbox, spec: Content) -> ContainerLaunch:
    """`ContainerError` if the container cannot be created as its pod asks."""
    volumes = sandbox.mounted_volumes
    variables = environment(sandbox.pod, spec, sandbox.fetch, {ROOT: str(volumes.root)})
    folder = volumes.working_dir(str(spec.get("workingDir") or ""))
    return ContainerLaunch(command(spec, variables), folder, variables)
