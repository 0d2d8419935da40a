"""A plugin and an action as a start for yours, each with a policy that names it and a test that it passes."""

from __future__ import annotations

from string import Template
from typing import NamedTuple

PLUGIN = Template('''\
"""The plugin $name."""

from stromboli.engine.placement.node_functions import Column, Nodes, reads
from stromboli.engine.plugin import Plugin
from stromboli.model.dimensions import CPU
from stromboli.model.job import Job
from stromboli.model.task import Task


class $class_name(Plugin):
    """Small gangs first, each pod on the node with the most free CPU."""

    name = "$name"

    def job_order(self, job: Job) -> int:
        return job.minimum

    @reads("usage")
    def score_nodes(self, task: Task, nodes: Nodes) -> Column:
        return nodes.idle[CPU] / 1000
''')

PLUGIN_TEST = Template('''\
"""What the plugin $name decides."""

from $module import $class_name

from stromboli.testing import World


def test_small_gangs_come_first() -> None:
    world = World(nodes="n1 cpu=2").job("large", pods=2, cpu=1).job("small", pods=1, cpu=1)
    result = world.run(plugins="$name gang", plugin_classes=[$class_name])
    assert result.bound_per_job == {"default/small": 1}


def test_pods_go_where_most_cpu_is_free() -> None:
    world = World(nodes="n1 cpu=2; n2 cpu=8").job("train", cpu=1)
    result = world.run(plugins="$name gang", plugin_classes=[$class_name])
    assert result.binds == {"default/train-0": "n2"}
''')

PLUGIN_POLICY = Template("""\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: $name
  - name: gang
- plugins:
  - name: predicates
""")

ACTION = Template('''\
"""The action $name."""

from stromboli.engine.catalog import action
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.session import Session
from stromboli.model.status import Status


@action("$name")
def $function_name(session: Session) -> None:
    """Place the pods of the oldest jobs first, gangs all or nothing."""
    for job in sorted(session.cluster.backlog, key=lambda job: job.created):
        with session.guard(job), session.statement() as trial:
            if job.queue is None or job.waits_for_queue or session.rules.job_valid(job):
                continue
            for task in sorted(job.by_status[Status.PENDING], key=session.task_key):
                if task.gates or not session.rules.allocatable(job.queue, task):
                    break
                place = session.place(task)
                if isinstance(place, Verdict):
                    session.explain(task, place)
                    break
                trial.assign(task, place)
            if session.rules.job_ready(job):
                trial.commit()
''')

ACTION_TEST = Template('''\
"""What the action $name does."""

from $module import $function_name

from stromboli.testing import World


def test_the_oldest_gang_starts_whole_and_the_next_holds_nothing() -> None:
    world = World(nodes="n1 cpu=4").job("first", pods=3, cpu=1).job("second", pods=2, cpu=1)
    result = world.run("enqueue, $name", "gang | predicates", action_functions=[$function_name])
    assert result.bound_per_job == {"default/first": 3}
    assert result.why("second-1") == "0/1 nodes are unavailable: 1 Insufficient cpu."
''')

ACTION_POLICY = Template("""\
actions: "enqueue, $name, backfill"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
""")


class ExtensionFiles(NamedTuple):
    """The files of a new plugin or action, by path below its folder."""

    code: str
    """The path of the file with the code."""
    files: dict[str, str]


def new_plugin(name: str) -> ExtensionFiles:
    """A plugin with an order and a score."""
    return _files(name, PLUGIN, PLUGIN_TEST, PLUGIN_POLICY)


def new_action(name: str) -> ExtensionFiles:
    """An action that places pods."""
    return _files(name, ACTION, ACTION_TEST, ACTION_POLICY)


def _files(name: str, code: Template, test: Template, policy: Template) -> ExtensionFiles:
    """Tests lie in a folder of their own, as every Python file of a plugins folder is loaded."""
    module = name.replace("-", "_")
    words = {
        "name": name,
        "module": module,
        "function_name": module,
        "class_name": "".join(word.capitalize() for word in name.split("-")),
    }
    content = {
        f"{module}.py": code,
        f"tests/test_{module}.py": test,
        "policy.yaml": policy,
    }
    files = {path: template.substitute(words) for path, template in content.items()}
    return ExtensionFiles(f"{module}.py", files | {"tests/conftest.py": CONFTEST})


CONFTEST = '''\
"""Lets tests import what lies in the folder above."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
'''
