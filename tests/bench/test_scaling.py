"""The plot of how cost grows is the same for the same numbers."""

from pathlib import Path

from bench.scaling import AXES, Point, draw


def test_the_plot_depends_on_the_numbers_only(tmp_path: Path) -> None:
    points = {axis: [Point(step, step / 1e5, 0.1, 0.1, 0.001, 50) for step in axis.steps] for axis in AXES}
    draw(points, tmp_path / "one.svg")
    draw(points, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "pending pods" in (tmp_path / "one.svg").read_text()
