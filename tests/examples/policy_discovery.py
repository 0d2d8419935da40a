"""Every policy that comes along: presets, files of the examples and of `deploy`, and what the documentation shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.policy.policy import PolicyError, load_policy
from stromboli.policy.presets import PRESETS
from tests.docs.pages import PAGES, ROOT, blocks

CONFIG_MAP_KEY = "volcano-scheduler.conf"
SECTIONS = ("actions", "tiers", "configurations")


@cache
def example_catalog() -> Catalog:
    """What is built in, and the actions and plugins of all examples."""
    folders = {file.parent for file in (ROOT / "examples").rglob("*.py")}
    catalogs = [load_catalog(), *map(load_catalog, sorted(folders))]
    return Catalog(
        {name: action for catalog in catalogs for name, action in catalog.actions.items()},
        {name: plugin for catalog in catalogs for name, plugin in catalog.plugins.items()},
    )


@cache
def policies() -> dict[str, str]:
    """The text of each policy that can be run with the extensions of the examples, by where it stands."""
    catalog = example_catalog()
    candidates = {
        **{f"preset {name}": text for name, text in PRESETS.items()},
        **{name: text for root in ("examples", "deploy") for name, text in _in_files(ROOT / root)},
        **{name: text for page in PAGES for name, text in _in_page(page)},
    }
    return {name: text for name, text in candidates.items() if _can_be_run(text, catalog)}


def _in_files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".yaml", ".conf"):
            yield from _in_text(path.relative_to(ROOT).as_posix(), path.read_text())


def _in_page(page: Path) -> Iterator[tuple[str, str]]:
    for number, block in enumerate(blocks(page.read_text())):
        if block.language == "yaml":
            yield from _in_text(f"{page.relative_to(ROOT)}, block {number}", block.body)


def _in_text(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The text itself if it is a policy or the tiers of one, or those in its ConfigMaps."""
    if not any(f"{section}:" in text for section in SECTIONS):
        return  # large manifests are slow to read
    try:
        documents: list[Any] = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return
    for document in documents:
        if not isinstance(document, dict):
            continue
        if document.get("kind") == "ConfigMap" and CONFIG_MAP_KEY in document.get("data", {}):
            yield name, document["data"][CONFIG_MAP_KEY]
        elif any(section in document for section in SECTIONS):
            yield name, text if "actions" in document else f'actions: "enqueue, allocate, backfill"\n{text}'


def _can_be_run(text: str, catalog: Catalog) -> bool:
    """A page also shows what is refused."""
    try:
        load_policy(text, catalog, lenient=True)
    except PolicyError:
        return False
    return True
