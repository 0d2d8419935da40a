"""`ssh`: pods of a job can log in to each other without a password (spec 06 3.2)."""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass

from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend, metadata_of
from stromboli.controllers.job.plugins.job_plugin import Attachment, JobPlugin, hosts_of
from stromboli.policy.arguments import arg

USUAL_FOLDER = "/root/.ssh"
USUAL_PORT = 22
_FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Which keys, and where they go."""

    folder: str = arg("ssh-key-file-path", USUAL_FOLDER, "Where in the containers the keys are.")
    private_key: str = arg("ssh-private-key", "", "A key of your own; a new one is made if empty.")
    public_key: str = arg("ssh-public-key", "", "The public part of your own key.")
    port: int = arg("ssh-port", USUAL_PORT, "Where sshd listens.")


class Ssh(JobPlugin):
    """A key pair in a Secret, mounted into every container."""

    name = "ssh"
    Arguments = Arguments

    def dress(self, member: Member, pod: Manifest) -> None:
        spec = pod["spec"]
        name = _secret_name(member.job)
        folder = self.arguments.folder
        source = {
            "secretName": name,
            "items": [{"key": key, "path": f".ssh/{key}"} for key in _FILES],
            "defaultMode": 0o600 if folder == USUAL_FOLDER else 0o644,
        }
        extend(spec, "volumes", {"name": name, "secret": source})
        for container in containers(spec, init=True):
            extend(container, "volumeMounts", {"name": name, "mountPath": folder, "subPath": ".ssh"})

    def attachments(self, job: Job) -> Iterator[Attachment]:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": metadata_of(job, _secret_name(job)),
            "data": {"config": _encoded(self._config(job))},
        }
        yield Attachment(manifest, follows="data", secrets=self._keys)

    def _keys(self) -> dict[str, str]:
        """The user's keys, or new ones; made once per job, as running pods keep those they started with."""
        private, public = self.arguments.private_key, self.arguments.public_key
        if not private:
            private, public = _key_pair()
        return {
            "id_rsa": _encoded(private),
            "id_rsa.pub": _encoded(public),
            "authorized_keys": _encoded(public),
        }

    def _config(self, job: Job) -> str:
        port = self.arguments.port if 1 <= self.arguments.port <= 65535 else USUAL_PORT
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks:
            for host in hosts_of(job, task):
                lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}", f"  Port {port}"]
        return "\n".join(lines) + "\n"


def _secret_name(job: Job) -> str:
    return f"{job.name}-ssh"


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _key_pair() -> tuple[str, str]:
    # Imported late: whoever only dresses pods needs no keys.
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"
