"""Own actions and plugins: one Python file each, or an installed package; what is wrong with them is said plainly."""

import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import pytest

from stromboli.extension_loading import ExtensionError
from stromboli.extensions import GROUP, load_catalog
from stromboli.policy.policy import load_policy

PLUGIN = """
from dataclasses import dataclass
from stromboli.policy.arguments import arg
from stromboli.engine.plugin import Plugin

@dataclass(frozen=True, slots=True)
class Arguments:
    weight: int = arg("spread.weight", 1, "How much it counts.")

class Spread(Plugin):
    name = "spread"
    Arguments = Arguments
"""
CLASS_A = "from stromboli.engine.plugin import Plugin\nclass A(Plugin):\n    name = 'a'\n"
ACTION = """
from stromboli.engine.catalog import action

@action("tidy")
def tidy(session):
    '''Tidy up.'''
"""

VOLCANO_ACTIONS = "enqueue allocate backfill preempt reclaim shuffle gangpreempt gangreclaim"
VOLCANO_PLUGINS = (
    "drf gang deviceshare predicates priority nodeorder conformance binpack resource-strategy-fit tdm overcommit sla"
    " task-topology numa-aware cdp rescheduling usage pdb nodegroup network-topology-aware proportion capacity extender"
    " resourcequota"
)
BASELINES = {"bestfit", "dotprod", "gpu-clustering", "gpu-packing", "random"}
"""Plugins of the simulator."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spread.py").write_text(PLUGIN)
    (tmp_path / "tidy.py").write_text(ACTION)
    return tmp_path


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(dedent(text))
    return str(folder / name)


def refusal(folder: Path) -> str:
    with pytest.raises(ExtensionError) as caught:
        load_catalog(folder)
    return str(caught.value)


def test_built_in_actions_and_plugins_are_those_of_volcano_by_name_and_ours() -> None:
    catalog = load_catalog()
    ours = {"backfill-reservation", "fairshare", "fgd", *BASELINES}
    assert set(catalog.actions) == {*VOLCANO_ACTIONS.split(), "consolidate"}
    assert set(catalog.plugins) == {*VOLCANO_PLUGINS.split()} | ours


def test_a_file_in_the_folder_is_found_and_can_be_configured(folder: Path) -> None:
    catalog = load_catalog(folder)
    policy = load_policy(
        "actions: tidy\ntiers:\n- plugins:\n  - name: spread\n    arguments: {spread.weight: 3}", catalog
    )
    assert policy.actions == ("tidy",)
    assert policy.plugins[0].arguments.weight == 3
    assert catalog.actions["tidy"].doc == "Tidy up."


def test_a_plugin_that_is_imported_but_not_defined_does_not_count(folder: Path) -> None:
    write(
        folder,
        "another.py",
        "from stromboli.engine.plugin import Plugin\nclass Other(Plugin):\n    name = 'other'\n",
    )
    assert {"spread", "other"} <= set(load_catalog(folder).plugins)


def test_the_folder_is_left_as_it_was(folder: Path) -> None:
    before, path = sorted(folder.iterdir()), list(sys.path)
    load_catalog(folder)
    assert (sorted(folder.iterdir()), sys.path) == (before, path)


def test_a_changed_file_counts_when_the_catalog_is_loaded_again(folder: Path) -> None:
    load_catalog(folder)
    write(folder, "tidy.py", ACTION.replace('"tidy"', '"wash"'))
    assert "wash" in load_catalog(folder).actions


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("x = 1\nimport no_such_package", ":2: cannot be imported: ModuleNotFoundError: No module named"),
        ("def broken(:", ":1: cannot be imported: SyntaxError: "),
        ("raise SystemExit(3)", ":1: cannot be imported: SystemExit: 3"),
        ("x = 1", ": defines neither a Plugin with a name nor an @action"),
        (
            CLASS_A + "    def job_oder(self, job): ...",
            ":2: cannot be imported: TypeError: plugin a: 'job_oder' is not an extension point;"
            " did you mean 'job_order'",
        ),
        (
            CLASS_A + "    Arguments = int",
            ': arguments of plugin "a": int must be a dataclass',
        ),
    ],
)
def test_a_wrong_file_is_named_with_line_and_cause(tmp_path: Path, text: str, cause: str) -> None:
    path = write(tmp_path, "broken.py", text)
    before = set(sys.modules)
    assert refusal(tmp_path).startswith(path + cause), refusal(tmp_path)
    assert not [
        name for name in set(sys.modules) - before if "cannot be imported" in cause and "broken" in name
    ]


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_bytes(b"x = '\xff'")
    assert refusal(tmp_path).startswith(f"{tmp_path / 'broken.py'}")


def test_a_name_that_is_taken_is_refused(folder: Path) -> None:
    other = write(folder, "twin.py", PLUGIN)
    assert (
        refusal(folder) == f'{other}: plugin "spread" is already defined by {folder / "spread.py"}; rename it'
    )


def test_a_name_that_is_built_in_is_refused(tmp_path: Path) -> None:
    name = min(load_catalog().plugins)
    write(tmp_path, "own.py", PLUGIN.replace('"spread"', f'"{name}"'))
    assert f'plugin "{name}" is already defined by stromboli.plugins.' in refusal(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "is not a directory" in refusal(tmp_path / "nowhere")


def install(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Pretend that a package with this entry point is installed."""
    entry_points = importlib.metadata.EntryPoints([EntryPoint("mine", value, GROUP)])
    monkeypatch.setattr(
        "stromboli.extension_loading.entry_points", lambda group: entry_points.select(group=group)
    )


@pytest.mark.parametrize("value", ["house_rules", "house_rules:Spread"])
def test_an_installed_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    write(tmp_path, "house_rules.py", PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "house_rules", raising=False)
    install(monkeypatch, value)
    assert "spread" in load_catalog().plugins


def test_the_gpu_baselines_are_known_by_their_entry_point_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with_baselines = load_catalog().plugins
    monkeypatch.setattr("stromboli.extension_loading.entry_points", lambda group: ())
    assert set(with_baselines) - set(load_catalog().plugins) == BASELINES


@pytest.mark.parametrize(
    ("value", "cause"),
    [("no_such_package", "cannot be loaded: ModuleNotFoundError"), ("json:dumps", "is neither")],
)
def test_a_wrong_entry_point_is_named(monkeypatch: pytest.MonkeyPatch, value: str, cause: str) -> None:
    install(monkeypatch, value)
    with pytest.raises(ExtensionError, match=f'entry point "mine" .{value}.: {cause}'):
        load_catalog()
