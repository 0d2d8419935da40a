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


def control_plane(folder: Path, **options: object) -> ControlPlane:
    """The chosen control plane, not yet running."""
    plane = EmbeddedPlane if chosen() == EMBEDDED else ControlPlane
    return plane(folder, **options)  # type: ignore[arg-type]
