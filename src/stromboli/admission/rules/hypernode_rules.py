"""HyperNodes: they have members, and the patterns of members are valid."""

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.rule_context import Context
from stromboli.api.patterns import pattern_error


def check(node: Field, context: Context) -> None:
    """Report what is wrong with a HyperNode."""
    members = node["spec"]["members"]
    if not members.items():
        members.renamed("[].spec.members").invalid("member must have at least one member")
    for member in members.items():
        pattern = member["selector"]["regexMatch"]["pattern"]
        if pattern.given and (problem := pattern_error(pattern.text())):
            field = pattern.renamed("[].spec.members.selector.regexMatch.pattern")
            field.invalid(f"member regexMatch pattern is invalid: {problem}")
