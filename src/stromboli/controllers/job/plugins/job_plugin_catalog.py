"""Which job plugins there are: the built-in ones, installed packages, and files in a folder of the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.plugins.env import Env
from stromboli.controllers.job.plugins.hcclrank import HcclRank
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, PluginFailure
from stromboli.controllers.job.plugins.mpi import Mpi
from stromboli.controllers.job.plugins.plugin_flags import parse_flags
from stromboli.controllers.job.plugins.pytorch import PyTorch
from stromboli.controllers.job.plugins.ray import Ray
from stromboli.controllers.job.plugins.ssh import Ssh
from stromboli.controllers.job.plugins.svc import Svc
from stromboli.controllers.job.plugins.tensorflow import TensorFlow
from stromboli.extension_loading import ExtensionError, import_file, load_entry_points, python_files
from stromboli.policy.arguments import declared

GROUP = "stromboli.job_plugins"
"""Entry points of installed packages: a plugin class, or a module of them."""
BUILT_IN: tuple[type[JobPlugin], ...] = (Env, Svc, Ssh, TensorFlow, PyTorch, Mpi, Ray, HcclRank)


class JobPluginSet(NamedTuple):
    """The plugins of one job, in the order in which they are called, and problems with their arguments."""

    plugins: tuple[JobPlugin, ...]
    problems: tuple[str, ...]


class JobPlugins:
    """Plugins by the names that jobs use."""

    def __init__(self, own: Iterable[type[JobPlugin]] = ()) -> None:
        self.known: dict[str, type[JobPlugin]] = {}
        for plugin in (*BUILT_IN, *own):
            self._add(plugin)

    def _add(self, plugin: type[JobPlugin]) -> None:
        if plugin.name in self.known:
            raise ExtensionError(f'job plugin "{plugin.name}" is defined twice; rename {plugin.__qualname__}')
        try:
            declared(plugin.Arguments)
        except (TypeError, NameError) as error:
            raise ExtensionError(f'arguments of job plugin "{plugin.name}": {error}') from error
        self.known[plugin.name] = plugin

    def for_job(self, job: Job) -> JobPluginSet:
        """The plugins that a job names; `PluginFailure` for an unknown one."""
        plugins, problems = [], []
        for name in self._order(job.spec.plugins):
            arguments, problem = parse_flags(self.known[name].Arguments, job.spec.plugins[name] or ())
            plugins.append(self.known[name](arguments))
            if problem:
                problems.append(f"plugin {name}: {problem}")
        return JobPluginSet(tuple(plugins), tuple(problems))

    def _order(self, wanted: Mapping[str, object]) -> list[str]:
        """In the order of registration, but each after the plugins that it names in `after`."""
        for name in sorted(wanted):
            if name not in self.known:
                raise PluginFailure(names.UNKNOWN_JOB_PLUGIN.format(name=name))
        order: list[str] = []
        waiting = [name for name in self.known if name in wanted]
        while waiting:
            ready = [name for name in waiting if not set(self.known[name].after) & set(waiting)]
            order += ready or waiting
            waiting = [name for name in waiting if name not in order]
        return order


def load_job_plugins(folder: Path | None = None) -> JobPlugins:
    """Everything that a job may name: built-in, installed, and from `folder`."""
    own: list[type[JobPlugin]] = []
    for _, value in load_entry_points(GROUP):
        own += _plugins_in(value) if isinstance(value, ModuleType) else [value]
    for path in python_files(folder) if folder is not None else []:
        plugins = _plugins_in(import_file(path))
        if not plugins:
            raise ExtensionError(f"{path}: defines no JobPlugin with a name")
        own += plugins
    return JobPlugins(own)


def _plugins_in(module: ModuleType) -> list[type[JobPlugin]]:
    """The plugins that a module defines itself, not those it imports."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, JobPlugin)
        and vars(value).get("name")
        and value.__module__ == module.__name__
    ]
