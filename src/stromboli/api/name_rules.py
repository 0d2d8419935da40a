"""What Kubernetes takes for a name, a label, a port name: the reasons against one, in Kubernetes' words."""

import re
from functools import lru_cache

MAX_NAME = 253
MAX_LABEL = 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch

_ENDS = "must start and end with an alphanumeric character"
_NOT_LABEL = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_NOT_SUBDOMAIN = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_OF = f"consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
_NAME_EXAMPLE = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
_NOT_VALUE = (
    f"a valid label must be an empty string or {_OF} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_QUALIFIED})?')"
)

Reasons = tuple[str, ...]


@lru_cache(maxsize=65536)
def against_label(text: str) -> Reasons:
    """What keeps a text from being an RFC 1123 label, such as the name of a container."""
    return _reasons(text, _is_label(text) is not None, _NOT_LABEL, MAX_LABEL)


@lru_cache(maxsize=65536)
def against_subdomain(text: str) -> Reasons:
    """What keeps a text from being an RFC 1123 subdomain, as most names are."""
    return _reasons(text, _is_subdomain(text) is not None, _NOT_SUBDOMAIN, MAX_NAME)


@lru_cache(maxsize=65536)
def against_label_value(text: str) -> Reasons:
    """What keeps a text from being the value of a label."""
    return _reasons(text, not text or _is_qualified(text) is not None, _NOT_VALUE, MAX_LABEL)


@lru_cache(maxsize=65536)
def against_qualified(text: str) -> Reasons:
    """What keeps a text from being the key of a label: a name, with a domain and a slash before it or without."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key must {_OF} {_NAME_EXAMPLE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    reasons: list[str] = []
    if slash and not prefix:
        reasons.append("prefix part must be non-empty")
    elif slash:
        reasons += [f"prefix part {one}" for one in against_subdomain(prefix)]
    if not name:
        reasons.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        reasons.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not _is_qualified(name):
        reasons.append(f"name part must {_OF} {_NAME_EXAMPLE}")
    return tuple(reasons)


def against_port_name(text: str) -> Reasons:
    """What keeps a text from being the name of a port."""
    reasons = []
    if len(text) > 15:
        reasons.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", text):
        reasons.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        reasons.append("must contain at least one letter (a-z)")
    if "--" in text:
        reasons.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        reasons.append("must not begin or end with a hyphen")
    return tuple(reasons)


def _reasons(text: str, fits: bool, otherwise: str, limit: int) -> Reasons:
    long = (f"must be no more than {limit} bytes",) if len(text.encode()) > limit else ()
    return long if fits else (*long, otherwise)
