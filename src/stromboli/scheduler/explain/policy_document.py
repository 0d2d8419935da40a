"""What the leader reports about its policy: plain data, as JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class PolicyMessage(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What is wrong or odd about a policy."""

    text: str
    line: int = 0
    """Of the file; 0 if no line is known."""


class PluginInForce(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A plugin as a tier lists it."""

    name: str
    arguments: dict[str, Any] = {}
    """By the keys of the configuration file, defaults included."""
    arguments_left_out: bool = False
    """Whether they are too long to be reported."""
    switched_off: list[str] = []
    """Its switches that are off, such as `enablePreemptable`."""


class ActionInForce(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An action, in the order in which they run."""

    name: str
    arguments: dict[str, Any] = {}
    """By the keys of the configuration file, defaults included."""
    arguments_left_out: bool = False


class RefusedEdit(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A version of the policy that was refused, while the one before stayed in force."""

    time: float
    """When it was read, in seconds since 1970."""
    source: str = ""
    """The file."""
    errors: list[PolicyMessage] = []
    more_errors: int = 0
    """Errors that are not among them."""
    is_latest: bool = False
    """Whether nothing was read since: the file still is as it was refused."""


class SetAside(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An order or a score that takes no part in cycles, as it failed for all jobs."""

    plugin: str
    point: str
    since: float
    """In seconds since 1970."""
    why: str = ""


class PolicyDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The policy in force."""

    source: str
    """The file or preset."""
    loaded: float
    """When it was put in force, in seconds since 1970."""
    digest: str
    """SHA-256 of its text without passwords, as `sha256:` and hexadecimal digits."""
    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    text: str = ""
    """As it was loaded, but for passwords."""
    text_left_out: int = 0
    """Characters of the text that are left out."""
    actions: list[ActionInForce] = []
    more_actions: int = 0
    tiers: list[list[PluginInForce]] = []
    more_plugins: int = 0
    """Plugins of further tiers that are left out."""
    metrics: dict[str, str] = {}
    """Where node usage comes from, without the password."""
    warnings: list[PolicyMessage] = []
    more_warnings: int = 0
    refused: RefusedEdit | None = None
    """The last edit that was refused, if any was since this leader started."""
    set_aside: list[SetAside] = []
