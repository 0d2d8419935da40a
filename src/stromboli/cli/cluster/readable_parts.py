"""Reading what a user may read of a cluster; the rights that are missing for the rest are told once."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.cluster_errors import FORBIDDEN, ClusterError, refusal_text, shown
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_kinds import Manifest
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.kube.api_resources import Resource

Result = TypeVar("Result")


class ReadableParts:
    """Parts of an answer that the command can do without."""

    def __init__(self) -> None:
        self._missing: dict[str, str] = {}

    async def read(self, what: str, reading: Awaitable[Result], default: Result) -> Result:
        """What is read; the default if the user may not, or if the cluster does not have the kind."""
        try:
            return await reading
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            self._missing.setdefault(refusal_text(error), what)
        except ClusterError as error:
            self._missing.setdefault(shown(str(error)), what)
        return default

    async def list(
        self,
        what: str,
        session: ClusterSession,
        resource: Resource,
        namespace: str | None = None,
        most: int = 0,
        labels: str = "",
        fields: str = "",
    ) -> list[Manifest] | None:
        """The objects of a list, the first of them if there are more than `most`; None if the user may not."""
        listed = await self.read(what, session.list(resource, namespace, labels, fields, most), None)
        return None if listed is None else listed.items

    @property
    def is_complete(self) -> bool:
        return not self._missing

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is left out, and why."""
        return tuple(f"{what}: {why}" for why, what in self._missing.items())

    def tell(self) -> None:
        """Say on standard error what is left out, and why."""
        for gap in self.gaps:
            print_note(gap)
