"""The stable interface of plugins and actions, from which the tables of docs/author-reference.md are generated.

`SURFACE` lists the members of each class that authors may use, in the order of the page; others are internal.
A table shows a member with its type and the first paragraph of its docstring; docstrings of attributes, the strings
below them, are read from the source.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from typing import NamedTuple

from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.order import JobsByQueue
from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Reason, Verdict, verdict_text
from stromboli.engine.plugin import Bound, Eviction, Invalid, Plugin, QueueLimit
from stromboli.engine.points import Choice, Vote
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.engine.transaction import EvictionReason
from stromboli.model import amounts
from stromboli.model.cluster import Change, Cluster, Dirty, Refused
from stromboli.model.dimensions import Dimensions
from stromboli.model.job import Job, JobId, SubJob
from stromboli.model.lookup_objects import LookupObjects
from stromboli.model.node_columns import Columns, Node
from stromboli.model.node_usage import NodeUsage
from stromboli.model.queue import Queue, lineage
from stromboli.model.remedy import Remedy, Why
from stromboli.model.shape import LabelSet, Shape
from stromboli.model.status import Status
from stromboli.model.task import Condition, Task

SURFACE: dict[type, str] = {
    Session: """
        now has_come look_again cluster total rules services features arguments jobs jobs_by_queue reorder queue_key
        job_key task_key sub_job_key sub_job_ready sub_job_pipelined place only reachable ranked admits future_idle
        queue_of statement explain objections leave_out refuse reserve guard guard_queue set_phase set_condition
        record_event restore_if_lost
    """,
    Statement: "assign allocate pipeline evict restore release changes evicted commit keep",
    JobsByQueue: "turns visits drain push",
    Rules: "ask has",
    Job: """
        id key namespace name group queue annotations created priority phase conditions minimum role_minimums
        min_resources waiting_time policies tasks by_status counts role_counts sub_jobs ready_count allocated_count
        waiting_count valid_count pending_best_effort enough_ready enough_pipelined roles_valid roles_ready
        roles_pipelined sub_groups_valid sub_groups_ready sub_groups_pipelined starving visible waits_for_queue total
        allocated pipelined pending held elastic preempts gang_evictable disrupted_as_group
    """,
    JobId: "kind namespace name",
    SubJob: "job id policy tasks minimum counts ready_count priority enough_ready enough_pipelined",
    Task: """
        uid key namespace name job sub_job role status node request dims best_effort shape label_set annotations
        priority pod_priority priority_class preemptable may_preempt zone gates ours owner created started scheduled_at
        terminating nominated
    """,
    Shape: "spec request dims best_effort",
    LabelSet: "labels namespace",
    Queue: """
        name object annotations created exists open parent weight priority reclaimable capability deserved guarantee
        jobs allocated pipelined pending held unavailable_to
    """,
    Node: "name object labels created allocatable tasks row",
    Nodes: "allocatable used idle releasing pipelined future_idle each label pick name zeros all",
    Columns: "nodes allocatable used idle releasing pipelined future_idle label_codes derived total row",
    Cluster: "nodes jobs queues tasks waiting backlog total columns dims objects usage memory",
    Dimensions: "index names named ordered",
    LookupObjects: """
        namespaces priority_classes quotas budgets hyper_nodes volumes claims storage_classes storage_nodes services
        controllers version
    """,
    NodeUsage: "cpu memory at fresh",
    Condition: "status reason message",
    Change: "task old_status old_node status node undo",
    Dirty: "everything jobs queues nodes objects",
    Place: "node now",
    Verdict: "message nodes reasons text histogram dominant",
    Reason: "text nodes plugin curable code",
    Diagnosis: "gate reason message remedy code counts",
    Refused: "why",
    EvictionReason: "action beneficiary chosen_by",
    Choice: "victims tier plugins by",
    Check: "passes reason curable remedy code",
    Refusal: "reason curable plugin remedy code",
    Remedy: "text in_numbers rank",
    Why: "message remedy code summary title",
    Invalid: "reason message remedy summary title",
    QueueLimit: "queue name most held remedy code",
    Eviction: "kind job domain",
    Bound: "key may",
    NodeFilter: "checks plugin reads version",
    NodeScore: "score plugin reads version weight finish of_some_nodes batch",
    Plugin: "name Arguments arguments switches session counts_gangs guards_room build"
    " tasks_needed may_allocate victim_bound",
    Status: "PENDING ALLOCATED PIPELINED BINDING BOUND RUNNING RELEASING SUCCEEDED FAILED UNKNOWN",
    Vote: "PERMIT ABSTAIN REJECT",
}
FUNCTIONS: dict[str, list[Callable[..., object]]] = {
    "amounts": [
        amounts.plus,
        amounts.minus,
        amounts.times,
        amounts.total_of,
        amounts.excess,
        amounts.fits,
        amounts.less_equal,
        amounts.is_empty,
        amounts.share,
        amounts.dominant_share,
    ],
    "others": [verdict_text, lineage],
}
CLASSES = {kind.__name__: kind for kind in SURFACE}


class Member(NamedTuple):
    """A member of a class as its source declares it."""

    name: str
    signature: str
    """The parameters of a method, in parentheses."""
    type: str
    """The type of the member, or of its result."""
    doc: str


def offered(kind: type) -> list[Member]:
    """The members of a class that authors may use."""
    known = members(kind)
    return [known[name] for name in SURFACE[kind].split()]


def signature(function: Callable[..., object]) -> Member:
    """A function as its source declares it."""
    nodes = _module_node(function.__module__).body
    return next(
        _method(node)
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__
    )


@cache
def members(kind: type) -> dict[str, Member]:
    """All members of a class, after those that it inherits from classes of Stromboli."""
    known: dict[str, Member] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("stromboli."):
            for member in _of_class(_class_node(base)):
                if member.doc or member.name not in known:
                    known[member.name] = member
    return known


@cache
def _module_node(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(name)))


def _class_node(kind: type) -> ast.ClassDef:
    nodes = ast.walk(_module_node(kind.__module__))
    return next(node for node in nodes if isinstance(node, ast.ClassDef) and node.name == kind.__name__)


def _of_class(node: ast.ClassDef) -> Iterator[Member]:
    yield from _attributes(node.body, {}, own=ast.Name)
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            yield _method(method)
            types = {
                parameter.arg: ast.unparse(parameter.annotation)
                for parameter in method.args.args
                if parameter.annotation is not None
            }
            yield from _attributes(method.body, types, own=ast.Attribute)


def _attributes(body: list[ast.stmt], types: dict[str, str], own: type[ast.expr]) -> Iterator[Member]:
    """Attributes that are set in a class (`x: int = 1`) or a method (`self.x = 1`), each with the string below it."""
    target: ast.expr
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            target, type = statement.target, ast.unparse(statement.annotation)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, type = statement.targets[0], types.get(ast.unparse(statement.value), "")
        else:
            continue
        if isinstance(target, own):
            yield Member(ast.unparse(target).removeprefix("self."), "", type, _string(following))


def _method(method: ast.FunctionDef) -> Member:
    gives = ast.unparse(method.returns) if method.returns else ""
    doc = ast.get_docstring(method) or ""
    if any(ast.unparse(decorator) == "property" for decorator in method.decorator_list):
        return Member(method.name, "", gives, doc)
    return Member(method.name, _parameters(method.args), "" if gives == "None" else gives, doc)


def _parameters(arguments: ast.arguments) -> str:
    shown = copy(arguments)
    shown.args = [argument for argument in arguments.args if argument.arg not in ("self", "cls")]
    return f"({ast.unparse(shown)})"


def _string(statement: ast.stmt | None) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return (
        inspect.cleandoc(value.value)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
        else ""
    )
