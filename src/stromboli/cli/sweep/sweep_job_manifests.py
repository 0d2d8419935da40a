"""What a sweep creates on a cluster, by its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
import yaml

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.cli.cli_errors import Usage
from stromboli.cli.output import WIDE, Format, write_as
from stromboli.cli.sweep.sweep_options import ClusterOptions
from stromboli.simulator.sweeps.cluster_job import (
    InputsTooLarge,
    JobSettings,
    Manifest,
    config_map,
    job_name,
    plan_path,
    sweep_job,
)
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

DEFAULT_NAMESPACE = "default"


def job_settings(plan: SweepPlan, options: ClusterOptions, namespace: str = "") -> JobSettings:
    """What the options ask for, checked; `namespace` is that of the kubeconfig."""
    if not options.claim:
        raise Usage(
            "--on-cluster needs --claim NAME: a PersistentVolumeClaim that all pods can write to, for the results"
        )
    return JobSettings(
        options.namespace or namespace or DEFAULT_NAMESPACE,
        options.claim,
        options.image,
        min(options.parallelism, len(plan.distinct)),
        options.queue,
        requests_of(options.requests),
    )


def requests_of(text: str) -> Mapping[str, str]:
    """`cpu=1,memory=2Gi` as a resource list."""
    requests: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, amount = (word.strip() for word in part.partition("="))
        try:
            usable = bool(name) and exact(amount) >= 0
        except QuantityError:
            usable = False
        if not usable:
            raise Usage(f"--requests {part}: no resource with an amount; write cpu=1,memory=2Gi")
        requests[name] = amount
    return requests


def manifests(
    name: str, plan: SweepPlan, settings: JobSettings, exported: bool, reachable: bool
) -> list[Manifest]:
    """The ConfigMap and the Job; only the Job, if the inputs lie in the volume or are to be copied there."""
    if exported:
        return [sweep_job(name, plan, settings, in_volume=True)]
    try:
        return [config_map(name, plan, settings), sweep_job(name, plan, settings, in_volume=False)]
    except InputsTooLarge as error:
        if reachable:
            return [sweep_job(name, plan, settings, in_volume=True)]
        raise Usage(
            f"{error}: name the folder where the volume of claim {settings.claim} is mounted here with"
            " --volume-folder, or copy what `stromboli sweep GRID.yaml --export plan` writes into the"
            f" volume as {plan_path(name, plan)} and give --exported"
        ) from None


def print_manifests(plan: SweepPlan, options: ClusterOptions, output: Format) -> None:
    """What would be created, without asking a cluster."""
    name, reachable = job_name(plan), options.volume_folder is not None
    created = manifests(name, plan, job_settings(plan, options), options.exported, reachable)
    if output is Format.JSON:
        write_as(output, {"apiVersion": "v1", "kind": "List", "items": created})
    else:
        typer.echo(yaml.dump_all(created, Dumper=_ManifestDumper, sort_keys=False, width=WIDE).rstrip())


class _ManifestDumper(yaml.SafeDumper):
    """Texts of several lines as such."""

    def represent_str(self, data: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_str)
