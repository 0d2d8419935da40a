"""A configuration file that may change while the scheduler runs."""

from pathlib import Path
from typing import NamedTuple

from stromboli.api.errors import error_text
from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.policy.policy import Policy, PolicyError, load_policy
from stromboli.policy.vocabulary import Vocabulary


class PolicyReading(NamedTuple):
    """What came of reading a policy: whether it is in force, and everything to be said about it."""

    in_force: bool
    problems: tuple[str, ...]
    outcome: str = ""
    """What is in force now, where that is news."""

    @property
    def messages(self) -> tuple[str, ...]:
        return (*self.problems, self.outcome) if self.outcome else self.problems


def first_reading(policy: Policy) -> PolicyReading:
    """Of a policy that is in force from the start."""
    return PolicyReading(True, policy.warnings)


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
        try:
            self.current: Policy = self._load(self._content)
            self.first = first_reading(self.current)
        except PolicyError as error:
            if fallback is None:
                raise
            self.current = fallback
            instead = f"{path}: the built-in policy is in force until the file is right"
            self.first = PolicyReading(False, error.errors, instead)

    def refresh(self) -> PolicyReading | None:
        """Read the file again and take over what is new and right; nothing if it has not changed."""
        content = self._read()
        if content == self._content:
            return None
        self._content = content
        try:
            self.current = self._load(content)
        except PolicyError as error:
            return PolicyReading(False, error.errors, f"{self.path}: the policy loaded before stays in force")
        return PolicyReading(True, self.current.warnings, f"{self.path}: the new policy is in force")

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
        try:
            return load_policy(content, self.catalog, str(self.path), self.lenient)
        except PolicyError:
            raise
        except Exception as error:  # whatever a file does to us, the policy before must stay in force
            raise PolicyError((f"{self.path}: cannot be read: {error_text(error)}",)) from error
