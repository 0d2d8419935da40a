"""Makes the pictures of plans and of the demo from the real commands: `python docs/pictures/make.py`.

`plan.svg` is `stromboli plan` on the example of two teams, `demo.svg` a moment of `stromboli demo` and its end. (The
plot `scaling.svg` comes from `python -m bench scaling`, those of topologies from `topology.py`.)
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.cli.demo.chronicle import Chronicle
from stromboli.cli.demo.command import play
from stromboli.cli.demo.frame import Frame
from stromboli.cli.demo.view import render_frame
from stromboli.cli.plan_text import print_plan
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import preset
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import make_plan

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLE = "examples/two-teams"
NOW = 1_793_534_400.0
WIDTH = 100
DEMO_WIDTH = 80
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
MOMENT = 24.0
"""The second of the demo that the picture shows."""


def main() -> None:
    """Draw both."""
    save(picture_of_plan(), "plan", "stromboli plan")
    save(picture_of_demo(), "demo", "stromboli demo")


def terminal(width: int = WIDTH) -> Console:
    return Console(record=True, width=width, file=io.StringIO(), force_terminal=True, highlight=False)


def prompt(out: Console, command: str) -> None:
    out.print(Text("$ ", "dim").append(command, "bold"))


def picture_of_plan() -> Console:
    catalog = load_catalog()
    out = terminal()
    prompt(out, f"stromboli plan -f {EXAMPLE} --preset basic")
    policy = load_policy(preset("basic"), catalog, "preset basic")
    loaded = load(lambda: open_paths([str(ROOT / EXAMPLE)]))
    print_plan(out, make_plan(loaded, policy, catalog, NOW))
    return out


def picture_of_demo() -> Console:
    out = terminal(DEMO_WIDTH)
    prompt(out, "make demo")
    shown = False

    def show(frame: Frame, chronicle: Chronicle, now: float, lines: list[str]) -> None:
        nonlocal shown
        if now > MOMENT and not shown:
            out.print(render_frame(frame, chronicle, now, lines))
            shown = True

    end = play(show, lambda _: None, 1.0)
    out.print(Text("...", "dim"))
    out.print(end)
    return out


def save(out: Console, name: str, title: str) -> None:
    """Write the picture."""
    (HERE / f"{name}.svg").write_text(drawing(out, name, title))


def drawing(out: Console, name: str, title: str) -> str:
    """Draw the same bytes for the same lines, and nothing that a browser would have to fetch."""
    return FONT.sub("", out.export_svg(title=title, unique_id=f"stromboli-{name}"))


if __name__ == "__main__":
    main()
