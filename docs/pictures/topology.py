"""Makes the pictures of docs/topology.md: `python docs/pictures/topology.py`.

Each shows where `stromboli plan` puts the pods of an example, on the nodes of `examples/topology/cluster.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import preset
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import make_plan

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "topology"
NOW = 1_793_534_400.0
TREE = {
    "switch-1": {"rack-1": ("n1", "n2"), "rack-2": ("n3", "n4")},
    "switch-2": {"rack-3": ("n5", "n6"), "rack-4": ("n7", "n8")},
}
NOTEBOOKS = ("n1", "n3", "n5", "n7")
SLOTS = 2
"""Every pod of the examples takes half of a node."""

INK, FAINT, LINE, PAPER, FRAME = "#1f2933", "#5f6b77", "#9aa5b1", "#f8fafb", "#e6eff8"
FREE, OTHERS, GANG, SECOND = "#edf1f4", "#bcc5ce", "#2f6fb5", "#b9591a"
SLOT, GAP, MARGIN = 28, 8, 14
NODE = SLOTS * SLOT + 3 * 4
RACK = 2 * NODE + 3 * GAP
WIDTH = 4 * RACK + 3 * MARGIN
SWITCH_HEIGHT, RACK_TOP, NODE_HEIGHT = 28, 54, SLOT + 26
RACK_HEIGHT = NODE_HEIGHT + 32
HEIGHT = RACK_TOP + RACK_HEIGHT
STYLE = "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:13px}"


class Pod(NamedTuple):
    """A pod: what is written on it, and its colour."""

    label: str
    colour: str


class Placement(NamedTuple):
    """What is on each node, and which pods wait."""

    nodes: dict[str, list[Pod]]
    waiting: list[Pod]

    def domain(self) -> str:
        """The smallest HyperNode with all pods of the gang."""
        used = {name for name, pods in self.nodes.items() if any(pod.label for pod in pods)}
        racks = {rack: set(nodes) for racks in TREE.values() for rack, nodes in racks.items()}
        switches = {switch: set().union(*racks.values()) for switch, racks in TREE.items()}
        return next((name for name, nodes in (racks | switches).items() if used and used <= nodes), "")


# -- where pods go


def planned(*files: str, partition: int = 99) -> Placement:
    """Where a cycle puts the pods of example files; `partition` is how many pods have one colour."""
    catalog = load_catalog()
    loaded = load(lambda: open_paths([str(EXAMPLES / name) for name in ("cluster.yaml", *files)]))
    policy = load_policy(preset("basic"), catalog, "preset basic")
    report = make_plan(loaded, policy, catalog, NOW).whole
    nodes: dict[str, list[Pod]] = {
        node: [] for racks in TREE.values() for rack in racks.values() for node in rack
    }
    for node in NOTEBOOKS if "notebooks.yaml" in files else ():
        nodes[node].append(Pod("", OTHERS))
    for pod, node in report.binds.items():
        number = int(pod.rpartition("-")[2])
        nodes[node].append(Pod(str(number), SECOND if number >= partition else GANG))
    waiting = 4 if report.pending else 0
    return Placement(nodes, [Pod(str(number), GANG) for number in range(waiting)])


# -- drawing


def rectangle(
    x: float, y: float, width: float, height: float, fill: str, line: str = LINE, bold: float = 1
) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4"'
        f' fill="{fill}" stroke="{line}" stroke-width="{bold}"/>'
    )


def text(
    x: float, y: float, words: str, colour: str = INK, anchor: str = "middle", bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'


def draw_pod(x: float, y: float, pod: Pod | None) -> str:
    fill = FREE if pod is None else pod.colour
    box = rectangle(x, y, SLOT, SLOT, fill, fill)
    if pod is None:
        return box
    return box + (text(x + SLOT / 2, y + SLOT / 2 + 5, pod.label, "#ffffff", bold=True) if pod.label else "")


def draw_node(x: float, y: float, name: str, pods: Sequence[Pod]) -> Iterator[str]:
    yield rectangle(x, y, NODE, NODE_HEIGHT, "#ffffff")
    for slot in range(SLOTS):
        yield draw_pod(x + 4 + slot * (SLOT + 4), y + 4, pods[slot] if slot < len(pods) else None)
    yield text(x + NODE / 2, y + NODE_HEIGHT - 6, name, FAINT)


def draw_tree(placement: Placement) -> Iterator[str]:
    """Switches, racks and nodes with their pods; the HyperNode of the gang is framed."""
    chosen = placement.domain()
    for place, (switch, racks) in enumerate(TREE.items()):
        left = place * 2 * (RACK + MARGIN)
        middle = left + RACK + MARGIN / 2
        if switch == chosen:
            yield rectangle(left - 7, -8, 2 * RACK + 2 * MARGIN, HEIGHT + 15, FRAME, GANG, 2)
        for number in range(len(racks)):
            below = left + number * (RACK + MARGIN) + RACK / 2
            yield f'<path d="M{middle} {SWITCH_HEIGHT}L{below} {RACK_TOP}" stroke="{LINE}" stroke-width="1.5"/>'
        yield rectangle(middle - 55, 0, 110, SWITCH_HEIGHT, PAPER)
        yield text(middle, 19, switch)
        for number, (rack, nodes) in enumerate(racks.items()):
            x = left + number * (RACK + MARGIN)
            framed = (FRAME, GANG, 2) if rack == chosen else (PAPER,)
            yield rectangle(x, RACK_TOP, RACK, RACK_HEIGHT, *framed)
            yield text(x + RACK / 2, RACK_TOP + 17, rack)
            for index, node in enumerate(nodes):
                yield from draw_node(
                    x + GAP + index * (NODE + GAP), RACK_TOP + 24, node, placement.nodes[node]
                )


def picture_of_tree(placement: Placement) -> str:
    """One tree, with the tiers named at its side."""
    tiers = {"tier 2": 19, "tier 1": RACK_TOP + 17, "nodes": RACK_TOP + 24 + NODE_HEIGHT / 2}
    names = "".join(text(0, y, name, FAINT, "start") for name, y in tiers.items())
    return svg(
        WIDTH + 60, HEIGHT, names + f'<g transform="translate(60 0)">{"".join(draw_tree(placement))}</g>'
    )


def picture_of_modes(panels: Sequence[tuple[str, Placement]]) -> str:
    """Several trees below each other, each with its title."""
    step = HEIGHT + 66
    parts = []
    for number, (title, placement) in enumerate(panels):
        y = number * step
        parts.append(text(0, y + 14, title, anchor="start", bold=True))
        for place, pod in enumerate(placement.waiting):
            parts.append(draw_pod(WIDTH - (len(placement.waiting) - place) * (SLOT + 4), y - 6, pod))
        parts.append(f'<g transform="translate(0 {y + 34})">{"".join(draw_tree(placement))}</g>')
    return svg(WIDTH, len(panels) * step - 28, "".join(parts))


def svg(width: float, height: float, content: str) -> str:
    """The same bytes for the same content, and nothing that a reader's browser has to fetch."""
    whole, high = width + 2 * MARGIN, height + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{high}" viewBox="0 0 {whole} {high}">\n'
        f'<style>{STYLE}</style>\n<rect width="{whole}" height="{high}" fill="#ffffff"/>\n'
        f'<g transform="translate({MARGIN} {MARGIN})">{content}</g>\n</svg>\n'
    ).replace("><", ">\n<")


def pictures() -> dict[str, str]:
    """All of them, by name."""
    busy = "notebooks.yaml"
    modes = [
        ("Without networkTopology: in four racks", planned(busy, "anywhere.yaml")),
        ("hard, highestTierAllowed: 1. No rack has room: the gang waits", planned(busy, "rack.yaml")),
        ("hard, highestTierAllowed: 2. Below one switch", planned(busy, "switch.yaml")),
        ("soft, seven pods. As close together as there is room", planned(busy, "soft.yaml")),
    ]
    return {
        "topology-tree": picture_of_tree(planned("rack.yaml")),
        "topology-modes": picture_of_modes(modes),
        "topology-sub-groups": picture_of_tree(planned("sub-groups.yaml", partition=4)),
    }


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (HERE / f"{name}.svg").write_text(drawn)
