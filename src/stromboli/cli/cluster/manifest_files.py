"""Manifests that users give with `-f`, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of, namespace_of
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

MOST_OBJECTS = 10_000
"""In the files of a command line."""
FILES = typer.Option(
    ...,
    "--filename",
    "-f",
    metavar="FILE",
    help="A file or a folder of manifests, or - for standard input; may be given again.",
)


def read_manifests(paths: Sequence[str]) -> list[tuple[str, Manifest]]:
    """The objects of files, folders and standard input, each with where it is; `Usage` if they cannot be read."""
    import msgspec

    from stromboli.api.errors import Unreadable
    from stromboli.api.manifests.manifest_sources import find_files, read_sources

    objects: list[tuple[str, Manifest]] = []
    for path in paths:
        file = path
        try:
            for file in find_files(path):
                for source in read_sources(file):
                    content = msgspec.json.decode(source.raw)
                    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
                        raise Usage(f"{source.where}: no object: it has no metadata")
                    objects.append((source.where, content))
                    if len(objects) > MOST_OBJECTS:
                        raise Usage(
                            f"{file}: more than {MOST_OBJECTS} objects; give them in several commands"
                        )
        except Unreadable as error:
            raise Usage(shown(f"{file}: {error}")) from None
    return objects


def manifests_of_kinds(
    paths: Sequence[str], resources: Sequence[Resource]
) -> list[tuple[Resource, Manifest]]:
    """The objects of files that must all be of these kinds, each with its kind."""
    kinds = {(resource.group, resource.kind): resource for resource in resources}
    objects = []
    for where, content in read_manifests(paths):
        version = str(content.get("apiVersion") or "")
        resource = kinds.get((version.rpartition("/")[0], str(content.get("kind"))))
        if resource is None:
            wanted = " or ".join(f"{each.api_version} {each.kind}" for each in resources)
            raise Usage(
                shown(f"{where}: {version} {content.get('kind')} is no {wanted}")
                + "; kubectl create -f takes any kind"
            )
        if not name_of(content) and not content["metadata"].get("generateName"):
            raise Usage(f"{where}: metadata.name is missing")
        objects.append((resource, content))
    return objects


def namespace_for(session: ClusterSession, manifest: Manifest) -> str:
    """Where an object goes: its own namespace, else that of the command line; `Usage` if both are given and differ."""
    own = namespace_of(manifest)
    if own and session.namespace_given and own != session.namespace:
        raise Usage(
            shown(
                f"{name_of(manifest)} is to be in namespace {own}, and -n says {session.namespace}: leave out one"
            )
        )
    return own or session.namespace
