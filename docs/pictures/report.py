"""Makes the picture of docs/reports.md from the page of a real run: `python docs/pictures/report.py`.

It shows four charts of the page of `stromboli simulate --swf examples/simulator/lublin-300.swf --report`.
"""

import re
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from stromboli.simulator.reports.page.markup import Markup, element

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TRACE = "examples/simulator/lublin-300.swf"
CHARTS = ("Utilisation over time", "Waiting and running jobs", "Waiting times", "Bounded slowdown")
WIDE = "Nodes over time"
WIDTH, HEIGHT, MARGIN, TITLE = 720, 250, 24, 34


def page() -> str:
    """The page of the run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        command = [sys.executable, "-m", "stromboli", "simulate", "--swf", TRACE, "-q", "--report", str(path)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return path.read_text()


def charts(text: str) -> dict[str, tuple[str, float, float]]:
    """By title: what is drawn, without its words for the mouse, and its size."""
    found = {}
    for body in re.findall(r"<section.*?</section>", text, re.DOTALL):
        title = re.search(r"<h2>(.*?)</h2>", body)
        drawing = re.search(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)".*?>(.*)</svg>', body, re.DOTALL)
        if title and drawing:
            inner = re.sub(r"<(title|desc)>.*?</\1>", "", drawing[3])
            found[title[1]] = (inner, float(drawing[1]), float(drawing[2]))
    return found


def picture(text: str) -> str:
    """Two rows of two charts, and the nodes below them."""
    drawn = charts(text)
    parts: list[Markup] = []
    for place, title in enumerate(CHARTS):
        x = MARGIN + (place % 2) * (WIDTH + MARGIN)
        y = MARGIN + (place // 2) * (HEIGHT + TITLE + MARGIN)
        parts += _placed(drawn[title], title, x, y)
    y = MARGIN + 2 * (HEIGHT + TITLE + MARGIN)
    parts += _placed(drawn[WIDE], WIDE, MARGIN, y)
    width, height = 2 * WIDTH + 3 * MARGIN, y + TITLE + drawn[WIDE][2] + MARGIN
    style = files("stromboli.simulator.reports.page").joinpath("page.css").read_text()
    style += "svg { min-width: 0; } .back { fill: var(--page); } .head { fill: var(--ink); font: 600 17px sans-serif; }"
    back = element("rect", width=float(width), height=float(height), class_="back")
    return element(
        "svg", element("style", Markup(style)), back, *parts, xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height:g}", width=float(width), height=float(height), role="img",
        aria_label="Charts of a report",
    ) + "\n"  # fmt: skip


def _placed(chart: tuple[str, float, float], title: str, x: float, y: float) -> list[Markup]:
    inner, width, height = chart
    box = f"0 0 {width:g} {height:g}"
    return [
        element("text", title, x=float(x), y=float(y + 16), class_="head"),
        element(
            "svg", Markup(inner), x=float(x), y=float(y + TITLE), width=width, height=height, viewBox=box
        ),
    ]


if __name__ == "__main__":
    (HERE / "report.svg").write_text(picture(page()))
