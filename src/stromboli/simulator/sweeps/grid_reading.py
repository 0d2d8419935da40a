"""Reading a grid strictly: every field, option and value is checked, and all problems are told at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from stromboli.api.errors import InputProblem, quoted
from stromboli.api.manifests.yaml_lines import MAX_BYTES, Node, YamlError, plain, read_yaml
from stromboli.policy.policy_problems import suggestion
from stromboli.simulator.sweeps.grid import MOST_RUNS, Axis, BadGrid, Exclusion, Grid, Settings
from stromboli.simulator.sweeps.simulate_vocabulary import SimulateOption, Vocabulary

SECTIONS = ("name", "options", "axes", "exclude")
NOT_GIVEN = "default"
"""The label of `null`: the option is not given."""
_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_LABEL = re.compile(r"[^\s=,]{1,200}")


def read_grid(path: Path, vocabulary: Vocabulary) -> Grid:
    """The grid in a file; `BadGrid` with everything that is wrong with it."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadGrid([InputProblem(str(path), f"cannot be read: {error.strerror or error}")]) from None
    if len(content) > MAX_BYTES:
        raise BadGrid([InputProblem(str(path), f"larger than {MAX_BYTES:,} bytes; divide it")])
    return grid_of(content.decode(errors="replace"), path, vocabulary)


def grid_of(text: str, path: Path, vocabulary: Vocabulary) -> Grid:
    """The grid in a text that lies at `path`."""
    reader = _GridReader(str(path), vocabulary)
    try:
        document = read_yaml(text)
    except YamlError as error:
        reader.add("", error.line, str(error))
        raise BadGrid(reader.problems) from None
    for line, message in document.problems:
        reader.add("", line, message)
    grid = reader.grid(document.root, path)
    if reader.problems:
        raise BadGrid(reader.problems)
    return grid


class _GridReader:
    """Goes through the sections and collects what is wrong."""

    def __init__(self, source: str, vocabulary: Vocabulary) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self.problems: list[InputProblem] = []

    def add(self, field: str, line: int, text: str) -> None:
        self.problems.append(
            InputProblem(f"{self.source}:{line}" if line else self.source, text, field=field)
        )

    def grid(self, root: Node, path: Path) -> Grid:
        sections = self.mapping(root, "", "a grid has the keys name, options, axes and exclude")
        for key, node in sections.items():
            if key not in SECTIONS:
                self.add(key, node.line, f"not a key of a grid{suggestion(key, SECTIONS)}")
        options = self.settings(sections.get("options", Node(None)), "options")
        axes = self.axes(sections.get("axes", Node(None)))
        self.check_overlaps(axes)
        exclusions = self.exclusions(sections.get("exclude", Node(None)), axes)
        name = self.name(sections.get("name"), path)
        return Grid(name, path.absolute().parent, self.source, options, axes, exclusions)

    def name(self, node: Node | None, path: Path) -> str:
        if node is None or node.value is None:
            return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:40] or "sweep"
        if not isinstance(node.value, str) or not _NAME.fullmatch(node.value):
            self.add(
                "name", node.line, f"{_shown(node)} is no name: take 1 to 40 letters, digits, dots and dashes"
            )
            return "sweep"
        return node.value

    # -- options and their values

    def settings(self, node: Node, field: str) -> Settings:
        settings: dict[str, tuple[str, ...]] = {}
        for name, value in self.mapping(node, field, "options of `stromboli simulate` with values").items():
            option = self.option(name, value.line, f"{field}.{name}")
            if option is not None:
                settings[name] = self.values(option, value, f"{field}.{name}")
        return settings

    def option(self, name: str, line: int, field: str) -> SimulateOption | None:
        option = self.vocabulary.options.get(name)
        if option is None:
            reason = self.vocabulary.refused.get(name)
            meant = suggestion(name.lstrip("-"), self.vocabulary.options)
            self.add(
                field,
                line,
                f"{quoted(name)} cannot be set in a grid: {reason}"
                if reason
                else f"{quoted(name)} is no option of `stromboli simulate`{meant}",
            )
        return option

    def values(self, option: SimulateOption, node: Node, field: str) -> tuple[str, ...]:
        """The value as the command line takes it; several for an option that may be repeated."""
        if isinstance(node.value, list):
            if not option.repeatable:
                self.add(field, node.line, "takes one value; several belong under axes")
                return ()
            return tuple(text for item in node.value for text in self.values(option, item, field))
        if isinstance(node.value, dict):
            self.add(field, node.line, "a mapping; a value is a number, a text, true or false")
            return ()
        if node.value is None:
            return ()
        if option.is_switch != isinstance(node.value, bool):
            needs = "true or false" if option.is_switch else "a number or a text"
            self.add(field, node.line, f"needs {needs}, got {_shown(node)}")
            return ()
        text = _text(node)
        if not option.is_switch and (problem := option.problem(text)):
            self.add(field, node.line, f"{_shown(node)}: {problem}")
        return (text,)

    # -- axes

    def axes(self, node: Node) -> tuple[Axis, ...]:
        found = self.mapping(node, "axes", "axes by name, each a list of values or a mapping of variants")
        axes = (self.axis(name, value, f"axes.{name}") for name, value in found.items())
        return tuple(axis for axis in axes if axis is not None)

    def axis(self, name: str, node: Node, field: str) -> Axis | None:
        if isinstance(node.value, dict):
            variants = {
                self.label(label, value.line, field): self.settings(value, f"{field}.{label}")
                for label, value in node.value.items()
            }
        else:
            option = self.option(name, node.line, field)
            variants = {} if option is None else self.value_variants(option, node, field)
            if option is None:
                return None
        if not variants:
            self.add(field, node.line, "has no values; give some, or leave the axis out")
            return None
        return Axis(name, variants)

    def value_variants(self, option: SimulateOption, node: Node, field: str) -> dict[str, Settings]:
        items = node.value if isinstance(node.value, list) else self.range(node, field)
        variants: dict[str, Settings] = {}
        for item in items:
            values = self.values(option, item, field)
            label = self.label(",".join(values) or NOT_GIVEN, item.line, field, check=False)
            if label in variants:
                self.add(field, item.line or node.line, f"{quoted(label)} stands there twice")
            variants[label] = {option.name: values}
        return variants

    def range(self, node: Node, field: str) -> list[Node]:
        """`1..30` as the numbers from 1 to 30."""
        match = _RANGE.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is None:
            self.add(field, node.line, f"needs a list, a range such as 1..30 or variants, got {_shown(node)}")
            return []
        first, last = int(match[1]), int(match[2])
        if not 0 <= last - first < MOST_RUNS:
            self.add(field, node.line, f"{node.value}: a range has 1 to {MOST_RUNS:,} numbers")
            return []
        return [Node(number, node.line) for number in range(first, last + 1)]

    def label(self, label: str, line: int, field: str, check: bool = True) -> str:
        if check and not _LABEL.fullmatch(label):
            self.add(field, line, f"{quoted(label)} is no name of a variant: no spaces, commas and = in it")
        return label

    def check_overlaps(self, axes: tuple[Axis, ...]) -> None:
        """An option may belong to one axis only: else it would depend on their order which value counts."""
        owners: dict[str, str] = {}
        for axis in axes:
            for name in sorted({name for settings in axis.variants.values() for name in settings}):
                owner = owners.setdefault(name, axis.name)
                if owner != axis.name:
                    self.add(
                        f"axes.{axis.name}", 0, f"sets {name}, as axis {owner} does; leave it to one of them"
                    )

    # -- what is left out

    def exclusions(self, node: Node, axes: tuple[Axis, ...]) -> tuple[Exclusion, ...]:
        if node.value is None:
            return ()
        if not isinstance(node.value, list):
            self.add("exclude", node.line, f"needs a list of axes with their values, got {_shown(node)}")
            return ()
        known = {axis.name: axis.variants for axis in axes}
        return tuple(
            Exclusion(self.exclusion(item, known, f"exclude[{place}]"))
            for place, item in enumerate(node.value)
        )

    def exclusion(
        self, node: Node, axes: Mapping[str, Mapping[str, Settings]], field: str
    ) -> dict[str, frozenset[str]]:
        labels: dict[str, frozenset[str]] = {}
        entries = self.mapping(node, field, "axes with their values")
        if not entries and isinstance(node.value, dict | None):
            self.add(field, node.line, "names no axis, and would leave out everything; take it away")
        for axis, value in entries.items():
            if axis not in axes:
                self.add(f"{field}.{axis}", value.line, f"no axis of this grid{suggestion(axis, axes)}")
                continue
            items = value.value if isinstance(value.value, list) else [value]
            labels[axis] = frozenset(
                self.known_label(item, axes[axis], f"{field}.{axis}", value.line) for item in items
            )
        return labels

    def known_label(self, node: Node, labels: Iterable[str], field: str, line: int) -> str:
        label = NOT_GIVEN if node.value is None else _text(node)
        if label not in labels:
            self.add(field, line, f"{_shown(node)} is no value of the axis{suggestion(label, labels)}")
        return label

    def mapping(self, node: Node, field: str, needs: str) -> dict[str, Node]:
        if node.value is None and field:
            return {}
        if not isinstance(node.value, dict):
            self.add(field, node.line, f"needs {needs}, got {_shown(node)}" if field else needs)
            return {}
        return node.value


def _text(node: Node) -> str:
    """A scalar as the command line takes it."""
    value = plain(node)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _shown(node: Node) -> str:
    kinds = {dict: "a mapping", list: "a list", type(None): "nothing"}
    return kinds.get(type(node.value)) or quoted(plain(node))
