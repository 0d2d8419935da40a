"""The command: reads the metrics of a scheduler and says what they mean, once or for each interval."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage, print_note
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.on_cluster import on_cluster_unless
from stromboli.cli.output import StatusFormat
from stromboli.kube.request import ApiError, NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.metrics.metric_samples import Samples
    from stromboli.cli.metrics.metrics_source import MetricsSource, MetricsText


@on_cluster_unless("url")
async def metrics(
    session: ClusterSession | None,
    url: str = typer.Option(
        "",
        "--url",
        metavar="URL",
        help="Read them there, as http://127.0.0.1:8080/metrics, without a cluster.",
    ),
    system_namespace: str = typer.Option(
        "volcano-system", "--system-namespace", metavar="NAME", help="Where the scheduler runs."
    ),
    output: StatusFormat = typer.Option(StatusFormat.TABLE, "--output", "-o", help="How to show it."),
    watch: bool = typer.Option(
        False, "--watch", "-w", show_default=False, help="Go on, and show what each interval added."
    ),
    interval: float = typer.Option(
        5.0, "--interval", metavar="SECONDS", min=1.0, max=3600.0, help="Of --watch."
    ),
    raw: bool = typer.Option(
        False, "--raw", show_default=False, help="Print the page as it is, and no summary."
    ),
) -> None:
    """Say what the metrics of a scheduler mean: how long cycles take and pods wait, what fails, what queues have.

    Each line says whether that is fine, and where to look if it is not. Of Stromboli's scheduler, of Volcano's, or of
    `stromboli up`; on a cluster it is found by its Lease or its Service. Exit status 1 if there are none to read.
    """
    from stromboli.cli.metrics.metrics_source import (
        CONTROLLERS,
        AddressSource,
        ClusterSource,
    )
    from stromboli.cli.metrics.summary_text import print_raw

    if raw and (watch or output is not StatusFormat.TABLE):
        raise Usage("--raw prints the page as it is: leave out --watch and --output")
    sources: list[MetricsSource] = []
    if session is None:
        sources.append(AddressSource(url))
    else:
        sources.append(ClusterSource(session, system_namespace))
        if session.running is None:
            sources.append(ClusterSource(session, system_namespace, CONTROLLERS))
    if raw:
        print_raw((await sources[0].read()).text)
    else:
        await _Reading(sources, output).show(interval if watch else 0.0)


class _Reading:
    """Pages that are read and summarised, one after the other."""

    def __init__(self, sources: list[MetricsSource], output: StatusFormat) -> None:
        self._scheduler, *others = sources
        self._controllers = others[0] if others else None
        self._output = output

    async def show(self, interval: float) -> None:
        """Once, or with an interval what each of them adds, until interrupted."""
        before, of_controllers, place = await self._read()
        self._print(before, of_controllers, place)
        began = time.monotonic()
        while interval:
            await asyncio.sleep(interval)
            try:
                now, controllers_now, place = await self._read()
            except (ApiError, NoResponse, ClusterError) as error:
                print_note(f"not read this time: {shown(str(error))}")
                continue
            seconds = time.monotonic() - began
            began += seconds
            added = None
            if of_controllers is not None and controllers_now is not None:
                added = controllers_now.since(of_controllers, seconds)
            self._print(now.since(before, seconds), added, place)
            before, of_controllers = now, controllers_now

    async def _read(self) -> tuple[Samples, Samples | None, str]:
        page = await self._scheduler.read()
        samples = _samples(page)
        if self._controllers is None:
            return samples, None, page.place
        try:
            return samples, _samples(await self._controllers.read()), page.place
        except (ApiError, NoResponse, ClusterError) as error:
            if self._output is StatusFormat.WIDE:
                print_note(shown(str(error)))
            self._controllers = None
            return samples, None, page.place

    def _print(self, samples: Samples, controllers: Samples | None, place: str) -> None:
        from stromboli.cli.cluster.object_output import ObjectFormat, write_document
        from stromboli.cli.metrics.metrics_summary import summarise
        from stromboli.cli.metrics.summary_text import print_summary

        summary = summarise(samples, controllers, time.time())
        if self._output in (StatusFormat.JSON, StatusFormat.YAML):
            write_document({**summary.document, "source": place}, ObjectFormat(self._output.value))
            return
        if summary.seconds is not None:
            typer.echo()
        print_summary(summary, place, self._output is StatusFormat.WIDE)


def _samples(page: MetricsText) -> Samples:
    """What a page says; what of it cannot be read is told."""
    from stromboli.cli.metrics.metric_samples import Samples

    samples, read = Samples.of_page(page.text)
    if not read.named:
        raise ClusterError(f"{page.place} answers with what are no metrics; their path is mostly /metrics")
    if read.unreadable:
        print_note(f"{read.unreadable} lines of {shown(page.place)} cannot be read, and are left out")
    if read.left_out:
        print_note(f"{read.left_out} series of {shown(page.place)} are left out: there are too many")
    return samples
