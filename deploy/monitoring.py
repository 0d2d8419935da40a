"""Writes what is made in `deploy/monitoring`: `python -m deploy.monitoring`, or `make monitoring`.

The PrometheusRule is made of alert-rules.yml, which Prometheus reads as it is; dashboards of `deploy/dashboards.py`. A
test fails when a file is out of date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from deploy.dashboards import DASHBOARDS

FOLDER = Path(__file__).parent / "monitoring"
RULES = FOLDER / "alert-rules.yml"
HEADER = "# Written by `make monitoring` from alert-rules.yml. For Prometheus' operator.\n"
LABELS = {"app.kubernetes.io/name": "stromboli", "app.kubernetes.io/component": "monitoring"}


class Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)


def main() -> None:
    """Bring every file up to date."""
    for name, text in generated().items():
        file = FOLDER / name
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(f"{name}: updated")


def generated() -> dict[str, str]:
    """The text of each file by its path in the folder."""
    rule: dict[str, Any] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "stromboli", "labels": LABELS},
        "spec": yaml.load(RULES.read_text(), yaml.CSafeLoader),
    }
    files = {"prometheus-rule.yaml": HEADER + yaml.dump(rule, Dumper=Dumper, sort_keys=False, width=110)}
    for dashboard in DASHBOARDS:
        files[f"dashboards/{dashboard.uid}.json"] = json.dumps(dashboard.json(), indent=1) + "\n"
    return files


if __name__ == "__main__":
    main()
