"""`@on_cluster`: makes a command of a coroutine that is given a session with the user's cluster.

The command has the coroutine's own parameters and those that say which cluster and namespace is meant, so that all
commands take the same ones, find the cluster in the same way and end alike when it refuses.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from stromboli.cli.cli_errors import INTERRUPTED, REFUSED, Usage, print_error
from stromboli.cli.data_option import data_folder

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

DEFAULT_NAMESPACE = "default"


class ClusterTarget(NamedTuple):
    """Which cluster and namespace the options of a command mean."""

    data: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False


def _parameter(name: str, annotation: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


CLUSTER_PARAMETERS = (
    _parameter(
        "data",
        Path | None,
        typer.Option(
            None,
            "--data",
            parser=data_folder,
            metavar="DIR",
            help="The folder of a cluster of `stromboli up`.",
        ),
    ),
    _parameter(
        "kubeconfig",
        str,
        typer.Option(
            "",
            "--kubeconfig",
            metavar="FILE",
            show_default=False,
            help="Any other cluster; $KUBECONFIG unless given.",
        ),
    ),
    _parameter(
        "context",
        str,
        typer.Option(
            "", "--context", metavar="NAME", show_default=False, help="A context of the kubeconfig."
        ),
    ),
)


def complete_namespaces(ctx: Any, incomplete: str) -> list[str]:
    """Completions of `-n`, from the cluster."""
    from stromboli.cli.cluster.cluster_kinds import NAMESPACES
    from stromboli.cli.cluster.name_completion import names_in_cluster

    return names_in_cluster(ctx, NAMESPACES, incomplete)


NAMESPACE = _parameter(
    "namespace",
    str,
    typer.Option(
        "",
        "--namespace",
        "-n",
        metavar="NAME",
        show_default=False,
        help="The namespace; that of the context unless given.",
        autocompletion=complete_namespaces,
    ),
)
ALL_NAMESPACES = _parameter(
    "all_namespaces",
    bool,
    typer.Option(False, "--all-namespaces", "-A", show_default=False, help="In all namespaces."),
)


def on_cluster(
    namespaced: bool = True, all_namespaces: bool = False, refused: int = REFUSED
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """A command of `async def command(session, ...)`; with -n if `namespaced`, and -A if it can list all of them.

    `refused` is the exit status if the cluster refuses, for commands to which 1 means something else.
    """
    added = [*CLUSTER_PARAMETERS]
    added += [NAMESPACE] if namespaced or all_namespaces else []
    added += [ALL_NAMESPACES] if all_namespaces else []
    return _command_with(added, lambda _: True, refused)


def on_cluster_if(option: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """The same for a command that needs a cluster only if an option is given: its session is None otherwise."""
    return _command_with([*CLUSTER_PARAMETERS], lambda values: bool(values[option]))


def on_cluster_unless(option: str) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """The same for a command that needs no cluster if an option is given: its session is None then."""
    return _command_with([*CLUSTER_PARAMETERS], lambda values: not values[option])


def _command_with(
    added: list[inspect.Parameter], needs_cluster: Callable[[dict[str, Any]], bool], refused: int = REFUSED
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    names = [parameter.name for parameter in added]

    def wrap(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(**values: Any) -> None:
            target = ClusterTarget(**{name: values.pop(name) for name in names})
            if needs_cluster(values):
                run_on_cluster(target, lambda session: function(session, **values), refused)
            else:
                run_to_its_end(function(None, **values), refused)

        own = [_evaluated(parameter, function) for parameter in _own_parameters(function)]
        command.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *added]}
        return command

    return wrap


def _own_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())[1:]


def _evaluated(parameter: inspect.Parameter, function: Callable[..., Any]) -> inspect.Parameter:
    """With its annotation as a type; that of the session is never needed, nor its module."""
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, function.__globals__)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


def run_on_cluster(
    target: ClusterTarget, work: Callable[[ClusterSession], Awaitable[None]], refused: int = REFUSED
) -> None:
    """Run a coroutine with a session; a cluster that refuses or does not answer ends it with an exit status."""
    run_to_its_end(_with_session(target, work), refused)


def run_to_its_end(work: Awaitable[None], refused: int = REFUSED) -> None:
    """Run what asks a server; one that refuses or does not answer ends it with an exit status."""
    from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
    from stromboli.kube.credentials import BadConfig
    from stromboli.kube.request import ApiError, NoResponse

    try:
        asyncio.run(_awaited(work))
    except ApiError as error:
        print_error(refusal_text(error))
        raise typer.Exit(refused) from None
    except NoResponse as error:
        print_error(shown(f"the cluster does not answer: {error}") + "; is it running, and the one you mean?")
        raise typer.Exit(refused) from None
    except (BadConfig, ClusterError) as error:
        print_error(shown(str(error)))
        status = getattr(error, "exit_status", REFUSED)
        raise typer.Exit(refused if status == REFUSED else status) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _with_session(target: ClusterTarget, work: Callable[[ClusterSession], Awaitable[None]]) -> None:
    from stromboli.cli.cluster.cluster_choice import find_api_server
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.embedded.running_clusters import FolderError
    from stromboli.kube.api_client import Client
    from stromboli.kube.credentials import BadConfig

    try:
        access, running = find_api_server(target.data, target.kubeconfig, target.context)
    except (FolderError, BadConfig) as error:
        raise Usage(str(error)) from None
    namespace = target.namespace or access.namespace or DEFAULT_NAMESPACE
    async with Client(access) as client:
        given = bool(target.namespace)
        await work(ClusterSession(client, running, namespace, target.all_namespaces, given))
