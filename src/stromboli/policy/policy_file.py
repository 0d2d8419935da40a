"""A configuration file that may change while the scheduler runs."""

from pathlib import Path

from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.policy.policy import Policy, PolicyError, load_policy
from stromboli.policy.vocabulary import Vocabulary


class PolicyFile:
    """The last good policy of a file: a wrong new version is reported and changes nothing."""

    def __init__(
        self, path: Path, catalog: Vocabulary, lenient: bool = False, fallback: Policy | None = None
    ) -> None:
        """Read the file; if it is wrong, `fallback` is in force until it is right, or `PolicyError` without one."""
        self.path = path
        self.catalog = catalog
        self.lenient = lenient
        self._content = self._read()
        self.problems: tuple[str, ...] = ()
        """Why the fallback is in force."""
        try:
            self.current: Policy = self._load(self._content)
        except PolicyError as error:
            if fallback is None:
                raise
            self.current, self.problems = fallback, error.errors

    def refresh(self) -> list[str]:
        """Read the file again and take over what is new and right; messages if it changed."""
        content = self._read()
        if content == self._content:
            return []
        self._content = content
        try:
            self.current = self._load(content)
        except PolicyError as error:
            return [*error.errors, f"{self.path}: the policy loaded before stays in force"]
        return [*self.current.warnings, f"{self.path}: the new policy is in force"]

    def _read(self) -> bytes | str:
        """The content of the file, or the sentence why it cannot be read."""
        try:
            with self.path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            return f"{self.path}: cannot be read: {error.strerror}"

    def _load(self, content: bytes | str) -> Policy:
        if isinstance(content, str):
            raise PolicyError((content,))
        return load_policy(content, self.catalog, str(self.path), self.lenient)
