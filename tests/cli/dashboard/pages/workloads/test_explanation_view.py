"""An explanation as HTML: all that the command says, with links, and nothing that a browser would run."""

from __future__ import annotations

import json
import shlex
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.dashboard.pages.workloads.explanation_view import (
    ExplanationMarkup,
    change_command,
    source_note,
)
from stromboli.cli.dashboard.reading.kept_explanations import KnownExplanation
from stromboli.engine.explanation.diagnosis import Diagnosis, Shortage
from stromboli.engine.explanation.event_history import HistoryEntry, history_of
from stromboli.simulator.explain.explanation_document import (
    Explanation,
    GateState,
    HyperNodeRoom,
    JobExplanation,
    NodeGroupRoom,
    ObjectChange,
    PodCounts,
    PodPlace,
    PodRequest,
    Remedy,
    ResourceHolder,
    StartForecast,
)
from tests.cli.dashboard.view_requests import HOSTILE, NOW, view_request
from tests.manifests import group


def explanation(text: str = "a text", count: int = 1) -> JobExplanation:
    """One that has everything."""
    amounts = {"cpu": text}
    change = ObjectChange("patch", "Queue", ["research"], patch={"spec": {"weight": 2, "note": text}})
    return JobExplanation(
        kind="PodGroup",
        name="huge",
        namespace="default",
        pod_group="huge",
        queue="research",
        state="waits",
        summary=text,
        notes=[text],
        pods=PodCounts(4, 4, 4),
        requests=[PodRequest(4, amounts, text)],
        gates=[GateState("room", "holds", text)],
        wait=Diagnosis("nodes", text, text, text, {text: 3}, (Shortage(text, 4000, 2000),)),
        room=[NodeGroupRoom(text, 5, 4, 1, amounts, amounts, amounts)],
        hyper_nodes=[HyperNodeRoom("h1", 1, 4, 1, 4, amounts, ["default/other"])],
        holders=[ResourceHolder("default/other", "research", 2, 1, amounts, not_evicted=text)] * count,
        evicting=text,
        remedies=[Remedy("weight", text, [change], evicts=[text])] * count,
        in_vain=[text],
        untried=2,
        forecast=StartForecast(text, nodes=["n1"], after=["default/other"]),
        places=[PodPlace("n1", 1, text)],
        history=history_of([HistoryEntry(time="2027-01-15T07:00:00Z", kind="event", text=text)]),
        remembered={text: {text: text}},
    )


def markup(document: JobExplanation, *manifests: dict[str, Any]) -> str:
    return "\n".join(ExplanationMarkup(view_request("/", *manifests)).regions(document).values())


def test_what_an_explanation_names_leads_to_its_page():
    html = markup(explanation(), group("other", 2))
    for target in ("/podgroups/default/other", "/queues/research", "/topology/h1", "/nodes/n1"):
        assert f'href="{target}"' in html


def test_every_part_is_told():
    html = markup(explanation())
    for title in (
        "Gates that it has to pass",
        "What is short",
        "It would start if",
        "When",
        "Who holds it",
        "Room",
    ):
        assert f"<h2>{title}</h2>" in html
    assert "kubectl patch queues.scheduling.volcano.sh research --type=merge" in html


def test_hostile_and_long_texts_are_shown_short_and_harmlessly():
    html = markup(explanation(HOSTILE * 10_000, count=1000))
    assert "<script" not in html
    assert len(html) < 900_000


def test_opening_a_queue_is_a_command_of_ours():
    change = ObjectChange("patch", "Queue", ["research"], patch={"status": {"state": "Open"}})
    assert change_command(explanation(), change) == "stromboli queue open research"


def test_the_minimum_of_a_job_is_changed_in_the_job_which_its_podgroup_follows():
    job = explanation()
    change = ObjectChange("patch", "PodGroup", ["huge-1"], "default", {"spec": {"minMember": 2}})
    assert " podgroups.scheduling.volcano.sh huge-1 " in change_command(job, change)
    job.kind = "Job"
    words = shlex.split(change_command(job, change))
    assert words[:4] == ["kubectl", "patch", "jobs.batch.volcano.sh", "huge"]
    assert json.loads(words[-1]) == {"spec": {"minAvailable": 2}}


def test_there_is_no_command_for_more_nodes_or_smaller_pods():
    smaller = ObjectChange("patch", "Pod", ["p"], "default", {"spec": {}})
    assert change_command(explanation(), smaller) == ""
    assert change_command(explanation(), ObjectChange("create", "Node", ["n"], patch={"a": 1})) == ""


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["patch", "delete"]))
def test_commands_can_be_pasted_whatever_objects_are_called(name: str, value: str, operation: Any):
    change = ObjectChange(operation, "Node", [name], patch={"spec": {"note": value}})
    words = shlex.split(change_command(explanation(), change))
    assert words[:4] == ["kubectl", operation, "nodes", name]
    if operation == "patch":
        assert json.loads(words[-1]) == change.patch


def test_the_policy_of_an_explanation_is_named_where_it_is_known():
    known = KnownExplanation(Explanation(policy="mine.yaml"), "", NOW)
    assert " ago, by policy mine.yaml." in source_note(view_request("/"), known, "")
    known = KnownExplanation(Explanation(), "", NOW)
    assert " ago.</span>" in source_note(view_request("/"), known, "")
