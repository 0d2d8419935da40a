"""Writes the tables of the reference from the code: `python docs/reference.py`.

A page marks the place of a table with `<!-- generated: plugin binpack -->` and `<!-- end -->`; the text between them is
replaced. A test fails if a page is out of date.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from author_reference import CLASSES, FUNCTIONS, Member, offered, signature

from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.engine.catalog import Catalog
from stromboli.engine.plugin import POINTS, SWITCHES, Plugin
from stromboli.engine.points import Choice, Combine, Point
from stromboli.engine.rules import Rules
from stromboli.extensions import load_catalog
from stromboli.model.requirements.placement_requirement import REQUIREMENTS
from stromboli.policy.arguments import Argument, ByName, declared, type_name

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src" / "stromboli"
BLOCK = re.compile(r"(<!-- generated: (?P<what>.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
CATALOG = load_catalog()
JOB_PLUGINS = JobPlugins()


def main() -> None:
    """Bring every page up to date."""
    for page in pages():
        text = page.read_text()
        try:
            fresh = up_to_date(text)
        except UnknownTable as error:
            raise SystemExit(f"{page.name}: {error}") from error
        if fresh != text:
            page.write_text(fresh)
            print(f"{page.name}: updated")
    for kind, page_name, names in UNDER_HEADINGS:
        text = (DOCS / page_name).read_text()
        for name in names:
            if f"<!-- generated: {kind} {name} -->" not in text:
                raise SystemExit(f'{page_name}: {kind} "{name}" has no table; expected:\n{block(kind, name)}')


class UnknownTable(Exception):
    """A marker asks for a table that cannot be generated."""


def pages() -> list[Path]:
    return sorted(DOCS.glob("*.md"))


def up_to_date(text: str) -> str:
    """A page with its tables generated again."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{generated(block['what'])}\n\n{block[3]}", text)


def generated(what: str) -> str:
    """The table that a marker asks for."""
    kind, _, name = what.partition(" ")
    if kind not in GENERATORS:
        known = ", ".join(sorted(GENERATORS))
        raise UnknownTable(f"invalid marker <!-- generated: {what} -->; valid kinds: {known}")
    names = NAMES.get(kind)
    if names is not None and name not in names:
        known = ", ".join(sorted(names))
        raise UnknownTable(
            f"invalid marker <!-- generated: {what} -->: no {kind} has this name; valid: {known}"
        )
    return GENERATORS[kind](name)


def block(kind: str, name: str) -> str:
    """The heading and the marker of a table that a page should have; the script fills it in."""
    return f"## {name}\n\n<!-- generated: {kind} {name} -->\n<!-- end -->"


# -- arguments


def plugin(name: str) -> str:
    """A plugin: its extension points and its arguments."""
    kind = CATALOG.plugins[name]
    listed = ", ".join(f"`{point}`" for point in answered(kind))
    where = f"Extension points: {listed}."
    table = arguments(kind.Arguments)
    return f"{where}\n\n{table}" if table else f"{where} No arguments."


def job_plugin(name: str) -> str:
    """The flags of a job plugin."""
    return arguments(JOB_PLUGINS.known[name].Arguments) or "No arguments."


def action(name: str) -> str:
    """The arguments of an action."""
    return arguments(CATALOG.actions[name].Arguments) or "No arguments."


def arguments(kind: type) -> str:
    rows = [
        (f"{key}{_aliases(argument)}", _type(argument), _default(argument), argument.doc)
        for key, argument in _flat(declared(kind))
    ]
    return table(("Argument", "Type", "Default", "Meaning"), rows) if rows else ""


def _type(argument: Argument) -> str:
    """Of an open-ended key, the type of each value."""
    return type_name(typing.get_args(argument.type)[1]) if argument.open_ended else argument.type_name


def _flat(arguments: Iterable[Argument], outer: str = "") -> Iterator[tuple[str, Argument]]:
    """Arguments, each followed by those that are nested in it."""
    for argument in arguments:
        key = f"{outer}`{argument.spelling}`"
        yield key, argument
        if inner := _inner(argument.type):
            named = typing.get_origin(argument.type) is not None and _is_mapping(argument.type)
            yield from _flat(declared(inner), f"{key} → {'`<name>` → ' if named else ''}")


def _inner(hint: Any) -> type | None:
    """The dataclass that an argument, or each entry of it, consists of."""
    return next((kind for kind in (hint, *typing.get_args(hint)) if is_dataclass(kind)), None)  # type: ignore[return-value]


def _is_mapping(hint: Any) -> bool:
    return issubclass(typing.get_origin(hint), Mapping)


def _aliases(argument: Argument) -> str:
    return "".join(f", also `{alias}`" for alias in argument.aliases)


def _default(argument: Argument) -> str:
    value = argument.default.default if isinstance(argument.default, ByName) else argument.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ", ".join(str(_plain(part)) for part in value)
    return str(value) if value and isinstance(value, str) else ""


def _plain(value: Any) -> Any:
    if not is_dataclass(value):
        return value
    return "; ".join(f"{argument.key} {getattr(value, argument.field)}" for argument in declared(type(value)))


# -- extension points


def points(_: str) -> str:
    """Every extension point."""
    rows = [
        (
            f"`{name}{_signature(name)}`",
            _question(name),
            f"[{_rule_name(point.combine)}](#how-answers-combine)",
            ", ".join(f"`{switch}`" for switch in point.switches) or "none",
            ", ".join(sorted(kind for kind in CATALOG.plugins if name in answered(CATALOG.plugins[kind]))),
        )
        for name, point in POINTS.items()
    ]
    return table(("Point", "Description", "Rule", "Switch", "Implemented by"), rows)


def unasked(_: str) -> str:
    """Points that neither actions nor the engine call."""
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    # An action names the point at which plugins vote on its candidates.
    asked = r"rules\.{0}\b|VictimCandidates\(\s*\"{0}\""
    names = [name for name in POINTS if not re.search(asked.format(name), source)]
    listed = [f"`{name}`" for name in names]
    return ", ".join(listed) + "." if listed else "None."


def rules(_: str) -> str:
    """Every combining rule, with the result if no plugin answers."""
    used = dict.fromkeys(point.combine for point in POINTS.values())
    rows = [(_rule_name(rule), _sentence(rule), _without_answers(rule)) for rule in used]
    return table(("Rule", "Combination of answers", "No plugin answers"), rows)


def switches(_: str) -> str:
    """Every switch, with its default and what it enables."""
    rows = []
    for name, default in SWITCHES.items():
        asked = [f"`{point.name}`" for point in POINTS.values() if name in point.switches]
        rows.append((f"`{name}`", str(default).lower(), ", ".join(asked) or _SPECIAL[name]))
    return table(("Switch", "Default", "Enables"), rows)


_SPECIAL = {
    "enableHierarchy": "`drf`: fairness along the tree of queues; `nodegroup`: a queue inherits its groups",
    "enabledClusterOrder": "nothing; accepted for compatibility",
    "enableTargetJob": "nothing; accepted for compatibility",
    "enableReservedNodes": "nothing; accepted for compatibility",
}


def answered(kind: type[Plugin]) -> list[str]:
    """The extension points of a plugin with all switches enabled; of variants, those of any."""
    names: set[str] = set()
    for variant in (kind, *kind.__subclasses__()):
        plugin = variant.__new__(variant)
        plugin.switches = {}
        rules = Rules([[plugin]])
        names |= {name for name, point in POINTS.items() if rules._takes_part(plugin, point)}
    return [name for name in POINTS if name in names]


def _signature(point: str) -> str:
    parameters = [name for name in inspect.signature(getattr(Plugin, point)).parameters if name != "self"]
    return f"({', '.join(parameters)})"


def _question(name: str) -> str:
    return _flow(getattr(Plugin, name).__doc__)


def _rule_name(rule: Combine) -> str:
    return rule.__name__.replace("_", " ")


def _sentence(rule: Combine) -> str:
    return _without_citations(_flow(rule.__doc__))


def _without_answers(rule: Combine) -> str:
    point = next(point for point in POINTS.values() if point.combine is rule)
    answer = rule([])(*_nothing(point))
    if answer in ([], {}, Choice([])):
        return "none"
    if answer == [""]:
        return "all"
    return {"True": "yes", "False": "no", "None": "no answer", "0": "equal", "()": "equal"}[str(answer)]


def _nothing(point: Point) -> list[Any]:
    return [[""] for _ in list(inspect.signature(getattr(Plugin, point.name)).parameters)[1:]]


# -- the classes and functions for authors


def members(name: str) -> str:
    """The members of a class that authors may use."""
    kind = CLASSES[name]
    head = f"`from {kind.__module__} import {name}`: {_without_citations(_flow(kind.__doc__))}"
    return f"{head}\n\n{table(('Member', 'Type', 'Description'), map(_member_row, offered(kind)))}"


def functions(name: str) -> str:
    """Functions that authors may use."""
    listed = FUNCTIONS[name]
    modules = dict.fromkeys(function.__module__ for function in listed)
    imports = [
        f"`from {module} import {', '.join(function.__name__ for function in listed if function.__module__ == module)}`"
        for module in modules
    ]
    rows = table(("Function", "Returns", "Description"), map(_member_row, map(signature, listed)))
    return "\\\n".join(imports) + f"\n\n{rows}"


def _member_row(member: Member) -> tuple[str, str, str]:
    type = f"`{member.type}`" if member.type else ""
    return f"`{member.name}{member.signature}`", type, _without_citations(_flow(member.doc))


def _without_citations(text: str) -> str:
    return re.sub(r" \(spec [^)]*\)", "", text)


# -- lists


def plugins(_: str) -> str:
    """Every plugin in one line."""
    rows = [(f"[{name}](#{name})", _flow(kind.__doc__)) for name, kind in sorted(CATALOG.plugins.items())]
    return table(("Plugin", "Description"), rows)


def actions(_: str) -> str:
    """Every action in one line."""
    rows = [(f"[{name}](#{name})", _flow(CATALOG.actions[name].doc)) for name in _in_order(CATALOG)]
    return table(("Action", "Description"), rows)


def _in_order(catalog: Catalog) -> list[str]:
    first = ("enqueue", "allocate", "backfill", "preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
    return sorted(catalog.actions, key=[*first, *sorted(catalog.actions)].index)


def requirements(_: str) -> str:
    """Requirements of objects, the plugins that honour them, and the effect if none does."""
    rows = [
        (
            f"`{row.name}`",
            row.field,
            f"`{row.plugin}`" if row.plugin else "none",
            "pods stay pending" if row.hard else "an event",
            row.remedy,
        )
        for row in REQUIREMENTS
    ]
    return table(("Requirement", "Field", "Plugin", "Otherwise", "Remedy"), rows)


# -- Markdown


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _flow(doc: str | None) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join((doc or "").split("\n\n")[0].split())


GENERATORS: dict[str, Callable[[str], str]] = {
    "plugin": plugin,
    "action": action,
    "job-plugin": job_plugin,
    "plugins": plugins,
    "actions": actions,
    "points": points,
    "unasked": unasked,
    "rules": rules,
    "switches": switches,
    "members": members,
    "requirements": requirements,
    "functions": functions,
}

NAMES: dict[str, Collection[str]] = {
    "plugin": CATALOG.plugins,
    "action": CATALOG.actions,
    "job-plugin": JOB_PLUGINS.known,
    "members": CLASSES,
    "functions": FUNCTIONS,
}
"""By kind of table, the names that a marker may have."""
UNDER_HEADINGS: tuple[tuple[str, str, Collection[str]], ...] = (
    ("plugin", "plugins.md", CATALOG.plugins),
    ("action", "actions.md", CATALOG.actions),
)
"""Kinds of tables of which a page has one for each name."""

if __name__ == "__main__":
    main()
