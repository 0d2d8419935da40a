"""Somebody who looks at the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.cli.live.visible_records import EVERYTHING, Visibility

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user of the cluster, with a session that has his rights and no others."""

    name: str
    """As the API server knows him; empty if that is not known."""
    key: str
    """The same for all who have the same rights."""
    session: ClusterSession
    visibility: Visibility = EVERYTHING
