"""What Kubernetes takes for a name, a label, a port name: the reasons against one, in Kubernetes' words."""

import re

_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_VALUE = rf"({_QUALIFIED})?"

_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    f"validation is '{_LABEL_VALUE}')"
)


def against_label(name: str) -> list[str]:
    """Reasons why this is no RFC 1123 label, such as the name of a container."""
    return _against(name, 63, _LABEL, _LABEL_TEXT)


def against_subdomain(name: str) -> list[str]:
    """Reasons why this is no RFC 1123 subdomain, such as the name of most objects."""
    return _against(name, 253, _SUBDOMAIN, _SUBDOMAIN_TEXT)


def against_label_value(value: str) -> list[str]:
    """Reasons why this cannot be the value of a label."""
    return _against(value, 63, _LABEL_VALUE, _LABEL_VALUE_TEXT)


def against_qualified(name: str) -> list[str]:
    """Reasons why this is no qualified name, such as the key of a label: `name` or `example.com/name`."""
    prefix, slash, part = name.rpartition("/")
    if "/" in prefix:
        return [f"a qualified name {_QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/'"]
    reasons = []
    if slash and not prefix:
        reasons.append("prefix part must be non-empty")
    elif slash:
        reasons += [f"prefix part {reason}" for reason in against_subdomain(prefix)]
    if not part:
        reasons.append("name part must be non-empty")
    elif len(part) > 63:
        reasons.append("name part must be no more than 63 characters")
    if not re.fullmatch(_QUALIFIED, part):
        reasons.append(f"name part {_QUALIFIED_TEXT}")
    return reasons


def against_port_name(name: str) -> list[str]:
    """Reasons why a port cannot be called this."""
    reasons = []
    if len(name) > 15:
        reasons.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        reasons.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        reasons.append("must contain at least one letter (a-z)")
    if "--" in name:
        reasons.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        reasons.append("must not begin or end with a hyphen")
    return reasons


def _against(text: str, longest: int, pattern: str, why: str) -> list[str]:
    reasons = []
    if len(text) > longest:
        reasons.append(f"must be no more than {longest} characters")
    if not re.fullmatch(pattern, text):
        reasons.append(why)
    return reasons
