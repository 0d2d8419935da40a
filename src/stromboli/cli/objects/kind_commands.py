"""The verbs that kinds share: `list`, `get`, `describe`, `create -f`, `delete`; and waits for what was begun."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    ChangeReport,
    DryRun,
    seconds_of,
    tell_change,
    wait_until,
)
from stromboli.cli.cluster.changed_objects import until_gone
from stromboli.cli.cluster.chosen_objects import Failures, check_choice, chosen, plain_name
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import Manifest, full_name, name_of, namespace_of
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.manifest_files import FILES, manifests_of_kinds, namespace_for
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import (
    OUTPUT,
    SELECTOR,
    WATCH,
    Column,
    ObjectFormat,
    print_list,
    print_object,
    show_list,
)
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.command_group import Command
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

Item = TypeVar("Item")


@dataclass(frozen=True)
class ObjectKind:
    """A kind as commands show it."""

    resource: Resource
    columns: Callable[[ClusterSession], Sequence[Column]]
    describe: Callable[[ClusterSession, Manifest], Awaitable[Description]]
    ended: Callable[[Manifest], bool] | None = None
    """For kinds that run: whether it has; `ClusterError` if it failed."""
    title: Callable[[Manifest], object] | None = None
    """For kinds that are shown by something else than the name: what is shown, by which commands find them too."""

    @property
    def names(self) -> Any:
        """The argument of commands that name objects."""
        return typer.Argument(metavar="NAME...", help="Which.", autocompletion=completes(self.resource))

    @property
    def optional_names(self) -> Any:
        completion = completes(self.resource)
        return typer.Argument(
            None,
            metavar="[NAME...]",
            show_default=False,
            help="Which; all unless given.",
            autocompletion=completion,
        )

    @property
    def single_name(self) -> Any:
        return typer.Argument(metavar="NAME", help="Which.", autocompletion=completes(self.resource))


async def for_each(items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    """Work on one after another; what fails is told, and the command then ends with an exit status."""
    failures = Failures()
    for item in items:
        await failures.attempt(work(item))
    failures.end()


async def named(session: ClusterSession, kind: ObjectKind, name: str) -> Manifest:
    """An object by its name, also if that is written as `-o name` prints it, or by its title if only one has it."""
    name = plain_name(kind.resource, name)
    known = await session.find(kind.resource, name)
    if known is None and kind.title is not None:
        title = kind.title
        same = [each for each in (await session.list(kind.resource)).items if title(each) == name]
        known = same[0] if len(same) == 1 else None
    return known if known is not None else await session.get(kind.resource, name)


def add_showing(app: typer.Typer, kind: ObjectKind) -> None:
    """`list`, `get` and `describe`."""
    kind_options = {"namespaced": kind.resource.namespaced, "all_namespaces": kind.resource.namespaced}
    title = kind.resource.kind

    @on_cluster(**kind_options)
    async def list_objects(
        session: ClusterSession,
        output: ObjectFormat = OUTPUT,
        watch: bool = WATCH,
        selector: str = SELECTOR,
    ) -> None:
        await show_list(session, kind.resource, kind.columns(session), output, watch, selector)

    @on_cluster(**kind_options)
    async def get_objects(
        session: ClusterSession,
        names: list[str] = kind.optional_names,
        output: ObjectFormat = OUTPUT,
        watch: bool = WATCH,
        selector: str = SELECTOR,
    ) -> None:
        await get(session, kind, names or [], output, watch, selector)

    @on_cluster(namespaced=kind.resource.namespaced)
    async def describe_objects(session: ClusterSession, names: list[str] = kind.names) -> None:
        async def describe(name: str) -> None:
            description = await kind.describe(session, await named(session, kind, name))
            if name != names[0]:
                typer.echo()
            description.print()

        await for_each(names, describe)

    app.command("list", cls=Command, help=f"List {title}s.")(list_objects)
    app.command("get", cls=Command, help=f"Show {title}s by name.")(get_objects)
    app.command("describe", cls=Command, help=f"Tell all about {title}s, with their events.")(
        describe_objects
    )


async def get(
    session: ClusterSession,
    kind: ObjectKind,
    names: Sequence[str],
    output: ObjectFormat,
    watch: bool,
    selector: str,
) -> None:
    """Objects by name, or all that match; those that are not there are told after the others."""
    resource, columns = kind.resource, kind.columns(session)
    if names and (selector or session.all_namespaces):
        raise Usage("names and -l or -A exclude each other: an object is in one namespace")
    if not names or watch:
        wanted = {plain_name(resource, name) for name in names}
        await show_list(
            session,
            resource,
            columns,
            output,
            watch,
            selector,
            fields=f"metadata.name={next(iter(wanted))}" if len(wanted) == 1 else "",
            keep=lambda item: not wanted or name_of(item) in wanted,
        )
        return
    known: list[Manifest] = []

    async def find(name: str) -> None:
        known.append(await named(session, kind, name))

    try:
        await for_each(names, find)
    finally:
        if len(names) == 1 and known:
            print_object(resource, known[0], columns, output)
        elif known:
            print_list(session, resource, known, columns, output)


def add_create(app: typer.Typer, kind: ObjectKind, *companions: Resource) -> None:
    """`create -f`, also for kinds that come along in the same files; kinds that run can be waited for."""
    resource = kind.resource

    @on_cluster(namespaced=resource.namespaced)
    async def create_objects(
        session: ClusterSession,
        files: list[str] = FILES,
        dry_run: DryRun = DRY_RUN,
        output: ObjectFormat = OUTPUT,
    ) -> None:
        await create(session, [*companions, resource], files, dry_run, output)

    @on_cluster(namespaced=resource.namespaced)
    async def create_and_wait(
        session: ClusterSession,
        files: list[str] = FILES,
        dry_run: DryRun = DRY_RUN,
        wait: bool = WAIT,
        timeout: str = TIMEOUT,
        output: ObjectFormat = OUTPUT,
    ) -> None:
        seconds = seconds_of(timeout)
        created = await create(session, [*companions, resource], files, dry_run, output)

        async def end(manifest: Manifest) -> None:
            await until_ended(session, kind, name_of(manifest), seconds, namespace_of(manifest))

        if wait and dry_run is DryRun.NONE:
            await for_each([each for each in created if each.get("kind") == resource.kind], end)

    listed = " and ".join(f"{each.kind}s" for each in (resource, *companions))
    command = create_objects if kind.ended is None else create_and_wait
    app.command("create", cls=Command, help=f"Create {listed} from manifests.")(command)


async def create(
    session: ClusterSession,
    resources: Sequence[Resource],
    files: Sequence[str],
    dry_run: DryRun,
    output: ObjectFormat,
) -> list[Manifest]:
    """Create what files have of these kinds, in the order of the kinds, and tell of each."""
    manifests = manifests_of_kinds(files, resources)
    manifests.sort(key=lambda pair: resources.index(pair[0]))
    places = [namespace_for(session, manifest) for _, manifest in manifests]
    created: list[Manifest] = []
    report = ChangeReport(resources[-1], "created", output, dry_run)

    async def send(work: tuple[tuple[Resource, Manifest], str]) -> None:
        (resource, manifest), namespace = work
        if dry_run is not DryRun.CLIENT:
            manifest = await session.create(resource, manifest, namespace, dry_run is DryRun.SERVER)
        created.append(manifest)
        report.add(manifest, resource)

    try:
        await for_each(zip(manifests, places, strict=True), send)
    finally:
        report.end()
    return created


def add_delete(app: typer.Typer, kind: ObjectKind) -> None:
    """`delete`, by name or by labels."""
    resource = kind.resource

    @on_cluster(namespaced=resource.namespaced)
    async def delete_objects(
        session: ClusterSession,
        names: list[str] = kind.optional_names,
        selector: str = SELECTOR,
        dry_run: DryRun = DRY_RUN,
        wait: bool = WAIT,
        timeout: str = TIMEOUT,
        output: ObjectFormat = OUTPUT,
        ignore_not_found: bool = typer.Option(
            False, "--ignore-not-found", show_default=False, help="What is not there is no error."
        ),
    ) -> None:
        seconds = seconds_of(timeout)
        check_choice(names or (), selector)
        report, failures = ChangeReport(resource, "deleted", output, dry_run), Failures()

        async def delete(known: Manifest) -> None:
            if dry_run is not DryRun.CLIENT:
                await session.delete(resource, name_of(known), dry_run=dry_run is DryRun.SERVER)
            report.add(known)
            if wait and dry_run is DryRun.NONE:
                await until_gone(session, resource, known, seconds)

        try:
            for known in await chosen(session, resource, names or (), selector, failures, ignore_not_found):
                await failures.attempt(delete(known))
        finally:
            report.end()
        failures.end()

    app.command("delete", cls=Command, help=f"Delete {resource.kind}s, and what they own.")(delete_objects)


def add_wait(app: typer.Typer, kind: ObjectKind, ends: str) -> None:
    """`wait`: until objects have ended."""

    @on_cluster(namespaced=kind.resource.namespaced)
    async def wait_for_objects(
        session: ClusterSession, names: list[str] = kind.names, timeout: str = TIMEOUT
    ) -> None:
        seconds = seconds_of(timeout)

        async def wait(name: str) -> None:
            await until_ended(session, kind, name_of(await named(session, kind, name)), seconds)

        await for_each(names, wait)

    app.command("wait", cls=Command, help=f"Wait until {kind.resource.kind}s have ended.\n\n{ends}")(
        wait_for_objects
    )


async def until_ended(
    session: ClusterSession,
    kind: ObjectKind,
    name: str,
    seconds: float = math.inf,
    namespace: str | None = None,
) -> None:
    """Wait for the end; `ClusterError` if it failed, was deleted, or takes too long."""
    ended, resource = kind.ended, kind.resource
    assert ended is not None

    def reached(current: Manifest | None) -> bool:
        if current is None:
            raise ClusterError(f"{full_name(resource, name)} was deleted before it ended")
        return ended(current)

    await wait_until(session, resource, name, reached, seconds, namespace, "it has ended")
    tell_change(resource, name, "has ended")
