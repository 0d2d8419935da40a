"""HyperNodes: members that can be found."""

import re

from stromboli.admission.rules.field import Place
from stromboli.admission.rules.rule_context import Context

_NOT_RE2 = re.compile(r"\(\?(?:[=!]|<[=!]|P=|>|#|\()|(?<!\\)(?:\\\\)*\\[1-9kZ]|[*+?}]\+")
"""What Python's patterns have and RE2's lack: looking around and back, conditions, possessive repeats."""
_SET = re.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\\])*\]")
_LONGEST = 1000


def check(node: Place, context: Context) -> None:
    """Report what is wrong with a HyperNode."""
    members = node["spec"]["members"]
    if not members.items():
        members.renamed("[].spec.members").invalid("member must have at least one member")
    for member in members.items():
        pattern = member["selector"]["regexMatch"]["pattern"]
        why = against_pattern(pattern.text()) if pattern.given else ""
        if why:
            place = pattern.renamed("[].spec.members.selector.regexMatch.pattern")
            place.invalid(f"member regexMatch pattern is invalid: {why}")


def against_pattern(pattern: str) -> str:
    """Why RE2 would not take a pattern, or nothing."""
    if len(pattern) > _LONGEST:
        return f"longer than {_LONGEST} characters"
    found = _NOT_RE2.search(_SET.sub("x", pattern))
    if found:
        return f"`{found[0]}` is not supported"
    try:
        re.compile(pattern.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return ""
