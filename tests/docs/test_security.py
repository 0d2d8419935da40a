"""The bounds in docs/security.md are those of the code."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT
from tests.soak.limits import MIB, Limits

PAGE = (ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(
    r"^\| [^|]+ \| \[`(?P<name>[\w.]+)`\]\(\.\./src/(?P<file>[\w/]+)\.py\) \| (?P<value>[^|]+) \| [^|]+ \|$",
    re.M,
)
UNITS = {
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "ms": 0.001,
    "s": 1,
    "min": 60,
    "h": 3600,
    "days": 24 * 3600,
    "characters": 1,
    "": 1,
}


class Bound(NamedTuple):
    """A row of a table of bounds."""

    name: str
    module: str
    value: str

    @property
    def amount(self) -> float:
        """The value, in bytes, seconds or pieces."""
        number, _, unit = self.value.partition(" ")
        return float(number.replace(",", "")) * UNITS[unit]


SOURCE = ROOT / "src"
BOUND_WORDS = {
    "LARGEST",
    "MAX",
    "MOST",
    "LONGEST",
    "DEEPEST",
    "LIMIT",
    "BUDGET",
    "TIMEOUT",
    "TTL",
    "BYTES",
    "SEATS",
}
NO_BOUNDS = {
    "how much is shown": """
        api.name_cycles.MAX_NAMES_SHOWN
        api.wait_messages.MAX_BYTES
        api.wait_messages.MAX_SENTENCE_BYTES
        api.wait_messages.MAX_SUMMARY_BYTES
        cli.check.definition_checks.MOST_DEPTH
        cli.dashboard.pages.page_elements.LONGEST_SHOWN
        cli.dashboard.pages.page_elements.LONGEST_TITLE
        cli.dashboard.pages.page_elements.MOST_PAGES
        cli.dashboard.pages.queue_pages.DEEPEST
        cli.dashboard.pages.queue_pages.DEEPEST_INDENT
        cli.dashboard.pages.usage_charts.MOST_POINTS
        cli.dashboard.pages.workloads.explanation_view.LARGEST_COMMAND
        cli.dashboard.reading.gang_reading.LONGEST_TROUBLE
        cli.dashboard.reading.gang_reading.MOST_CONTAINERS
        cli.check.definition_checks.MOST_NAMED
        cli.explain.explanation_text.MOST_LINES
        cli.following.job_follower.MOST_EVENTS
        cli.job.job_description.MOST_PODS
        cli.policy.decision_differences.MOST_SHOWN
        engine.explanation.event_history.MAX_ENTRIES
        simulator.explain.job_subject.MAX_PLACES
        simulator.explain.job_subject.MAX_REQUESTS
        simulator.explain.job_subject.MAX_TEXT
        simulator.explain.explained_subject.MAX_ASKED
        simulator.explain.explained_subject.MAX_BORROWERS
        simulator.explain.explained_subject.MAX_JOBS
        simulator.explain.resource_holders.MAX_CANDIDATES
        simulator.explain.resource_holders.MAX_HOLDERS
        simulator.explain.room_by_nodes.MAX_GROUPS
        simulator.explain.room_by_nodes.MAX_HYPER_NODES
        simulator.explain.room_by_nodes.MAX_KINDS
        simulator.explain.room_by_nodes.MAX_NODES_WITH_HOLDERS
        simulator.explain.subject_lookup.MAX_NAMED
        simulator.explain.remedy_search.MAX_NAME
        simulator.explain.remedy_search.MAX_TAINTS
        simulator.explain.remedy_search.MAX_WEIGHT
        simulator.explain.remedy_search.MAX_HOLDERS
        simulator.explain.remedy_search.MAX_QUEUES
        simulator.explain.cluster_explanation.MAX_NODES
        simulator.explain.wait_clues.MAX_HOLDERS
        submission.bad_request.LONGEST_VALUE
        cli.cluster.cluster_errors.LONGEST_MESSAGE
        cli.cluster.description.MOST_ENTRIES
        cli.cluster.name_completion.MOST_NAMES
        cli.cluster.object_events.LONGEST_MESSAGE
        cli.cluster.object_events.MOST_SHOWN
        cli.cluster.object_output.LONGEST_CELL
        cli.lint.MAX_KINDS
        cli.objects.cronjob_commands.LONGEST_PREFIX
        cli.objects.cronjob_commands.MOST_JOBS
        cli.objects.flow_steps.MOST_STEPS
        cli.objects.hypernode_commands.MOST_MEMBERS
        cli.objects.jobtemplate_commands.MOST_JOBS
        cli.objects.podgroup_commands.MOST_MEMBERS
        cli.cluster.tree_branches.DEEPEST
        cli.live.cluster_records.LONGEST_NAME
        cli.live.cluster_records.LONGEST_REASON
        cli.live.cluster_records.MOST_NEWS
        cli.top.top_screen.LONGEST_FILTER
        cli.plan_text.MAX_LINES
        cli.metrics.queue_rows.MOST_NAMED
        cli.metrics.summary_text.MOST_QUEUES
        cli.workload.workload_text.MOST_ROWS
        cli.simulate.what_if_text.MOST_ROWS
        simulator.what_if.what_if_answer.MOST_BLOCKERS
        cli.sweep.sweep_job_requests.LOG_BYTES
        cli.sweep.sweep_progress.MAX_FAILURES_SHOWN
        simulator.sweeps.run_processes.SHOWN_BYTES
        controllers.job.executor.MAX_ERRORS_SHOWN
        controllers.job.job_status.MAX_MESSAGE
        controllers.sharding.controller.MAX_NOTES
        scheduler.writes.held_orders.MAX_HOLD
        simulator.reports.group_measures.MOST_GROUPS
        simulator.reports.csv_files.MOST_RESOURCES
        simulator.reports.page.comparison_page.MOST_DRAWN
        simulator.reports.page.run_page.MOST_NOTES
        simulator.reports.page.run_page.MOST_SETTINGS
        cli.simulate.run_text.MOST_ROWS
        embedded.objects.object_verbs.MAX_PATH
        embedded.rbac.escalation.MAX_SHOWN
        engine.plugin_failures.MAX_ERROR
        engine.plugin_failures.MAX_JOBS
        engine.topology.left_out_hyper_nodes.MAX_EVENTS
        engine.topology.left_out_hyper_nodes.MAX_EXAMINED
        engine.topology.left_out_hyper_nodes.MAX_NAMED
        engine.unmet_requirements.MAX_NAMES
        model.topology.tier_occupancy.MAX_TIERS
        plugins.extender.MAX_LENGTH
        plugins.fairshare.MAX_REPORTED
    """,
    "beyond it a slower way leads to the same": """
        submission.job_arrays.MAX_LISTED
        api.manifests.yaml_lines.MAX_BYTES
        api.manifests.yaml_lines.MAX_DEPTH
        api.manifests.yaml_lines.MAX_VALUES
        api.object_reading.MAX_NODE_NAMES
        api.object_reading.MAX_SPECS
        api.object_reading.MAX_SPEC_BYTES
        api.schemas.field_suggestions.MAX_LENGTH
        cli.live.cluster_records.MOST_REQUESTS
        cli.top.keyboard.BYTES_AT_ONCE
        cli.live.cluster_content.MOST_LISTS
        engine.eviction.victim_candidates.MAX_KINDS
        engine.placement.node_program.MAX_NESTING
        engine.placement.node_program.MAX_OPERATIONS
        engine.placement.usage_evaluation.MAX_STEPS
        engine.placement.usage_evaluation.MAX_STEPS_AT_ONCE
        model.node_columns.MAX_NUMBER
        simulator.reports.fair_shares.LARGEST_TABLE
        model.feed.MAX_LOG
        plugins.predicates.device_claims.MAX_COLUMNS
        engine.placement.node_placement.MAX_BYTES
        model.devices.allocator.MAX_SHAPES
        model.devices.claim_shape.MAX_KNOWN
        model.devices.claim_shape.MAX_STATES
        model.devices.device_selection.MAX_COMPILED
        model.devices.device_selection.MAX_KEPT
        model.devices.device_selection.MAX_OUTCOMES
        model.intake.sub_jobs.MAX_LENGTH
        model.volumes.claim_kind.MAX_BYTES
        model.volumes.free_volumes.MAX_SIZES
        controllers.workloads.batch_job.job_tracking.UNCOUNTED_LIMIT
        plugins.deviceshare.plugin.MAX_FITS
        plugins.fgd.MAX_SCORES
        model.cards.fragmentation.MAX_STATES
    """,
    "what counts as how much of a bound": """
        embedded.store.history.CHANGE_BYTES
        embedded.store.watch_buffers.REFERENCE_BYTES
    """,
    "a pause, or a time after which something is looked at again": """
        controllers.job.controller.ORPHAN_COMMAND_TTL
        controllers.pending_writes.TIMEOUT
        model.devices.binding_conditions.BINDING_TIMEOUT
        embedded.kube_controllers.status_controllers.BUDGET_DELAY
        embedded.nodes.timer_heap.TimerHeap.MAX_WAIT
        plugins.fairshare.MAX_GAP
    """,
    "a default, or a number of Go": """
        cli.check.installation_checks.MOST_SKEW
        cli.plugin.plugin_commands.LONGEST_NAME
        cli.queue.queue_fields.LARGEST_WEIGHT
        admission.rules.job_rules.MAX_RETRY
        api.go_scalars.MAX_DURATION
        api.resources.quantity.INT64_MAX
        cli.demo.command.MAX_SPEED
        cli.demo.command.TIME_LIMIT
        plugins.network_topology_aware.leaf_distances.MAX_TASKS
        engine.eviction.eviction_domains.DEFAULT_MAX_DOMAINS
        engine.placement.node_fit.MAX_SLOTS
        model.volumes.volume_grant.BIND_TIMEOUT
    """,
}
"""Constants that are named like bounds and take nothing from anybody, by the reason."""


def bound_constants() -> Iterator[str]:
    """Every public number of a module or class that is named like a bound."""
    for file in SOURCE.rglob("*.py"):
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.parse(file.read_text()).body:
            inner = node.body if isinstance(node, ast.ClassDef) else []
            yield from (f"{module}.{name}" for name in _numbers(node))
            yield from (f"{module}.{node.name}.{name}" for part in inner for name in _numbers(part))


def _numbers(node: ast.stmt) -> list[str]:
    """The names that a statement gives to numbers, if they are named like bounds."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Call | ast.Dict | ast.JoinedStr):
        return []
    texts = [
        part
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not texts and BOUND_WORDS & set(name.split("_")) and name[0] != "_"]


BOUNDS = [
    Bound(row["name"], row["file"].replace("/", "."), row["value"].strip()) for row in _ROW.finditer(PAGE)
]


def test_every_row_of_the_tables_of_bounds_can_be_read() -> None:
    tables = PAGE.partition("## Bounds")[2]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and "](../src/" in line]
    assert len(BOUNDS) > 50
    assert [line for line in rows if not _ROW.match(line)] == []


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: f"{bound.module}.{bound.name}")
def test_a_bound_in_the_documentation_is_the_one_in_the_code(bound: Bound) -> None:
    value = importlib.import_module(bound.module)
    for part in bound.name.split("."):
        value = getattr(value, part)
    assert value == pytest.approx(bound.amount)


def test_every_bound_of_the_code_stands_in_the_tables() -> None:
    told = {f"{bound.module}.{bound.name}" for bound in BOUNDS}
    excused = {f"stromboli.{name}" for names in NO_BOUNDS.values() for name in names.split()}
    constants = set(bound_constants())
    assert sorted(constants - told - excused) == []
    assert sorted(excused - constants) == [], "no such constant any more"


def test_the_limits_of_the_soak_are_those_that_it_is_held_to() -> None:
    limits = Limits()
    assert f"within {limits.bind:g} s; within {limits.bind_after_kill:g} s of a kill" in PAGE
    assert f"within {limits.ready:g} s 99 of 100 times, within {limits.ready_worst:g} s always" in PAGE
    assert f"| memory | {limits.memory // MIB:,} MiB |" in PAGE
    assert f"| {limits.disk // MIB} MiB: the history" in PAGE
    assert f"| descriptors | {limits.descriptors}," in PAGE
