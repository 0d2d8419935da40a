"""Node usage from a file, for laptops and tests: YAML or JSON, percent by node.

    nodes:
      n1: {cpu: 85, memory: 40}
      n2: {cpu: 5, memory: 10, time: "2026-11-01T12:00:00Z"}

Without a time a measurement is as old as its last reading: it holds as long as the file exists.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.model.node_usage import NodeUsage
from stromboli.sources.usage_source import BadMetrics, Metrics, address
from stromboli.transport import LARGEST

Percent = Annotated[float, Meta(ge=0, le=100)]


class Entry(Struct, forbid_unknown_fields=True):
    """One node."""

    cpu: Percent
    memory: Percent
    time: Annotated[datetime, Meta(tz=True)] | None = None


class Content(Struct, forbid_unknown_fields=True):
    nodes: dict[str, Entry]


class File:
    """Read at every poll; a mistake makes the whole file unusable."""

    def __init__(self, metrics: Metrics):
        self._path = Path(address(metrics))

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        content = self._content()
        return {
            name: NodeUsage(entry.cpu, entry.memory, entry.time.timestamp() if entry.time else now)
            for name, entry in content.nodes.items()
            if name in nodes and math.isfinite(entry.cpu) and math.isfinite(entry.memory)
        }

    def _content(self) -> Content:
        try:
            with self._path.open("rb") as file:
                raw = file.read(LARGEST + 1)
            if len(raw) > LARGEST:
                raise BadMetrics(f"{self._path}: larger than {LARGEST} bytes")
            contents = list(documents(raw.decode()))
            if len(contents) != 1:
                raise BadMetrics(f"{self._path}: needs one document with the key nodes, has {len(contents)}")
            return msgspec.convert(contents[0], Content)
        except OSError as error:
            raise BadMetrics(f"{self._path}: {error.strerror or error}") from None
        except (UnicodeDecodeError, Unreadable, msgspec.ValidationError) as error:
            raise BadMetrics(f"{self._path}: {error}"[:300]) from None
