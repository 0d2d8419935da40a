"""The plot of how cost grows is the same for the same numbers, and its worlds are as large as it says."""

from pathlib import Path

from bench.scaling import PANELS, Points, draw, rows_of

VALUES: Points = {panel: [[step / 1e3 for step in panel.steps] for _ in panel.curves] for panel in PANELS}


def test_the_plot_depends_on_the_numbers_only(tmp_path: Path) -> None:
    draw(VALUES, tmp_path / "one.svg")
    draw(VALUES, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    text = (tmp_path / "one.svg").read_text()
    assert all(panel.title in text for panel in PANELS)


def test_worlds_grow_to_20000_nodes_and_200000_running_pods() -> None:
    largest = [curve.workload(panel.steps[-1]).sizes for panel in PANELS for curve in panel.curves]
    assert max(sizes.nodes for sizes in largest) == 20_000
    assert max(sizes.pending_pods for sizes in largest) == 40_000
    assert max(sizes.running_pods for sizes in largest) == 200_000


def test_the_table_has_a_row_for_each_curve() -> None:
    later = PANELS[-1]
    head, *rows = rows_of(later, VALUES[later])
    assert head[0] == "running pods"
    assert head[-1] == "200,000"
    assert [row[0] for row in rows] == [curve.label for curve in later.curves]
