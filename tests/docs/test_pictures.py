"""The pictures of the documentation show what commands decide and write."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

from stromboli.simulator.reports.page.run_page import run_page
from tests.docs.pages import PAGES, ROOT, links
from tests.simulator.reports.run_records import busy_run

PICTURES = ROOT / "docs" / "pictures"
TIMES = re.compile(r'[\d.]+&#160;m?s\b| x="[\d.]+"| textLength="[\d.]+"')
"""How long a plan took, and what that moves."""


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pictures_{name}", PICTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_of_topologies_are_up_to_date() -> None:
    drawn = _script("topology").pictures()
    assert len(drawn) == 3
    for name, picture in drawn.items():
        assert (PICTURES / f"{name}.svg").read_text() == picture, "run: python docs/pictures/topology.py"


def test_the_picture_of_a_plan_is_up_to_date() -> None:
    module = _script("make")
    drawn = module.drawing(module.picture_of_plan(), "plan", "stromboli plan")
    kept = (PICTURES / "plan.svg").read_text()
    assert TIMES.sub("", kept) == TIMES.sub("", drawn), "run: python docs/pictures/make.py"


def test_each_picture_is_shown_on_a_page() -> None:
    shown = {link.rpartition("/")[2] for page in PAGES for link in links(page.read_text())}
    pictures = {path.name for path in PICTURES.iterdir() if path.suffix in (".svg", ".png")}
    assert pictures - shown == set()


def test_the_picture_of_a_report_can_be_made_of_a_page_with_waits() -> None:
    module = _script("report")
    drawn = module.picture(run_page(busy_run(30, slack=0.2)))
    assert drawn.count("<svg") == 1 + len(module.CHARTS) + 1
    assert "<script" not in drawn + (PICTURES / "report.svg").read_text()
