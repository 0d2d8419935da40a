"""Pods read by the specs that are known already are those that are decoded and checked on their own."""

from typing import Any

import msgspec
import pytest

from stromboli.api import object_reading
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.object_reading import ObjectReader, readable_part
from stromboli.api.types.pod import Pod

PLAIN = '{"schedulerName":"volcano","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}'


def raw(spec: str, name: str = "a", status: str = "{}") -> bytes:
    return f'{{"kind":"Pod","metadata":{{"name":"{name}"}},"spec":{spec},"status":{status}}}'.encode()


def on(node: str, before: str = "", after: str = "") -> str:
    return f'{{"priority":3,{before}"nodeName":"{node}"{after}}}'


@pytest.mark.parametrize(
    "specs",
    [
        [PLAIN, PLAIN, PLAIN],
        [on("n1"), on("n2"), on("n3"), PLAIN, on("n4")],
        [on(""), on("n1"), on("")],
        [on("n1", after=',"nodeName":"x"'), on("n2", after=',"nodeName":"x"'), on("n3")],
        [on("x", before='"os":{"nodeName":"n1"},'), on("x", before='"os":{"nodeName":"n2"},')] * 2,
        [on(f"n{at}", before='"nodeSelector":{"\\"nodeName":"n1"},') for at in (1, 2, 1, 3)],
        [on("n1"), on('n1","priority":4,"os":{"name":"linux"},"schedulerName":"x'), on("n1")],
        [on("n1"), on("n\\u0031"), on("0"), on("1"), on("n1")],
        ['{ "nodeName" : "n1" }', '{ "nodeName" : "n2" }', '{ "nodeName" : null }', "null"],
    ],
)
def test_a_pod_is_what_it_is_decoded_on_its_own(specs: list[str]) -> None:
    reader = ObjectReader()
    for at, spec in enumerate(specs):
        content = raw(spec, f"p{at}", '{"phase":"Running"}')
        assert reader.read(Pod, content) == decode_as(Pod, content)


def test_replicas_share_the_parts_of_their_specs_but_not_the_specs() -> None:
    reader = ObjectReader()
    first, second = (reader.read(Pod, raw(PLAIN, name)) for name in "ab")
    assert first.spec is not second.spec
    assert first.spec.containers is second.spec.containers
    first.spec.priority = 7
    assert reader.read(Pod, raw(PLAIN)).spec.priority is None


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (raw(on("n2"), name="a/b"), "metadata.name"),
        (raw(on("n2"), status='{"allocatedResources":{"cpu":"lots"}}'), "status.allocatedResources.cpu"),
        (raw(on("n2"), status='{"phase":3}'), "status.phase"),
        (raw(on("n2", after=',"priority":"high"')), "spec.priority"),
        (raw(on("n2", after=',"overhead":{"cpu":"-1"}')), "spec.overhead.cpu"),
    ],
)
def test_a_bad_pod_among_equal_ones_gets_its_own_error(content: bytes, field: str) -> None:
    reader = ObjectReader()
    for node in ("n1", "n2"):
        reader.read(Pod, raw(on(node)))
    for _ in range(2):  # what is wrong is not remembered as right
        with pytest.raises(BadObject) as caught:
            reader.read(Pod, content)
        assert caught.value.field.startswith(field)
    assert reader.read(Pod, raw(on("n3"))).spec.node_name == "n3"


def test_the_sum_of_spec_and_status_is_checked_for_every_replica() -> None:
    reader = ObjectReader()
    huge = '{"allocatedResources":{"memory":"8Ei"}}'
    reader.read(Pod, raw(PLAIN))
    for _ in range(2):
        with pytest.raises(BadObject):
            reader.read(Pod, raw(PLAIN, status=huge))


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    reader: Any = ObjectReader()
    monkeypatch.setattr(object_reading, "MAX_SPECS", 3)
    monkeypatch.setattr(object_reading, "MAX_NODE_NAMES", 3)
    for at in range(10):
        reader.read(Pod, raw(on(f"n{at}")))
        reader.read(Pod, raw(f'{{"priority":{at}}}'))
        assert len(reader._specs) <= 3
        assert len(reader._node_names) <= 3
    large = msgspec.json.encode({"nodeSelector": {"a": "b" * object_reading.MAX_SPEC_BYTES}}).decode()
    reader._specs.clear()
    assert reader.read(Pod, raw(large)).spec.node_selector is not None
    assert not reader._specs


UNLIMITED = '{"limits":{"memory":"9007199254740988Ki"}}'


def test_limits_in_a_status_are_not_read() -> None:
    status = f'{{"resources":{UNLIMITED},"containerStatuses":[{{"name":"c","resources":{UNLIMITED}}}]}}'
    assert ObjectReader().read(Pod, raw(PLAIN, status=status)).status.phase == ""


def container(requests: str, name: str = "c", limits: str = "{}") -> str:
    return f'{{"name":"{name}","resources":{{"requests":{requests},"limits":{limits}}}}}'


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ("", '"allocatedResources":{"cpu":"lots"}', {"cpu": "1"}),
        ("", '"conditions":{}', {"cpu": "1"}),
        ('"priority":"high",', "", {"cpu": "1"}),
        ('"containers":[' + container('{"cpu":"2","nvidia.com/gpu":"-1"}') + "],", "", {"cpu": "2"}),
        ('"containers":[' + container('{"cpu":"2","memory":["1Gi"]}') + "],", "", {"cpu": "2"}),
        ('"containers":[' + container('{"cpu":"3"}', limits='{"memory":"7Ei"}') + "],", "", {"cpu": "3"}),
        ('"containers":[' + container('{"memory":"7Ei"}') + "],", "", {}),
        ('"tolerations":["none"],"affinity":3,"volumes":{},', '"startTime":"now"', {"cpu": "1"}),
    ],
)
def test_a_refused_pod_on_a_node_keeps_what_can_be_read(spec: str, status: str, left: Any) -> None:
    base = "" if "containers" in spec else '"containers":[' + container('{"cpu":"1"}') + "],"
    phase = '"phase":"Running"' + ("," if status else "") + status
    content = raw(f'{{{spec}{base}"nodeName":"n1","schedulerName":"volcano"}}', status=f"{{{phase}}}")
    with pytest.raises(BadObject):
        ObjectReader().read(Pod, content)
    pod = readable_part(content)
    assert pod is not None
    assert (pod.name, pod.spec.node_name, pod.status.phase) == ("a", "n1", "Running")
    assert [each.resources.requests for each in pod.spec.containers] == [left]


def test_a_pod_with_many_mistakes_keeps_its_node_and_phase() -> None:
    mistakes = ",".join('{"name":3}' for _ in range(100))
    status = f'{{"phase":"Failed","containerStatuses":[{mistakes}],"conditions":[{mistakes}]}}'
    pod = readable_part(raw(f'{{"nodeName":"n1","containers":[{mistakes}]}}', status=status))
    assert pod is not None
    assert (pod.spec.node_name, pod.status.phase, pod.spec.containers) == ("n1", "Failed", ())


@pytest.mark.parametrize("others", ["[]", '[{"name":"i","resources":[{"limits":1}]}]', '["busybox",3]', "3"])
@pytest.mark.parametrize(
    "containers", ["3", '{"name":"c"}', '["busybox",[1],3]', '[{"resources":["limits"]}]']
)
def test_containers_of_a_wrong_type_are_left_out(containers: str, others: str) -> None:
    spec = f'{{"containers":{containers},"initContainers":{others},"nodeName":"n1"}}'
    pod = readable_part(raw(spec, status='{"phase":"Running"}'))
    assert pod is not None
    assert (pod.spec.node_name, pod.status.phase) == ("n1", "Running")


@pytest.mark.parametrize(
    "content",
    [
        raw('{"priority":"high"}', status='{"phase":"Pending"}'),
        raw('{"nodeName":"n1","priority":"high"}', name="a/b"),
        raw('{"nodeName":3}', status='{"phase":"Pending"}'),
        b"{",
        b"[" * 5000,
    ],
)
def test_a_pod_that_holds_no_node_or_has_no_name_is_left_out(content: bytes) -> None:
    assert readable_part(content) is None


LARGE = '{"cpu":"2","memory":"9007199254740988Ki"}'


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ("", f'"allocatedResources":{LARGE}'),
        ("", f'"resources":{{"requests":{LARGE},"limits":{{"memory":["unread"]}}}}'),
        ("", f'"containerStatuses":[{{"name":"c","allocatedResources":{LARGE}}}]'),
        (f'"overhead":{LARGE},', ""),
        (f'"resources":{{"requests":{LARGE}}},', ""),
        (f'"initContainers":[{container(LARGE)}],', ""),
    ],
)
def test_of_amounts_whose_sum_is_too_large_the_large_ones_are_left_out_alone(spec: str, status: str) -> None:
    content = raw(f'{{{spec}"nodeName":"n1","containers":[{container(LARGE)}]}}', status=f"{{{status}}}")
    with pytest.raises(BadObject, match="add up"):
        ObjectReader().read(Pod, content)
    pod = readable_part(content)
    assert pod is not None
    assert [each.resources.requests for each in pod.spec.containers] == [{"cpu": "2"}]


@pytest.mark.parametrize("size", [20, 1_100_000])
def test_many_mistakes_outside_the_spec_do_not_hide_what_it_requests(size: int) -> None:
    mistakes = ",".join('{"name":3}' for _ in range(20))
    metadata = f'{{"name":"a","annotations":{{"a":"{"x" * size}"}}}}'
    status = f'{{"phase":"Running","containerStatuses":[{mistakes}]}}'
    spec = f'{{"nodeName":"n1","containers":[{container(LARGE)}]}}'
    pod = readable_part(f'{{"metadata":{metadata},"spec":{spec},"status":{status}}}'.encode())
    assert pod is not None
    assert (pod.spec.node_name, pod.status.phase) == ("n1", "Running")
    assert [each.resources.requests for each in pod.spec.containers] == [{"cpu": "2"}]
