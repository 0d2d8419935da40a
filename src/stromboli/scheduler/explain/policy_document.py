"""What the leader reports about its policy: plain data, as JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class PolicyMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An error or a warning about a policy."""

    text: str
    line: int = 0
    """The line of the file; 0 if unknown."""


class PluginInForce(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A plugin of a tier."""

    name: str
    arguments: dict[str, Any] = {}
    """By the keys of the configuration file, defaults included."""
    arguments_left_out: bool = False
    """Whether they are too long to be reported."""
    switched_off: list[str] = []
    """Its switches that are off, such as `enablePreemptable`."""


class ActionInForce(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An action; actions are listed in the order in which they run."""

    name: str
    arguments: dict[str, Any] = {}
    """By the keys of the configuration file, defaults included."""
    arguments_left_out: bool = False


class RefusedEdit(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A version of the policy that was rejected; the previous one stays active."""

    time: float
    """When it was read, in seconds since 1970."""
    source: str = ""
    """The file."""
    errors: list[PolicyMessage] = []
    more_errors: int = 0
    """Errors that are not listed."""
    is_latest: bool = False
    """Whether no other version was read since."""


class SetAside(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An order or a score that cycles do not use, because it failed for all jobs."""

    plugin: str
    point: str
    since: float
    """In seconds since 1970."""
    why: str = ""


class PolicyDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The active policy."""

    source: str
    """The file or preset."""
    loaded: float
    """When it became active, in seconds since 1970."""
    digest: str
    """SHA-256 of its text without passwords, as `sha256:` and hexadecimal digits."""
    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    text: str = ""
    """The text as it was loaded, without passwords."""
    text_left_out: int = 0
    """How many characters of the text are omitted."""
    actions: list[ActionInForce] = []
    more_actions: int = 0
    tiers: list[list[PluginInForce]] = []
    more_plugins: int = 0
    """How many plugins of further tiers are omitted."""
    metrics: dict[str, str] = {}
    """The source of node usage, without the password."""
    warnings: list[PolicyMessage] = []
    more_warnings: int = 0
    refused: RefusedEdit | None = None
    """The last edit that was rejected since this leader started."""
    set_aside: list[SetAside] = []
