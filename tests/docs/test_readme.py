"""What the README claims is true today: figures, counts, the picture, and that it stays short."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from bench import proof
from bench.proof import CYCLES, Figure, Proof
from bench.targets import TARGETS
from tests.docs.pages import ROOT, blocks
from tests.embedded.up_process import Up

README = (ROOT / "README.md").read_text()
CONFORMANCE = ROOT / "tests" / "conformance"
MAX_WORDS = 650
"""Of its prose, without tables and code."""


def _script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("script", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_figures_is_what_was_measured() -> None:
    assert proof.with_table(README, proof.read()) == README


def test_a_table_of_figures_shows_units_and_marks_what_was_not_measured() -> None:
    made = Proof(
        "2026-11-19",
        "0123abcd",
        "",
        1,
        [Figure("binds", "/s", 1508.2, 438.0), Figure("cycle", "s", 0.2931, None, "31 s")],
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in proof.table(made).splitlines()[2:]
    ]
    assert rows == [["binds", "1,508/s", "438/s", "-"], ["cycle", "0.29 s", "-", "31 s"]]


@pytest.mark.parametrize(
    ("machine", "runs", "expected"),
    [
        ("Python 3.11.7, 2 cores, x86", 1, "one run, commit `0123abcd`, two cores"),
        ("Python 3.11.7, 16 cores, x86", 3, "medians of 3 runs, commit `0123abcd`, 16 cores"),
    ],
)
def test_figures_come_with_their_date_runs_commit_and_cores(machine: str, runs: int, expected: str) -> None:
    made = Proof("2026-11-19", "0123abcd", machine, runs, [])
    assert proof.measured(made) == f"Measured on 2026-11-19, {expected}."
    before = "<!-- proof -->\nolder\n<!-- end of proof -->"
    assert f"\n{proof.measured(made)}\n<!-- end of proof -->" in proof.with_table(before, made)


def test_the_figures_have_a_method() -> None:
    assert "(docs/performance.md#the-figures-of-the-readme)" in README
    page = (ROOT / "docs" / "performance.md").read_text()
    method = page.partition("\n## The figures of the README\n")[2].partition("\n## ")[0]
    assert "make bench-proof" in method
    assert proof.read().commit in method
    assert proof.read().machine in " ".join(method.split())


def test_the_limits_name_the_figures_that_are_worse_than_those_of_kube_scheduler() -> None:
    *_, gangs, singles = proof.read().figures
    assert (gangs.unit, singles.unit) == ("ms", "ms")
    pairs = [f"{figure.ours:.0f} against {figure.kube_scheduler:.0f} ms" for figure in (singles, gangs)]
    limits = " ".join(README.partition("## Limits")[2].split())
    assert f"pods and gangs wait longer than with kube-scheduler ({', '.join(pairs)})" in limits


def test_the_figures_of_volcano_are_those_of_the_benchmark() -> None:
    volcano = {figure.what: figure.volcano for figure in proof.read().figures if figure.volcano}
    assert volcano == {what: f"{TARGETS[name].volcano} s" for name, what in CYCLES.items()}


def test_the_versions_are_those_of_the_build() -> None:
    real_server = (ROOT / "tests/kubernetes/kubetest/go.mod").read_text()
    kubernetes = re.search(r"k8s\.io/kubernetes v(\d+\.\d+)\.", real_server)
    assert kubernetes is not None
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())["kubeVersion"]
    oldest = re.fullmatch(r">=(\d+\.\d+)\.0-0", chart)
    assert oldest is not None
    python = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert python is not None
    text = " ".join(README.split())
    assert (
        f"It was tested on Linux with Kubernetes {kubernetes[1]}; the chart accepts {oldest[1]} and newer."
        in text
    )
    assert f"It needs Python {python[1]} or newer." in text


VOLCANO = (
    "was compared with Volcano's master branch of August 2026 (after 1.16.0-alpha.1; its chart says 1.15.0; the"
    " commit was not recorded)"
)


@pytest.mark.parametrize("page", ["README.md", "docs/deviations.md", "docs/spec/README.md"])
def test_the_version_of_volcano_is_stated_alike(page: str) -> None:
    assert VOLCANO in " ".join((ROOT / page).read_text().split())


def test_the_time_to_install_is_stated_alike() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"This takes (.*)\.\"", makefile) == ["about a minute"] * 2
    assert "0.2 and 0.6 GB, about a minute; measured in 2026-11" in " ".join(README.split())
    assert "| about a minute, once |" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_count_of_conformance_cases_is_right() -> None:
    cases = len(list((CONFORMANCE / "cases").rglob("*.json")))
    warts = len(json.loads((CONFORMANCE / "warts.json").read_text()))
    stated = f"Of {cases} conformance cases recorded from a real Volcano, {cases - warts} agree; the other {warts} show"
    assert stated in " ".join(README.split())


def test_the_picture_shows_what_explain_prints() -> None:
    kept = (ROOT / "docs/pictures/explain.svg").read_text()
    assert kept == _script("docs/pictures/explain.py").picture(), "run: python docs/pictures/explain.py"
    assert ">  2 pods, each requesting nvidia.com/gpu 4<" in kept


def test_the_comparison_names_the_same_schedulers_in_the_readme_and_with_citations() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    cited = {int(number) for number in re.findall(r"\[(\d+)\]\(#citations\)", page)}
    listed = {int(number) for number in re.findall(r"^(\d+)\. \S*https?://", page, re.M)}
    assert cited == listed
    for name in ("Volcano", "Kueue", "KAI", "YuniKorn", "Slurm"):
        assert name in README
        assert name in page


TOPOLOGY_ROW = "Topology, GPU parts, DRA"
COMPARED = {
    "Component": ("Kind", 0),
    "All-or-nothing gangs": ("All-or-nothing gangs", 0),
    "Evicts whole gangs": ("Evicts whole gangs; spares young pods", 0),
    "Backfill with promised starts": ("Backfill with promised starts", 0),
    "Says why a job waits": ("Says why a job waits", 0),
    "Simulator or what-if": ("Simulator or what-if without a cluster", 0),
    "Several clusters": ("Several clusters; accounting database", 0),
    "Accounting database": ("Several clusters; accounting database", 1),
    "Extend in": ("Extend in; maturity", 0),
    "Maturity": ("Extend in; maturity", 1),
}
"""Rows of the README's table, with the row of docs/comparison.md and the part of its cells that they sum up."""


def comparison(text: str) -> dict[str, list[str]]:
    """The cells of a table of schedulers by the first one, without links."""
    lines = text[text.index("| | Stromboli |") :].partition("\n\n")[0].splitlines()[2:]
    plain = [re.sub(r" \[\d+\]\([^)]*\)", "", line).strip("| ").split(" | ") for line in lines]
    return {first: others for first, *others in plain}


def test_the_comparison_of_the_readme_sums_up_the_one_with_citations() -> None:
    short = comparison(README)
    page = comparison((ROOT / "docs" / "comparison.md").read_text())
    for name, (row, part) in COMPARED.items():
        for cell, cited in zip(short[name], page[row], strict=True):
            source = cited.split("; ")[part]
            words = re.findall(r"[\w-]+", cell)
            assert {words[0], words[-1]} & set(re.findall(r"[\w-]+", source)), (name, cell, source)
            assert set(re.findall(r"\d+", cell)) <= set(re.findall(r"\d+", source)), (name, cell, source)


def test_every_row_of_the_comparison_is_held_against_its_citations() -> None:
    assert set(comparison(README)) == {*COMPARED, TOPOLOGY_ROW}


def test_the_comparison_claims_topology_gpu_parts_and_dra_as_cited() -> None:
    page = comparison((ROOT / "docs" / "comparison.md").read_text())["Network topology; GPU parts; DRA"]
    for cell, cited in zip(comparison(README)[TOPOLOGY_ROW], page, strict=True):
        for feature, source in zip(("topology", "GPU parts", "DRA"), cited.split("; "), strict=True):
            claimed = cell == "yes" or feature in cell
            if source == "yes":
                assert claimed, (cell, feature)
            elif source.startswith("no") or source == "planned":
                assert not claimed, (cell, feature)
            else:  # in part: the last word says how
                assert source.split()[-1] in cell, (cell, source)


def test_the_plugin_in_twenty_lines_has_no_more() -> None:
    assert "[a plugin in twenty lines](docs/custom-plugins.md)" in README
    page = (ROOT / "docs" / "custom-plugins.md").read_text()
    first = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in first.body.splitlines() if line]) <= 20


@pytest.mark.slow
def test_the_commands_to_try_it_run(tmp_path: Path) -> None:
    block = README.partition("## Try it")[2].partition("```console\n")[2].partition("```")[0]
    install, up, run = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    assert install == ["make", "install"]
    assert up[:2] == [".venv/bin/stromboli", "up"]
    assert run[:2] == [".venv/bin/stromboli", "run"]
    with Up(tmp_path / "data", *up[2:]) as cluster:
        output = cluster.run(sys.executable, "-m", "stromboli", *run[1:])
    assert "created" in output
    assert "error" not in output


def test_the_readme_can_be_read_in_a_few_minutes() -> None:
    prose = re.sub(r"```.*?```|^\|.*?$|<!--.*?-->|\]\([^)]*\)", "", README, flags=re.S | re.M)
    assert len(prose.split()) <= MAX_WORDS
