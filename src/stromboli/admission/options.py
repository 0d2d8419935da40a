"""The flags of Volcano's admission server (spec 07 2.2), with its names, defaults and way of writing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from stromboli.admission.rules.admission_table import REVIEWS
from stromboli.admission.rules.rule_context import JOB_PLUGINS
from stromboli.api import names
from stromboli.daemon import flags
from stromboli.daemon.common_options import CommonOptions
from stromboli.daemon.flags import BadFlag, boolean, comma_separated, duration, flag, integer, path, string

SECRET = "stromboli-admission-secret"
CONFIGURATION = "stromboli-admission"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(CommonOptions):
    """The flags, parsed."""

    tls_cert_file: str = flag(string, "", "Certificate to serve with; without it, one is made and renewed")
    ca_cert_file: str = flag(string, "", "The authority that signed it, told to the API server")
    webhook_secret: str = flag(string, SECRET, "Secret that keeps the certificate we make, in our namespace")
    webhook_configuration: tuple[str, ...] = flag(
        comma_separated,
        (CONFIGURATION,),
        "Webhook configurations that are told our authority; repeatable",
    )
    bind_address: str = flag(string, "", "Where to listen; empty: on every address", name="listen-address")
    port: int = flag(integer, 8443, "On which port")
    webhook_namespace: str = flag(string, "", "Namespace of our Service")
    webhook_service_name: str = flag(string, "", "Name of our Service")
    webhook_url: str = flag(string, "", "Where the API server finds us, if not by a Service")
    enabled_admission: tuple[str, ...] = flag(comma_separated, tuple(REVIEWS), "Which reviews are served")
    scheduler_name: tuple[str, ...] = flag(
        comma_separated,
        (names.SCHEDULER_NAME,),
        "Names of our schedulers; the first one is given to jobs; repeatable",
    )
    job_plugin: tuple[str, ...] = flag(
        comma_separated, (), f"Job plugins of your own, besides {', '.join(JOB_PLUGINS)}; repeatable"
    )
    admission_conf: Path | None = flag(path, None, "Resource groups of pods; watched while we run")
    graceful_shutdown_time: float = flag(duration, 30.0, "How long reviews under way may take when we stop")
    shutdown_delay_duration: float = flag(
        duration, 0.0, "How long to accept reviews after a stop signal, until API servers use another replica"
    )
    enable_queue_allocated_pods_check: bool = flag(
        boolean, False, "Refuse to delete a queue that has pods or unfinished jobs"
    )
    max_queue_depth: int = flag(integer, 5, "How deep queues may lie below the root")
    enable_root_queue_protection: bool = flag(boolean, True, "Refuse to change the root queue's amounts")

    @property
    def reviews(self) -> tuple[str, ...]:
        return self.enabled_admission or tuple(REVIEWS)

    @property
    def configurations(self) -> tuple[str, ...]:
        return self.webhook_configuration or (CONFIGURATION,)

    @property
    def gated(self) -> bool:
        return self.gate(names.QUEUE_ADMISSION, False)

    @property
    def own_names(self) -> list[str]:
        """Under which names the API server may call us."""
        service, space = self.webhook_service_name, self.webhook_namespace
        hosts = []
        if service:
            hosts += [service, f"{service}.{space}", f"{service}.{space}.svc"] if space else [service]
        if host := urlsplit(self.webhook_url).hostname:
            hosts.append(host)
        return hosts


ACCEPTED = flags.Accepted(flags.LOGGING, switches=flags.LOGGING_SWITCHES)


GATES = flags.Gates({names.QUEUE_ADMISSION})


def parse(arguments: Sequence[str]) -> Options:
    """What the command line says; `BadFlag` if it makes no sense."""
    options = flags.parse(Options, ACCEPTED, arguments)
    if not 1 <= options.port <= 65535:
        raise BadFlag(
            "Configured port is invalid: the port should be in the range of 1 and 65535"
            f" (--port is {options.port})"
        )
    for review in options.enabled_admission:
        if review not in REVIEWS:
            raise BadFlag(
                f"enabled admission {review} not found on the admission registered map;"
                f" --enabled-admission takes {', '.join(REVIEWS)}"
            )
    if not (options.webhook_url or options.webhook_service_name or options.webhook_namespace):
        raise BadFlag(
            "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty;"
            " set --webhook-namespace and --webhook-service-name, or --webhook-url"
        )
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise BadFlag("--tls-cert-file and --tls-private-key-file go together")
    return replace(options, notes=(*options.notes, *GATES.notes(options.feature_gates)))


def usage() -> str:
    """All flags, one per line."""
    return flags.usage(Options, ACCEPTED)
