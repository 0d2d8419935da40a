"""Draws the picture of the README from what `stromboli explain` prints: `python docs/pictures/explain.py`."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from typer.testing import CliRunner

from stromboli.cli.main import app

ROOT = Path(__file__).parents[2]
COMMAND = "explain -f examples/explain train"
SECTIONS = ("Shortage", "Held by", "It would start if", "Expected start")
"""The sections that the picture shows; it marks others with dots."""
REQUESTS = "pods, each requesting"
"""Part of the line about the pods, which the picture shows below the answer."""
MAX_COLUMNS = 112
LINE, MARGIN, TOP = 18, 16, 34

_SVG = """<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}"
 role="img" aria-label="{label}">
<title>{label}</title>
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre; }}
.title {{ font-weight: bold; fill: #fff; }} .why {{ font-weight: bold; fill: #ff8f87; }} .remedy {{ fill: #7ee2a8; }}
.dim {{ fill: #8b93a3; }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1b1f27"/>
<circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/>
<circle cx="54" cy="16" r="5" fill="#28c840"/>
{lines}
</svg>
"""


def picture() -> str:
    """The picture: the answer and some sections of the real output."""
    lines = [("title", f"$ stromboli {COMMAND}"), *_lines(_output())]
    drawn = "\n".join(
        f'<text class="{style}" x="{MARGIN}" y="{TOP + LINE * (number + 1)}">{escape(text[:MAX_COLUMNS])}</text>'
        for number, (style, text) in enumerate(lines)
    )
    height = TOP + LINE * (len(lines) + 1) + MARGIN
    return _SVG.format(width=900, height=height, label="stromboli explain: why a job waits", lines=drawn)


def _output() -> list[str]:
    arguments = COMMAND.replace("examples", str(ROOT / "examples")).split()
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return result.stdout.splitlines()


def _lines(output: list[str]) -> Iterator[tuple[str, str]]:
    yield "why", output[0]
    yield "text", next(line for line in output if REQUESTS in line)
    shown, title = True, ""
    for line in output[1:]:
        if not line.startswith(" "):
            title = line
        if (title in SECTIONS) != shown:
            shown = not shown
            if not shown:
                yield "dim", "..."
        if shown and title:
            yield _style(line, title), line


def _style(line: str, title: str) -> str:
    if line == title:
        return "title"
    return "remedy" if line.startswith("  - ") else "text"


if __name__ == "__main__":
    (ROOT / "docs" / "pictures" / "explain.svg").write_text(picture())
