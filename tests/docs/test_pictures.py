"""The pictures of docs/topology.md show what `stromboli plan` decides."""

from __future__ import annotations

import importlib.util

from tests.docs.pages import ROOT

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
