"""The policy: which actions run, which plugins advise them and how, read from Volcano's configuration file.

Strict by default: whatever Volcano would silently ignore is refused with its line and the nearest right name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stromboli.api.manifests.yaml_lines import YamlError
from stromboli.policy.policy_problems import Problem, Severity
from stromboli.policy.policy_reader import PluginEntry, PolicyReader
from stromboli.policy.presets import DEFAULT
from stromboli.policy.vocabulary import Vocabulary

__all__ = ["PluginEntry", "Policy", "PolicyError", "default_policy", "load_policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A configuration file, understood: names that exist, arguments parsed, switches complete."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginEntry, ...], ...]
    configurations: Mapping[str, Any]
    """The arguments of every action of the catalog, given or default."""
    metrics: Mapping[str, str]
    warnings: tuple[str, ...]
    """What is odd but allowed, as `FILE:LINE: message`."""
    source: str
    source_name: str

    @property
    def plugins(self) -> tuple[PluginEntry, ...]:
        """Every plugin entry, tier after tier."""
        return tuple(entry for tier in self.tiers for entry in tier)


class PolicyError(ValueError):
    """A configuration file that is refused; `errors` are all its errors as `FILE:LINE: message`."""

    def __init__(self, errors: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        self.errors = errors
        self.warnings = warnings
        more = [f"... and {len(errors) - 20} more"] if len(errors) > 20 else []
        super().__init__("\n".join([*errors[:20], *more]))


def load_policy(
    text: str | bytes, catalog: Vocabulary, source_name: str = "policy", lenient: bool = False
) -> Policy:
    """Read a configuration file; `lenient` ignores with a warning what Volcano ignores."""
    try:
        reader = PolicyReader.of(text, catalog)
    except YamlError as error:
        problem = Problem(error.line, str(error), Severity.FATAL)
        raise PolicyError((problem.at(source_name),)) from None
    refused = {Severity.FATAL} if lenient else {Severity.FATAL, Severity.ERROR}
    problems = sorted(reader.problems, key=lambda problem: problem.line)
    warnings = _listed([p for p in problems if p.severity not in refused], source_name)
    if errors := _listed([p for p in problems if p.severity in refused], source_name):
        raise PolicyError(errors, warnings)
    return Policy(
        actions=reader.actions,
        tiers=reader.tiers,
        configurations=reader.configurations,
        metrics=reader.metrics,
        warnings=warnings,
        source=text if isinstance(text, str) else text.decode("utf-8-sig"),
        source_name=source_name,
    )


def default_policy(catalog: Vocabulary) -> Policy:
    """The policy that is in force while no file was given: Volcano's built-in one."""
    return load_policy(DEFAULT, catalog, "built-in policy")


def _listed(problems: list[Problem], source_name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(problem.at(source_name) for problem in problems))
