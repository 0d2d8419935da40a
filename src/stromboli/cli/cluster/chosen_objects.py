"""Which objects a command means, by names, labels or all of them, and what went wrong with each."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

import typer

from stromboli.cli.cli_errors import REFUSED, Usage, print_error
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import Manifest, kind_names, name_of
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

NAMES_ASKED_FOR = 10
"""Names that are listed before a question."""
Result = TypeVar("Result")


class Failures:
    """What failed of what is done to several objects: each is told at once, and the others go on."""

    def __init__(self) -> None:
        self._statuses: list[int] = []

    async def attempt(self, work: Awaitable[Result]) -> Result | None:
        """Its result, None if it failed."""
        try:
            return await work
        except ApiError as error:
            self.add(refusal_text(error))
        except ClusterError as error:
            self.add(shown(str(error)), error.exit_status)
        return None

    def add(self, message: str, status: int = REFUSED) -> None:
        print_error(message)
        self._statuses.append(status)

    def end(self) -> None:
        """End the command with an exit status if anything failed: 1 before that of a timeout."""
        if self._statuses:
            raise typer.Exit(min(self._statuses))


def plain_name(resource: Resource, text: str) -> str:
    """A name, also if it is written as `-o name` prints it: `job.batch.volcano.sh/train`, `queue/research`."""
    kind, slash, name = text.partition("/")
    if not slash and text:
        return text
    if kind.lower() not in kind_names(resource) or not name:
        raise Usage(
            shown(f'"{text}" names no {resource.kind}: write its name, or {resource.kind.lower()}/NAME')
        )
    return name


def check_choice(names: Sequence[str], labels: str, every: bool | None = None) -> None:
    """Names, or labels, or (where a command has it) --all: exactly one of them."""
    ways = "names or -l LABELS" if every is None else "names, -l LABELS or --all"
    given = sum(map(bool, (names, labels, every)))
    if given != 1:
        raise Usage(f"{'only one of' if given else 'say which:'} {ways}")


async def chosen(
    session: ClusterSession,
    resource: Resource,
    names: Sequence[str],
    labels: str = "",
    failures: Failures | None = None,
    ignore_missing: bool = False,
) -> list[Manifest]:
    """Objects by name, or else by labels; without failures, the first that does not exist is an error."""
    if not names:
        listed = await session.list(resource, session.namespace, labels=labels)
        if not listed.items:
            where = f" in namespace {session.namespace}" if resource.namespaced else ""
            typer.echo(shown(f"No {resource.plural} found{where}."), err=True)
        return listed.items
    objects = []
    for name in dict.fromkeys(plain_name(resource, name) for name in names):
        reading = (session.find if ignore_missing else session.get)(resource, name)
        content = await (reading if failures is None else failures.attempt(reading))
        objects += [content] if content is not None else []
    return objects


def confirmed(resource: Resource, manifests: Sequence[Manifest], where: str, yes: bool) -> bool:
    """Ask before all objects are deleted; where there is no terminal, nobody is there to be asked."""
    if yes or not manifests or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    listed = ", ".join(map(name_of, manifests[:NAMES_ASKED_FOR]))
    more = len(manifests) - NAMES_ASKED_FOR
    listed += f" and {more} more" if more > 0 else ""
    return typer.confirm(shown(f"Delete {len(manifests)} {resource.plural}{where}: {listed}?"), err=True)
