"""The pictures of the documentation show what commands decide and write."""

from __future__ import annotations

import importlib.util

from stromboli.simulator.reports.page.run_page import run_page
from tests.docs.pages import ROOT
from tests.simulator.reports.run_records import busy_run

PICTURES = ROOT / "docs" / "pictures"


def test_pictures_of_topologies_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("pictures_of_topologies", PICTURES / "topology.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.pictures()
    assert len(drawn) == 3
    for name, picture in drawn.items():
        assert (PICTURES / f"{name}.svg").read_text() == picture, "run: python docs/pictures/topology.py"


def test_the_picture_of_a_report_can_be_made_of_a_page_with_waits() -> None:
    spec = importlib.util.spec_from_file_location("picture_of_report", PICTURES / "report.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn = module.picture(run_page(busy_run(30, slack=0.2)))
    assert drawn.count("<svg") == 1 + len(module.CHARTS) + 1
    assert "<script" not in drawn + (PICTURES / "report.svg").read_text()
