"""What commands of Volcano's command line are given: a session with the cluster, and their flags."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from stromboli.cli.cluster.cluster_choice import find_api_server
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.vcctl.vcctl_flags import Flag, Words
from stromboli.embedded.running_clusters import RunningCluster
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access, find_access


class VcctlError(Exception):
    """The command fails; the text is that of Volcano."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a command."""

    session: ClusterSession
    words: Words

    def __getitem__(self, flag: str) -> str:
        return self.words.values[flag]

    def is_given(self, flag: str) -> bool:
        return flag in self.words.given

    def number(self, flag: str) -> int:
        return int(self.words.values[flag])

    def switch(self, flag: str) -> bool:
        return self.words.values[flag] == "true"

    @property
    def name(self) -> str:
        """By its flag, else the first word that is no flag."""
        return self["name"] or next(iter(self.words.rest), "")

    async def existing(self, resource: Resource, name: str, namespace: str | None = None) -> Manifest:
        """An object; that there is none is told as Volcano's does."""
        found = await self.session.find(resource, name, namespace)
        if found is None:
            raise VcctlError(f'{resource.plural}.{resource.group} "{name}" not found')
        return found


Work = Callable[[Call], Awaitable[None]]


class VcctlCommand(NamedTuple):
    """A command: what it does, its flags, and the work."""

    help: str
    flags: tuple[Flag, ...]
    work: Work


def access_of(words: Words) -> tuple[Access, RunningCluster | None]:
    """The cluster of the flags, else the one that every command takes."""
    kubeconfig, master = words.values["kubeconfig"], words.values["master"]
    if kubeconfig or master:
        return find_access(kubeconfig, master), None
    return find_api_server(None, "", "")
