"""Changes of several objects: each is made and told, and then awaited; what fails keeps no other from its turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from stromboli.cli.cluster.change_options import ChangeReport, wait_until
from stromboli.cli.cluster.chosen_objects import Failures
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


async def change_each(
    objects: Iterable[Manifest],
    change: Callable[[Manifest], Awaitable[bool]],
    report: ChangeReport,
    failures: Failures,
    effect: Callable[[Manifest], Awaitable[object]] | None,
) -> None:
    """Change objects and report those that were; then wait for the effect on each, if it is to be awaited."""
    changed = []
    for known in objects:
        if await failures.attempt(change(known)):
            changed.append(known)
            report.add(known)
    report.end()
    if effect is not None:
        for known in changed:
            await failures.attempt(effect(known))


async def until_gone(session: ClusterSession, resource: Resource, known: Manifest, seconds: float) -> None:
    """Wait until an object is gone, or another has its name."""
    name, uid = name_of(known), (known.get("metadata") or {}).get("uid")
    await wait_until(
        session,
        resource,
        name,
        lambda current: current is None or (current.get("metadata") or {}).get("uid") != uid,
        seconds,
        meaning=f"the {resource.kind.lower()} is gone",
        tell=lambda current: f"waiting until {name} is gone",
    )
