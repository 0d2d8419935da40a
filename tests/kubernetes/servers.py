"""Which API server the tests run on: the real one, or the embedded one, as `--server` says."""

from __future__ import annotations

from pathlib import Path

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane

REAL, EMBEDDED = "real", "embedded"
_chosen = [REAL]


def choose(server: str) -> None:
    """For all tests of this run."""
    _chosen[0] = server


def chosen() -> str:
    return _chosen[0]


def control_plane(folder: Path, **how: object) -> ControlPlane:
    """A control plane of the chosen sort, not yet running."""
    sort = EmbeddedPlane if chosen() == EMBEDDED else ControlPlane
    return sort(folder, **how)  # type: ignore[arg-type]
