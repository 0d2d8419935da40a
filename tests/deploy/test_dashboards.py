"""Dashboards: of metrics that are told, in Grafana's words, and of use with Volcano's scheduler."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.dashboard_panels import CONTROLLERS_ONLY, OWN_ONLY, WIDTH
from stromboli.cli.metrics import process_lines, scheduler_lines
from tests.deploy.known_metrics import known_metrics
from tests.deploy.manifests import DEPLOY, build, only
from tests.deploy.promql import Expression

CONFIG_MAP = only(build(DEPLOY / "monitoring"), "ConfigMap", "stromboli-dashboards")
PAGES: dict[str, dict[str, Any]] = {name: json.loads(text) for name, text in CONFIG_MAP["data"].items()}
PANELS = [
    pytest.param(page, panel, id=f"{name}-{panel['title']}")
    for name, page in PAGES.items()
    for panel in page["panels"]
    if panel["type"] != "row"
]
KINDS = {"timeseries", "stat"}
UNITS = {"short", "ms", "s", "bytes", "percentunit", "opm"}
MOST_BYTES = 200_000
"""`kubectl apply` keeps a copy in an annotation, which may have 256 KiB."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]


def expressions(panel: Json) -> list[Expression]:
    return [
        Expression(target["expr"].replace("$__rate_interval", "5m"), known_metrics())
        for target in panel["targets"]
    ]


def test_grafana_finds_all_dashboards() -> None:
    assert CONFIG_MAP["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert PAGES.keys() == {path.name for path in (DEPLOY / "monitoring" / "dashboards").glob("*.json")}
    assert sum(map(len, CONFIG_MAP["data"].values())) < MOST_BYTES
    for key in ("uid", "title"):
        assert len({page[key] for page in PAGES.values()}) == len(PAGES) == 4


@pytest.mark.parametrize("name", PAGES)
def test_a_dashboard_has_a_source_to_choose_and_panels_that_do_not_overlap(name: str) -> None:
    page = PAGES[name]
    assert f"{page['uid']}.json" == name
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", page["uid"])
    assert page["schemaVersion"] >= 36
    assert page["title"]
    first, *variables = page["templating"]["list"]
    assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "prometheus")
    for variable in variables:
        asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"])
        assert asked, variable
        assert asked[2] in known_metrics()[asked[1]].labels | {"job"}
        assert variable["query"]["query"] == variable["definition"]
        assert variable["datasource"] == SOURCE
    ids = [panel["id"] for panel in page["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [cell for panel in page["panels"] for cell in _cells(panel["gridPos"])]
    assert len(set(cells)) == len(cells)


def _cells(place: Json) -> list[tuple[int, int]]:
    assert place["x"] + place["w"] <= WIDTH
    return [
        (x, y)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]


@pytest.mark.parametrize(("page", "panel"), PANELS)
def test_a_panel_is_complete(page: Json, panel: Json) -> None:
    assert panel["type"] in KINDS
    assert panel["title"]
    assert panel["description"]
    assert panel["datasource"] == SOURCE
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["targets"]
    assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH"[: len(panel["targets"])])
    assert all(target["datasource"] == SOURCE for target in panel["targets"])
    titles = [other["title"] for other in page["panels"] if other["type"] != "row"]
    assert titles.count(panel["title"]) == 1


@pytest.mark.parametrize(("page", "panel"), PANELS)
def test_a_panel_asks_for_metrics_and_labels_that_are_told(page: Json, panel: Json) -> None:
    variables = {variable["name"] for variable in page["templating"]["list"]}
    for target, expression in zip(panel["targets"], expressions(panel), strict=True):
        assert expression.result.type == "vector"
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert shown <= expression.result.labels
        assert set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"} <= variables


@pytest.mark.parametrize(("page", "panel"), PANELS)
def test_a_panel_that_volcano_does_not_fill_says_so(page: Json, panel: Json) -> None:
    told_by_volcano = any(
        not any(metric.startswith("stromboli_") for metric in expression.metrics)
        for expression in expressions(panel)
    )
    has_other = " or " in panel["targets"][0]["expr"]
    says_so = OWN_ONLY in panel["description"] or CONTROLLERS_ONLY in panel["description"]
    never_counted = "volcano_schedule_attempts_total" in panel["targets"][0]["expr"]
    assert says_so != ((told_by_volcano or has_other) and not never_counted)


def test_red_lines_are_where_stromboli_metrics_no_longer_says_fine() -> None:
    drawn = {
        step["value"]
        for page in PAGES.values()
        for panel in page["panels"]
        if panel["type"] != "row"
        for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
    }
    seconds = {scheduler_lines.FINE_OLDEST_SECONDS, scheduler_lines.FINE_LAG_SECONDS}
    milliseconds = {
        1000 * fine
        for fine in (
            scheduler_lines.FINE_CYCLE_SECONDS,
            scheduler_lines.FINE_WAIT_SECONDS,
            scheduler_lines.FINE_BIND_SECONDS,
            process_lines.FINE_CREATION_SECONDS,
        )
    }
    shares_and_counts = {0.5, 1.0, 2.0}
    assert drawn == seconds | milliseconds | shares_and_counts


@pytest.mark.programs("promtool")
def test_prometheus_itself_reads_the_expressions(tmp_path: Path) -> None:
    texts = [
        target["expr"].replace("$__rate_interval", "5m")
        for page in PAGES.values()
        for panel in page["panels"]
        for target in panel.get("targets", [])
    ]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(texts)]
    file = tmp_path / "expressions.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
