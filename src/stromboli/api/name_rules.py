"""The syntax of names, labels and port names: the errors of a text, with Kubernetes' messages."""

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

Errors = tuple[str, ...]


@lru_cache(maxsize=65536)
def dns_label_errors(text: str) -> Errors:
    """Why a text is no RFC 1123 label, such as the name of a container."""
    message = "must not contain dots" if _is_subdomain(text) else _NOT_LABEL
    return _errors(text, _is_label(text) is not None, message, MAX_LABEL)


@lru_cache(maxsize=65536)
def dns_subdomain_errors(text: str) -> Errors:
    """Why a text is no RFC 1123 subdomain, as most names are."""
    return _errors(text, _is_subdomain(text) is not None, _NOT_SUBDOMAIN, MAX_NAME)


@lru_cache(maxsize=65536)
def label_value_errors(text: str) -> Errors:
    """Why a text cannot be the value of a label."""
    return _errors(text, not text or _is_qualified(text) is not None, _NOT_VALUE, MAX_LABEL)


@lru_cache(maxsize=65536)
def qualified_name_errors(text: str) -> Errors:
    """Why a text is no qualified name, such as a label key: a name with or without a domain prefix."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key must {_OF} {_NAME_EXAMPLE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    errors: list[str] = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {error}" for error in dns_subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        errors.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not _is_qualified(name):
        errors.append(f"name part must {_OF} {_NAME_EXAMPLE}")
    return tuple(errors)


def port_name_errors(text: str) -> Errors:
    """Why a text cannot be the name of a port."""
    errors = []
    if len(text) > 15:
        errors.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", text):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        errors.append("must contain at least one letter (a-z)")
    if "--" in text:
        errors.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def _errors(text: str, is_valid: bool, message: str, limit: int) -> Errors:
    too_long = (f"must be no more than {limit} bytes",) if len(text.encode()) > limit else ()
    return too_long if is_valid else (*too_long, message)
