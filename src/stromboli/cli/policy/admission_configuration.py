"""The configuration of admission, resource groups of pods, put in the place of the one that a cluster has."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import typer

from stromboli.admission.rules.resource_groups import read_groups
from stromboli.api.manifests.manifest_sources import STDIN
from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.cli.cli_errors import Usage, print_warning
from stromboli.cli.cluster.change_options import DryRun
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import CONFIG_MAPS, MUTATING_WEBHOOKS, name_of
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.policy.policy_place import ConfigMapKey, PolicyPlace, put_policy
from stromboli.kube.request import ApiError

ADMISSION_KEY = ConfigMapKey("volcano-system", "volcano-admission-configmap", "volcano-admission.conf")
PODS_WEBHOOK = "mutatepod.volcano.sh"


async def apply_admission(session: ClusterSession, file: str, dry_run: DryRun, yes: bool) -> None:
    """Check a configuration, show what changes, write it, and say if nobody would ask for it."""
    text = _read(file)
    try:
        groups = read_groups(text)
    except ValueError as error:
        raise Usage(shown(f"{file}: {error}")) from None
    if session.running is not None:
        raise ClusterError("a cluster of `stromboli up` has admission built in, without resource groups")
    found = await session.find(CONFIG_MAPS, ADMISSION_KEY.name, ADMISSION_KEY.namespace)
    before = str(((found or {}).get("data") or {}).get(ADMISSION_KEY.key) or "")
    place = PolicyPlace(str(ADMISSION_KEY), before, config_map=ADMISSION_KEY, object=found)
    if before != text and dry_run is not DryRun.CLIENT:
        await put_policy(session, place, text, dry_run=True)  # refused before anything is shown
    for line in difflib.unified_diff(before.splitlines(), text.splitlines(), "in force", file, lineterm=""):
        typer.echo(shown(line))
    if before == text:
        typer.echo(f"{ADMISSION_KEY} has it already")
        return
    if dry_run is DryRun.CLIENT:
        typer.echo(f"{ADMISSION_KEY} would be replaced (client dry run)")
        return
    if not yes and dry_run is DryRun.NONE and sys.stdin.isatty():
        typer.confirm(f"Replace {ADMISSION_KEY}?", abort=True)
    if dry_run is DryRun.NONE:
        await put_policy(session, place, text, dry_run=False)
    suffix = " (server dry run)" if dry_run is DryRun.SERVER else ""
    typer.echo(
        f"{ADMISSION_KEY} replaced: {len(groups)} resource group{'' if len(groups) == 1 else 's'}{suffix}"
    )
    await _warn_if_unasked(session)


def _read(file: str) -> str:
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Usage(f"{file}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise Usage(f"{file}: larger than {MAX_BYTES} bytes")
    return content.decode(errors="replace")


async def _warn_if_unasked(session: ClusterSession) -> None:
    """Groups work only where the API server asks admission about pods."""
    try:
        configurations = (await session.list(MUTATING_WEBHOOKS)).items
    except ApiError as error:
        print_warning(f"whether pods are sent to admission is not known: {refusal_text(error)}")
        return
    asked = [
        name_of(configuration)
        for configuration in configurations
        for webhook in configuration.get("webhooks") or ()
        if webhook.get("name") == PODS_WEBHOOK
    ]
    if not asked:
        print_warning(
            f"no webhook {PODS_WEBHOOK} is installed, so no pod is put into a group: apply deploy/admission"
        )
