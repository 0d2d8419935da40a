"""Writes `deploy/crds` from the definitions of the package: `python deploy/crds.py`, or `make crds`.

A test fails when a file is out of date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.schemas.volcano_definitions import definition_files, resolved

FOLDER = Path(__file__).parent / "crds"
HEADER = "# Written by `make crds` from src/stromboli/api/schemas/definitions/{name}.\n"


class Dumper(yaml.CSafeDumper):
    """Block style without anchors, which not every reader of manifests knows."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def main() -> None:
    """Bring every file up to date."""
    for name, text in generated().items():
        file = FOLDER / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"{file.name}: updated")


def generated() -> dict[str, str]:
    """The text of each file by its name."""
    return {name: HEADER.format(name=name) + _manifest(text) for name, text in definition_files().items()}


def _manifest(text: str) -> str:
    """A definition with its comment at the top and all that it refers to."""
    (definition,) = documents(text)
    comment = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#"))
    return comment + yaml.dump(resolved(definition), Dumper=Dumper, sort_keys=False, width=110)


if __name__ == "__main__":
    main()
