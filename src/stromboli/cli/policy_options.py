"""Options that name a policy, and the policies that they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stromboli.api.errors import error_text
from stromboli.api.manifests.manifest_sources import STDIN
from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.cli.cli_errors import Usage
from stromboli.policy.policy import Policy, PolicyError, default_policy, load_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.policy.policy_problems import PlacedMessage
from stromboli.policy.presets import PRESETS
from stromboli.policy.presets import preset as preset_text

if TYPE_CHECKING:
    from stromboli.engine.catalog import Catalog
    from stromboli.simulator.cluster_loading import Loaded

PLUGINS_DIR = typer.Option(
    None, "--plugins-dir", metavar="DIR", help="A folder of Python files with your own actions and plugins."
)
LENIENT = typer.Option(
    True,
    "--lenient-policy/--no-lenient-policy",
    show_default=False,
    help="Ignore with a warning what Volcano ignores in a policy, such as unknown keys (default); =false refuses it.",
)


def preset_names(prefix: str) -> list[str]:
    """Completions for shells."""
    return [name for name in PRESETS if name.startswith(prefix)]


POLICY = typer.Option(None, "--policy", metavar="FILE", help="Volcano's scheduler configuration file.")
PRESET = typer.Option(
    None,
    "--preset",
    metavar="NAME",
    help="A policy from `stromboli policy show`.",
    autocompletion=preset_names,
)


def chosen_policy(file: Path | None, preset: str | None, catalog: Catalog, lenient: bool) -> Policy | None:
    """The policy that the options name, if they do."""
    if file is not None and preset is not None:
        raise Usage("--policy and --preset exclude each other: give one of them")
    if file is not None:
        return startable(PolicyFile(file, catalog, lenient).current, catalog)
    if preset is not None:
        return load_policy(preset_source(preset), catalog, f"preset {preset}", lenient)
    return None


def read_policy(file: str, catalog: Catalog, lenient: bool) -> Policy:
    """The policy in a file, or in standard input (`-`)."""
    if file == STDIN:
        policy = load_policy(sys.stdin.buffer.read(MAX_BYTES + 1), catalog, file, lenient)
    else:
        policy = PolicyFile(Path(file), catalog, lenient).current
    return startable(policy, catalog)


def startable(policy: Policy, catalog: Catalog) -> Policy:
    """The policy, if its plugins can be built and its actions initialised; else `PolicyError`."""
    from stromboli.engine.attribution import take_attribution
    from stromboli.engine.cycle import Engine

    try:
        Engine(policy, catalog).close()
    except Exception as error:
        name, point = take_attribution(error)
        where = f"{name} failed in {point}: " if name else ""
        problem = PlacedMessage(policy.source_name, 0, f"{where}{error_text(error)}")
        raise PolicyError((problem,), policy.warnings) from error
    return policy


def case_policy(text: str | None, catalog: Catalog, where: str, lenient: bool) -> Policy:
    """The policy that a case brings along, else the built-in one."""
    if not text or not text.strip():
        return default_policy(catalog)
    return load_policy(text, catalog, where, lenient)


def policy_beside(loaded: Loaded, chosen: Policy | None, catalog: Catalog, lenient: bool) -> Policy | None:
    """The chosen policy, else the only one that lies beside the manifests; what becomes of those is told."""
    beside = loaded.policies
    fate = "skipped; --policy FILE puts it in force"
    if len(beside) == 1 and beside[0] != STDIN and chosen is None:
        try:
            chosen = PolicyFile(Path(beside[0]), catalog, lenient).current
            fate = "in force, as no other is given"
        except PolicyError as error:
            fate = f"skipped, as it is wrong: {error.errors[0]}"
    loaded.warnings += [f"{file}: a policy, not an object: {fate}" for file in beside]
    return chosen


def preset_source(name: str) -> str:
    """The text of a preset."""
    try:
        return preset_text(name)
    except LookupError as error:
        raise Usage(error.args[0]) from None
