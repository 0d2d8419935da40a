"""`stromboli admission`: the webhook server, from flags to a signal."""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from aiohttp import web

from stromboli.admission import certificate_source, webhook_registration
from stromboli.admission.cluster_context import ClusterContext
from stromboli.admission.options import Options
from stromboli.admission.rules.admission_table import REVIEWS
from stromboli.admission.rules.resource_groups import read_groups
from stromboli.admission.rules.rule_context import JOB_PLUGINS, Settings
from stromboli.admission.webhook_handler import MAX_BODY, handler
from stromboli.api import names
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.http_listener import HttpListener
from stromboli.daemon.log_format import about
from stromboli.daemon.process_shell import DaemonProcess, cancel
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)

RESYNC = 60.0
"""Seconds after which certificates, webhook configurations and files are checked again."""
RETRY = 1.0
"""The same after a failed attempt, and while a webhook configuration is missing."""
LIMITS = ConnectionLimits(connections=1024)
"""API servers need a few connections each."""
_MAX_CONFIGURATION = 1024 * 1024


class Process(DaemonProcess[Options]):
    """Serves reviews."""

    def __init__(self, options: Options, access: Access, resync: float = RESYNC) -> None:
        super().__init__(options, access)
        self._resync = resync
        self._configured: tuple[int, int] | None = None
        self._serving = False
        self._published = False
        self.port = 0
        """Where reviews are served."""
        self.guard = TelemetryGuard()

    async def _run(self, stack: AsyncExitStack) -> int:
        client = await self._open_client(stack)
        await self._serve_endpoints(stack, self)
        cluster = ClusterContext(client, self._settings())
        self._read_configuration(cluster)
        watching = asyncio.create_task(cluster.reflector.run())
        stack.push_async_callback(cancel, watching)
        source = self._certificate_source(client)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stromboli-admission-")))
        try:
            keys = await source.current()
            certificate_source.load(context, keys, folder)
            await self._unless_stopped(cluster.reflector.synced.wait())
        except (certificate_source.CertificateError, NoResponse, msgspec.DecodeError) as error:
            log.error("%s", error)
            return 1
        if self._stopping.is_set():
            return 0
        await self._serve(stack, cluster, context)
        keeping = asyncio.create_task(self._keep_certificate(client, source, context, folder, cluster))
        stack.push_async_callback(cancel, keeping)
        await self._stopping.wait()
        await asyncio.sleep(self.options.shutdown_delay_duration)
        return 0

    # -- what the endpoints show

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        if self._stopping.is_set():
            return "stopping"
        if not self._serving:
            return "starting"
        return "" if self._published else "publishing the CA bundle"

    async def metrics(self) -> bytes:
        return b""

    # -- parts

    def _settings(self) -> Settings:
        options = self.options
        return Settings(
            scheduler_names=options.scheduler_name or (names.SCHEDULER_NAME,),
            job_plugins=(*JOB_PLUGINS, *options.job_plugin),
            max_queue_depth=options.max_queue_depth,
            root_queue_protection=options.enable_root_queue_protection,
            queue_allocated_pods_check=options.enable_queue_allocated_pods_check,
            scheduling_gates=options.gated,
        )

    def _certificate_source(self, client: Client) -> certificate_source.CertificateSource:
        options = self.options
        if options.tls_cert_file:
            return certificate_source.CertificateFiles(
                options.tls_cert_file, options.tls_private_key_file, options.ca_cert_file
            )
        namespace = options.webhook_namespace or names.DEFAULT_NAMESPACE
        own = options.own_names or ["localhost"]
        return certificate_source.CertificateSecret(
            client, namespace, options.webhook_secret, own, lambda: datetime.now(UTC)
        )

    async def _serve(self, stack: AsyncExitStack, cluster: ClusterContext, context: ssl.SSLContext) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        for path in self.options.reviews:
            app.router.add_post(path, handler(REVIEWS[path], cluster.context_for))
        runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=self.options.graceful_shutdown_time,
        )
        listener = HttpListener(runner, LIMITS, context)
        stack.push_async_callback(listener.stop)
        await listener.start(self.options.bind_address or None, self.options.port)
        self.port = listener.port
        self._serving = True
        log.info("reviewing", extra=about(port=self.port, paths=",".join(self.options.reviews)))

    async def _keep_certificate(
        self,
        client: Client,
        source: certificate_source.CertificateSource,
        context: ssl.SSLContext,
        folder: Path,
        cluster: ClusterContext,
    ) -> None:
        """Renew the certificate, write its authority into webhook configurations, and reload our own configuration."""
        served = b""
        while True:
            complete = False
            try:
                keys = await source.current()
                if keys.certificate != served:
                    certificate_source.load(context, keys, folder)
                    certificate_source.tell_expiry(keys, datetime.now(UTC))
                    served = keys.certificate
                configurations = self.options.configurations if keys.authority else ()
                complete = not await webhook_registration.write_ca_bundle(
                    client, configurations, keys.authority
                )
                self._published = True
            except (
                certificate_source.CertificateError,
                ApiError,
                NoResponse,
                TimeoutError,
                msgspec.DecodeError,
            ) as error:
                log.warning("cannot renew or publish the certificate: %s", error)
            except Exception:  # the next attempt may succeed
                log.exception("cannot renew or publish the certificate")
            self._read_configuration(cluster)
            await asyncio.sleep(self._resync if complete else min(RETRY, self._resync))

    def _read_configuration(self, cluster: ClusterContext) -> None:
        """Load the resource groups if their file changed; if it cannot be read, the old ones stay."""
        path = self.options.admission_conf
        if path is None:
            return
        try:
            state = path.stat()
            seen = state.st_mtime_ns, state.st_size
            if seen == self._configured:
                return
            self._configured = seen
            if state.st_size > _MAX_CONFIGURATION:
                raise ValueError(f"larger than {_MAX_CONFIGURATION} bytes")
            groups = read_groups(path.read_text())
        except (OSError, ValueError) as error:
            log.error("%s: %s", path, error)
            return
        cluster.settings = replace(cluster.settings, resource_groups=groups)
        log.info("read resource groups", extra=about(file=path, groups=len(groups)))
