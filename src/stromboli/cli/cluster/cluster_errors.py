"""What goes wrong between a command and a cluster, in sentences."""

from __future__ import annotations

import re

from stromboli.api.errors import printable
from stromboli.cli.cli_errors import REFUSED
from stromboli.kube.request import ApiError

FORBIDDEN, EXPIRED = 403, 410
"""What an API server answers who lacks a right, or asks for a version that it has forgotten."""
TIMED_OUT = 124
"""Exit status if it has not come true within --timeout, as that of `timeout`."""
LONGEST_MESSAGE = 2000
"""Characters of a message of the API server that are shown."""
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) (?:resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?|path "(?P<path>[^"]*)")'
)
_NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[a-z0-9-]+)" not found$')


class ClusterError(Exception):
    """The command cannot do what it was asked for; the message says why, and ends with the remedy if there is one."""

    exit_status = REFUSED


class TimedOut(ClusterError):
    """What the command waited for has not come true in time."""

    exit_status = TIMED_OUT


def refusal_text(error: ApiError) -> str:
    """Why an API server refuses, with the right that is missing if it is one."""
    text = shown(str(error))
    if error.status == 401:
        return f"the API server does not know you: {text}; log in again, or choose another --context"
    if error.status == 403 and (match := _FORBIDDEN.search(str(error))):
        return missing_right(match)
    if error.status == 404 and (missing := _NO_NAMESPACE.search(text)):
        return f"{text}: choose another with -n, or create it: kubectl create namespace {missing['name']}"
    return text


def missing_right(refusal: re.Match[str]) -> str:
    """Which right is missing, and who can give it."""
    user, verb, path = refusal["user"], refusal["verb"], refusal["path"]
    if path is not None:
        return shown(
            f'user "{user}" may not {verb} {path}: an administrator gives that right with a ClusterRole for'
            f" nonResourceURLs"
        )
    return right_text(user, verb, refusal["resource"], refusal["group"], refusal["namespace"] or "")


def right_text(user: str, verb: str, resource: str, group: str, namespace: str) -> str:
    """That a user lacks a right, in one namespace or in the whole cluster, and who can give it."""
    where = f"in namespace {namespace}" if namespace else "in the whole cluster"
    role = "Role" if namespace else "ClusterRole"
    return shown(
        f'user "{user}" may not {verb} {f"{resource}.{group}".removesuffix(".")} {where}: an administrator gives that'
        f' right with a {role} that has the verb "{verb}" on "{resource}" of API group "{group}"'
    )


def shown(text: str) -> str:
    """A text from outside as one line of a bounded length that cannot fool a terminal."""
    line = printable(text[: LONGEST_MESSAGE + 1])
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"
