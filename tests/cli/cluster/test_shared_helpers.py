"""What commands on a cluster share: manifests of -f, events as a story, bars, descriptions, why groups wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster import manifest_files
from stromboli.cli.cluster.cluster_kinds import JOB_FLOWS, JOB_TEMPLATES
from stromboli.cli.cluster.description import MOST_ENTRIES, Description
from stromboli.cli.cluster.group_members import wait_reason
from stromboli.cli.cluster.manifest_files import manifests_of_kinds, read_manifests
from stromboli.cli.cluster.object_events import event_lines, happening, merged
from stromboli.cli.cluster.usage_bar import usage_bar

Manifest = dict[str, Any]


def flow(name: str) -> Manifest:
    return {"apiVersion": JOB_FLOWS.api_version, "kind": "JobFlow", "metadata": {"name": name}}


# -- manifests


def test_manifests_come_from_files_folders_and_lists(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([flow("one"), flow("two")]))
    (tmp_path / "b.json").write_text(
        '{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "x"}}]}'
    )
    assert [content["metadata"]["name"] for _, content in read_manifests([str(tmp_path)])] == [
        "one",
        "two",
        "x",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: JobFlow\napiVersion: flow.volcano.sh/v1alpha1\n", "no metadata"),
        ("kind: JobFlow\napiVersion: flow.volcano.sh/v1alpha1\nmetadata: {}\n", "metadata.name is missing"),
        ("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n", "Pod is no flow.volcano.sh/v1alpha1 JobFlow"),
        ("{", "not YAML"),
        ('kind: "\\e[2J"\napiVersion: v1\nmetadata: {name: a}\n', r"\x1b[2J"),
    ],
)
def test_what_cannot_be_created_is_told_with_the_file_and_the_problem(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(Usage) as told:
        manifests_of_kinds([str(file)], [JOB_FLOWS])
    assert problem in str(told.value)
    assert str(file) in str(told.value)
    assert str(told.value).isprintable()


def test_too_many_objects_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_files, "MOST_OBJECTS", 2)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([flow(str(number)) for number in range(3)]))
    with pytest.raises(Usage, match="more than 2 objects"):
        read_manifests([str(tmp_path / "a.yaml")])


def test_kinds_that_come_along_are_told_apart(tmp_path: Path) -> None:
    template = {"apiVersion": JOB_TEMPLATES.api_version, "kind": "JobTemplate", "metadata": {"name": "a"}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([flow("one"), template]))
    both = manifests_of_kinds([str(tmp_path)], [JOB_TEMPLATES, JOB_FLOWS])
    assert [resource.kind for resource, _ in both] == ["JobFlow", "JobTemplate"]


# -- events


def event(message: str, minute: int, **more: Any) -> Manifest:
    at = f"2026-01-01T00:{minute:02}:00Z"
    return {
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "message": message,
        "firstTimestamp": at,
        "lastTimestamp": at,
        **more,
    }


def test_events_that_say_the_same_are_one_in_the_order_of_time() -> None:
    told = merged(map(happening, [event("b", 3), event("a", 1, count=4), event("b", 2), event("a", 5)]))
    assert [(each.message, each.times) for each in told] == [("b", 2), ("a", 5)]
    assert told[1].last - told[1].first == 240


def test_new_recorders_tell_the_time_in_other_fields() -> None:
    new = {
        "involvedObject": {},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 7, "lastObservedTime": "2026-01-01T00:01:00.000000Z"},
        "reportingComponent": "volcano",
    }
    told = happening(new)
    assert (told.times, told.last - told.first, told.source) == (7, 60, "volcano")


@given(
    st.dictionaries(
        st.sampled_from(["firstTimestamp", "lastTimestamp", "eventTime", "message", "reason", "type"]),
        st.one_of(st.none(), st.text(), st.integers()),
    )
)
def test_any_event_can_be_told(event: Manifest) -> None:
    (line,) = event_lines([happening(event)])[1:]
    assert line.isprintable()


# -- bars, descriptions, groups


@given(st.floats(0, 1e18), st.floats(0, 1e18), st.integers(1, 40))
def test_a_bar_has_its_width_and_shows_any_use(used: float, total: float, width: int) -> None:
    bar = usage_bar(used, total, width)
    assert len(bar) == width
    assert ("█" in bar or "▓" in bar) == (used > 0)
    if 0 < total < used:
        assert "▓" in bar


def test_a_description_is_bounded_and_harmless() -> None:
    description = Description()
    description.field("Name", "\x1b[2J" + "x" * 10**6)
    description.field("Empty", "")
    description.entries("Labels", {str(number): "v" for number in range(1000)})
    description.entries("None", None)
    description.section("Nothing", [])
    assert all(line.isprintable() and len(line) < 3000 for line in description.lines)
    assert len(description.lines) == 1 + MOST_ENTRIES + 1 + 1


def group(phase: str, message: str = "", minimum: int = 2) -> Manifest:
    conditions = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    return {
        "spec": {"minMember": minimum, "queue": "q"},
        "status": {"phase": phase, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("waiting", "members", "reason"),
    [
        (group("Running", "old news"), [], ""),
        (group("Pending"), None, "queue q has not let it in yet"),
        (group("Inqueue", "Job a waits: 2 cpu short; request less (0/3 nodes)"), None, "2 cpu short"),
        (group("Inqueue", "3/3 tasks in gang unschedulable"), None, "3/3 tasks in gang unschedulable"),
        (group("Inqueue"), [{}], "1 of the 2 pods that must start together exist"),
        (group("Inqueue"), [{}, {}], "it was let in, and its pods are not placed yet"),
    ],
)
def test_why_a_pod_group_waits(waiting: Manifest, members: list[Manifest] | None, reason: str) -> None:
    assert wait_reason(waiting, members) == reason
