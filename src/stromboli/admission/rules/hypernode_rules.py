"""HyperNodes: they have members, and the patterns of members are valid."""

import re

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.rule_context import Context

_NOT_RE2 = re.compile(r"\(\?(?:[=!]|<[=!]|P=|>|#|\()|(?<!\\)(?:\\\\)*\\[1-9kZ]|[*+?}]\+")
"""What Python's patterns have and RE2's lack: lookaround, back references, conditions, possessive repeats."""
_CHARACTER_CLASS = re.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\\])*\]")
_MAX_LENGTH = 1000


def check(node: Field, context: Context) -> None:
    """Report what is wrong with a HyperNode."""
    members = node["spec"]["members"]
    if not members.items():
        members.renamed("[].spec.members").invalid("member must have at least one member")
    for member in members.items():
        pattern = member["selector"]["regexMatch"]["pattern"]
        if pattern.given and (problem := re2_problem(pattern.text())):
            field = pattern.renamed("[].spec.members.selector.regexMatch.pattern")
            field.invalid(f"member regexMatch pattern is invalid: {problem}")


def re2_problem(pattern: str) -> str:
    """Why RE2 would refuse a pattern, or nothing."""
    if len(pattern) > _MAX_LENGTH:
        return f"longer than {_MAX_LENGTH} characters"
    if unsupported := _NOT_RE2.search(_CHARACTER_CLASS.sub("x", pattern)):
        return f"`{unsupported[0]}` is not supported"
    try:
        re.compile(pattern.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return ""
