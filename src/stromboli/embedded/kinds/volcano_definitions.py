"""Volcano's CustomResourceDefinitions, as files of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stromboli.api.manifests.yaml_reader import documents


def volcano_definitions() -> list[dict[str, Any]]:
    """Read from the installed package, or from `deploy` in a source checkout."""
    embedded = Path(__file__).parents[1]
    folders = (embedded / "crds", embedded.parents[2] / "deploy" / "crds")
    folder = next((path for path in folders if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(f"no CustomResourceDefinitions in {folders[0]}")
    files = sorted(folder.glob("*_*.yaml"))
    return [definition for file in files for definition in documents(file.read_text())]
