"""What an API server sends, read in one go or taken apart: the bad object is named, the others come through."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.kube.watch_decoding import LineSplitter, ListDecoder, WatchEventDecoder


def pod(name: str = "web", version: str = "7", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def line(type: str, manifest: Any) -> bytes:
    return json.dumps({"type": type, "object": manifest}).encode()


BAD = pod("bad", priority="high")


@pytest.mark.parametrize("type", ["ADDED", "MODIFIED", "DELETED"])
def test_an_object_comes_goes_or_changes(type: str) -> None:
    read = WatchEventDecoder(Pod).decode(line(type, pod(schedulerName="volcano")))
    assert (read.type, read.resource_version, read.decoded.key) == (type, "7", "default/web")
    assert isinstance(read.decoded.object, Pod)
    assert read.decoded.object.spec.scheduler_name == "volcano"


def test_a_bookmark_only_tells_how_far_we_are() -> None:
    marked = {"kind": "Pod", "metadata": {"resourceVersion": "99", "creationTimestamp": None}}
    read = WatchEventDecoder(Pod).decode(
        line("BOOKMARK", marked | {"spec": {"containers": None}, "status": {}})
    )
    assert (read.type, read.resource_version, read.decoded.object) == ("BOOKMARK", "99", None)


def test_a_refusal_comes_with_its_reason() -> None:
    read = WatchEventDecoder(Pod).decode(line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"}))
    assert read.type == "ERROR"
    assert read.status is not None
    assert (read.status.code, read.status.reason) == (410, "Expired")


@pytest.mark.parametrize("type", ["ADDED", "DELETED"])
def test_a_bad_object_is_still_known_by_its_marks(type: str) -> None:
    read = WatchEventDecoder(Pod).decode(line(type, BAD))
    assert (read.type, read.resource_version, read.decoded.key, read.decoded.object) == (
        type,
        "7",
        "default/bad",
        None,
    )
    assert read.decoded.metadata.uid == "uid-bad"
    assert read.decoded.error is not None
    assert str(read.decoded.error) == 'Pod default/bad: spec.priority: expected int | null, got str "high"'


@pytest.mark.parametrize("part", ["type", "amount"])
def test_a_bad_pod_on_a_node_comes_with_what_can_be_read(part: str) -> None:
    amount = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]}
    bad = pod("bad", nodeName="n1", **({"priority": "high"} if part == "type" else amount))
    page = json.dumps({"metadata": {}, "items": [bad]}).encode()
    (listed,) = ListDecoder(Pod).decode(page).objects
    for read in (listed, WatchEventDecoder(Pod).decode(line("MODIFIED", bad)).decoded):
        assert read.error is not None
        assert isinstance(read.object, Pod)
        assert read.object.spec.node_name == "n1"


@pytest.mark.parametrize("others", [[], [{"metadata": {"name": 7}}]])
def test_a_node_comes_without_the_amounts_that_cannot_be_used(others: list[Any]) -> None:
    """Of resources that some driver published; the node may be cordoned meanwhile, and its pods count."""
    amounts = {"cpu": "8", "example.com/a": "99999999999999999999", "example.com/b": "-1"}
    bad = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n1", "resourceVersion": "1"},
        "spec": {"unschedulable": True},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    listed, *_ = (
        ListDecoder(Node).decode(json.dumps({"metadata": {}, "items": [bad, *others]}).encode()).objects
    )
    for read in (listed, WatchEventDecoder(Node).decode(line("MODIFIED", bad)).decoded):
        assert read.error is not None
        assert "status.allocatable.example.com/a" in read.error.field
        assert isinstance(read.object, Node)
        assert read.object.spec.unschedulable
        assert read.object.status.allocatable == read.object.status.capacity == {"cpu": "8"}


def test_a_node_with_another_mistake_is_left_out() -> None:
    bad = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a/b"}}
    for read in (
        *ListDecoder(Node).decode(json.dumps({"metadata": {}, "items": [bad]}).encode()).objects,
        WatchEventDecoder(Node).decode(line("ADDED", bad)).decoded,
    ):
        assert (read.object, read.error is not None) == (None, True)


def test_nulls_count_as_absent() -> None:
    read = WatchEventDecoder(Pod).decode(line("ADDED", pod(containers=None)))
    assert read.decoded.object is not None


def test_what_no_type_can_say_is_checked_too() -> None:
    sized = pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "lots"}}}])
    read = WatchEventDecoder(Pod).decode(line("ADDED", sized))
    assert read.decoded.object is None
    assert "lots" in str(read.decoded.error)


@pytest.mark.parametrize(
    "broken", [b"{", b"7", b"[]", b'{"type": "NEWS", "object": {}}', b"\xff\xfe", b"[" * 5000]
)
def test_what_is_no_event_at_all_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="no event of a watch"):
        WatchEventDecoder(Pod).decode(broken)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["metadata", "name", "uid", "spec", "status", "kind"]), inner, max_size=4)
), max_leaves=12))  # fmt: skip
def test_no_object_breaks_the_reader(manifest: Any) -> None:
    read = WatchEventDecoder(Node).decode(line("ADDED", manifest))
    assert (read.decoded.object is None) == (read.decoded.error is not None)


def test_a_page_is_read_in_one_go_or_taken_apart() -> None:
    meta = {"resourceVersion": "50", "continue": "token"}
    for items in ([pod("a"), pod("b")], [pod("a"), BAD, pod("b")]):
        page = ListDecoder(Pod).decode(
            json.dumps({"kind": "PodList", "metadata": meta, "items": items}).encode()
        )
        assert (page.resource_version, page.continue_token) == ("50", "token")
        assert [decoded.key for decoded in page.objects if decoded.object] == ["default/a", "default/b"]
        assert len(page.objects) == len(items)


def test_an_empty_list_may_be_null() -> None:
    assert ListDecoder(Pod).decode(b'{"metadata": {"resourceVersion": "1"}, "items": null}').objects == []


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(ValueError, match="no list of Pod"):
        ListDecoder(Pod).decode(b'{"items": 7}')


@given(
    st.lists(st.binary(min_size=1, max_size=8).filter(lambda line: b"\n" not in line and not line.isspace())),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_lines_are_the_same_wherever_the_stream_is_cut(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter, split, at = LineSplitter(), [], 0
    for cut in [*sorted(cuts), len(stream)]:
        split += splitter.feed(stream[at:cut]) if cut > at else ()
        at = max(at, cut)
    assert split == lines


def test_a_line_without_end_is_refused() -> None:
    splitter = LineSplitter(max_bytes=100)
    with pytest.raises(ValueError, match="a line of more than 100 bytes"):
        list(chain.from_iterable(splitter.feed(b"x" * 10) for _ in range(20)))
