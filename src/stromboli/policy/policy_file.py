"""A configuration file or ConfigMap that may change while the scheduler runs."""

from pathlib import Path
from typing import NamedTuple

from stromboli.api.errors import error_text
from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.policy.policy import Extensions, Policy, PolicyError, load_policy
from stromboli.policy.policy_problems import PlacedMessage


class PolicyReading(NamedTuple):
    """The result of reading a policy: whether it is applied, and its messages."""

    in_force: bool
    problems: tuple[str, ...]
    outcome: str = ""
    """The policy that is in force now, if that changed."""

    @property
    def messages(self) -> tuple[str, ...]:
        return (*self.problems, self.outcome) if self.outcome else self.problems


def first_reading(policy: Policy) -> PolicyReading:
    """The reading of a policy that is in force from the start."""
    return PolicyReading(True, policy.warnings)


class PolicyText(NamedTuple):
    """The location of a policy, and its bytes or the reason why they cannot be read."""

    source_name: str
    content: bytes | str


class PolicyFile:
    """The last valid policy of a file: an invalid new version is reported and changes nothing."""

    def __init__(
        self, path: Path, catalog: Extensions, lenient: bool = False, fallback: Policy | None = None
    ) -> None:
        """Read the file; while it is invalid, `fallback` is in force, or without one `PolicyError` raised."""
        self.path = path
        self.catalog = catalog
        self.lenient = lenient
        self._text = self._read()
        try:
            self.current: Policy = self._load(self._text)
            self.first = first_reading(self.current)
        except PolicyError as error:
            if fallback is None:
                raise
            self.current = fallback
            instead = f"{path}: the built-in policy is in force until the file is right"
            self.first = PolicyReading(False, error.errors, instead)

    @property
    def source_name(self) -> str:
        """The location of the policy that was read last."""
        return self._text.source_name

    def refresh(self) -> PolicyReading | None:
        """Read the file again and apply a valid new version; None if it has not changed."""
        text = self._read()
        if text == self._text:
            return None
        self._text = text
        try:
            self.current = self._load(text)
        except PolicyError as error:
            kept = self.current.source_name
            before = "the policy loaded before" if kept == text.source_name else f"the policy of {kept}"
            return PolicyReading(False, error.errors, f"{text.source_name}: {before} stays in force")
        return PolicyReading(True, self.current.warnings, f"{text.source_name}: the new policy is in force")

    def _read(self) -> PolicyText:
        try:
            with self.path.open("rb") as file:
                return PolicyText(str(self.path), file.read(MAX_BYTES + 1))
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            return PolicyText(str(self.path), PlacedMessage(str(self.path), 0, reason))

    def _load(self, text: PolicyText) -> Policy:
        if isinstance(text.content, str):
            raise PolicyError((text.content,))
        try:
            return load_policy(text.content, self.catalog, text.source_name, self.lenient)
        except PolicyError:
            raise
        except Exception as error:  # on any error, the previous policy must stay in effect
            reason = f"cannot be read: {error_text(error)}"
            raise PolicyError((PlacedMessage(text.source_name, 0, reason),)) from error


class OverridablePolicy(PolicyFile):
    """The policy of a ConfigMap while it exists, else the one that the process was started with."""

    def __init__(
        self, base: Policy | PolicyFile, override_name: str, catalog: Extensions, lenient: bool
    ) -> None:
        self.override = ""
        """The text of the ConfigMap, which its watch may set from another thread; empty without a ConfigMap."""
        self._override_name = override_name
        self._base = base
        super().__init__(Path(), catalog, lenient)

    def _read(self) -> PolicyText:
        if override := self.override:
            return PolicyText(self._override_name, override.encode(errors="replace")[: MAX_BYTES + 1])
        if isinstance(self._base, PolicyFile):
            return self._base._read()
        return PolicyText(self._base.source_name, b"")

    def _load(self, text: PolicyText) -> Policy:
        if isinstance(self._base, Policy) and not text.content:
            return self._base
        return super()._load(text)
