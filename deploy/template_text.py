"""Objects as the text of a Helm template: YAML in which slots stand for values of the chart.

A slot is put where a field or an item of a list was. Everything else is written as it is, and shows what it showed
before: braces that mean something to Helm are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from deploy.monitoring import Dumper

TOKEN = re.compile(r"^( *)((?:- )?(?:[\w./-]+: )?)slot-(\d+)-$", re.MULTILINE)
NAMES = {
    "volcano-system": ".Release.Namespace",
    "volcano-scheduler-configmap": '.Values.scheduler.policy.existingConfigMap | default "volcano-scheduler-configmap"',
    "stromboli-plugins": ".Values.scheduler.plugins.configMap",
    "stromboli-dashboard-tls": ".Values.dashboard.tls.secretName",
}
"""Names in manifests that are values in the chart, wherever they stand."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What stands in the place of a field or an item."""

    write: Callable[[str, str], str]
    """From the indentation, and what stands before the value (`- `, `name: `), to lines of the template."""


def expression(text: str) -> Slot:
    """A scalar. Strings are quoted by the expression itself."""
    return Slot(lambda indent, lead: f"{indent}{lead}{{{{ {text} }}}}")


def block(value: str) -> Slot:
    """A field with a mapping or a list, left out if it is empty."""
    return Slot(
        lambda indent, lead: _lines(
            indent,
            f"{{{{- with {value} }}}}",
            lead.rstrip(),
            f"  {{{{- toYaml . | nindent {len(indent) + 2} }}}}",
            "{{- end }}",
        )
    )


def mapping(text: str) -> Slot:
    """A field with a mapping that is never empty."""
    return Slot(
        lambda indent, lead: _lines(
            indent, lead.rstrip(), f"  {{{{- {text} | toYaml | nindent {len(indent) + 2} }}}}"
        )
    )


def files(pattern: str) -> Slot:
    """A field with files of the chart by their names."""
    return Slot(
        lambda indent, lead: _lines(
            indent,
            lead.rstrip(),
            f'  {{{{- range $file, $_ := .Files.Glob "{pattern}" }}}}',
            "  {{ base $file | quote }}: {{ $.Files.Get $file | quote }}",
            "  {{- end }}",
        )
    )


def text_if_set(value: str) -> Slot:
    """A field with a string, left out if it is empty."""
    return Slot(
        lambda indent, lead: _lines(
            indent, f"{{{{- with {value} }}}}", f"{lead}{{{{ quote . }}}}", "{{- end }}"
        )
    )


def item_if_set(value: str, item: str) -> Slot:
    """An item of a list, made of a value (`.`), if there is one."""
    return _items("with", value, item)


def items(value: str, item: str) -> Slot:
    """An item for each of a list of values (`.`)."""
    return _items("range", value, item)


def _items(action: str, value: str, item: str) -> Slot:
    lines = (f"{{{{- {action} {value} }}}}", f"- {{{{ {item} }}}}", "{{- end }}")
    return Slot(lambda indent, _: _lines(indent, *lines))


def only_if(condition: str, value: Any) -> Slot:
    """A field or an item that is there on a condition."""

    def write(indent: str, lead: str) -> str:
        content = [value] if lead == "- " else {lead.removesuffix(": "): value}
        lines = _template_of(content).splitlines()
        return _lines(indent, f"{{{{- if {condition} }}}}", *lines, "{{- end }}")

    return Slot(write)


def either(condition: str, value: int, otherwise: int) -> Slot:
    """One number on a condition, else the other."""
    return expression(f"ternary {value} {otherwise} ({condition})")


def _lines(indent: str, *lines: str) -> str:
    return "\n".join(f"{indent}{line}" for line in lines)


def template(condition: str, objects: Iterable[Any]) -> str:
    """A template with objects that are there on a condition."""
    texts = "---\n".join(_template_of(each) for each in objects)
    return f"{{{{- if {condition} }}}}\n{texts}{{{{- end }}}}\n"


def _template_of(content: Any) -> str:
    slots: list[Slot] = []
    text = escaped(dump(_with_tokens(content, slots)))
    return TOKEN.sub(lambda match: slots[int(match[3])].write(match[1], match[2]), text)


def _with_tokens(content: Any, slots: list[Slot]) -> Any:
    """The same, with words in the place of slots."""
    if isinstance(content, str) and content in NAMES:
        content = expression(f"{NAMES[content]} | quote")
    if isinstance(content, Slot):
        slots.append(content)
        return f"slot-{len(slots) - 1}-"
    if isinstance(content, dict):
        return {name: _with_tokens(part, slots) for name, part in content.items()}
    if isinstance(content, list):
        return [_with_tokens(part, slots) for part in content]
    return content


def dump(content: Any) -> str:
    text: str = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=110)
    return text


def escaped(text: str) -> str:
    """Text that a template shows as it is."""
    return text.replace("{{", '{{ "{{" }}')
