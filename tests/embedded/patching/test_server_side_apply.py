"""Server-side apply: who owns what, conflicts as kubectl shows them, and laws that hold for any two configurations."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.managed_fields import MAX_UPDATERS
from stromboli.embedded.patching.server_side_apply import LAST_APPLIED, SPEC, STATUS, apply, track_update
from tests.embedded.patching.workload import (
    WORKLOAD,
    container,
    documents,
    field_manager,
    workload,
    workloads,
)

LATER = "2026-01-02T00:00:00Z"


def owned(content: Any) -> dict[str, Any]:
    """The fields that each manager has."""
    return {entry["manager"]: entry["fieldsV1"] for entry in content["metadata"].get("managedFields", ())}


def bare(content: Any) -> Any:
    metadata = {key: value for key, value in content["metadata"].items() if key != "managedFields"}
    return {**content, "metadata": metadata}


def applied(live: Any, spec: Any, manager: str = "a", force: bool = False, **metadata: Any) -> Any:
    return apply(live, workload(spec, **metadata), WORKLOAD, field_manager(manager), force)


# -- applying


def test_the_first_apply_creates_the_object_and_owns_its_fields() -> None:
    spec = {"replicas": 1, "containers": [container("a", image="1", ports=[{"number": 80}])]}
    created = applied(None, spec, labels={"x": "y"}, finalizers=["f"])
    assert bare(created) == workload(spec, labels={"x": "y"}, finalizers=["f"])
    (entry,) = created["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["fieldsType"]) == ("a", "Apply", "FieldsV1")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:x": {}}, "f:finalizers": {'v:"f"': {}}},
        "f:spec": {
            "f:replicas": {},
            "f:containers": {
                'k:{"name":"a"}': {
                    ".": {},
                    "f:name": {},
                    "f:image": {},
                    "f:ports": {'k:{"number":80,"protocol":"TCP"}': {".": {}, "f:number": {}}},
                }
            },
        },
    }


def test_a_field_that_is_no_longer_applied_goes() -> None:
    created = applied(None, {"replicas": 1, "command": ["x"], "selector": {"a": "1"}}, labels={"x": "y"})
    left = applied(created, {"replicas": 1})
    assert bare(left) == workload({"replicas": 1})
    assert owned(left) == {"a": {"f:spec": {"f:replicas": {}}}}


def test_a_field_that_another_manager_applies_too_stays() -> None:
    created = applied(None, {"replicas": 1, "command": ["x"]})
    shared = applied(created, {"replicas": 1}, "b")
    left = applied(shared, {"command": ["x"]})
    assert left["spec"] == {"replicas": 1, "command": ["x"]}
    assert owned(left) == {"a": {"f:spec": {"f:command": {}}}, "b": {"f:spec": {"f:replicas": {}}}}


def test_what_the_server_set_stays_when_an_owner_forgets_the_rest() -> None:
    created = applied(None, {"replicas": 1, "containers": [container("a", image="1")]}, labels={"x": "y"})
    created["metadata"]["uid"] = "7"
    created["spec"]["containers"][0]["args"] = ["by default"]
    left = applied(created, {"containers": [container("a")]})
    assert left["metadata"]["uid"] == "7"
    assert left["spec"] == {"containers": [{"name": "a", "args": ["by default"]}]}


def test_an_entry_of_a_list_that_is_no_longer_applied_goes_and_others_stay_in_order() -> None:
    created = applied(None, {"containers": [container("a"), container("b"), container("c")]})
    both = applied(created, {"containers": [container("d", image="1"), container("c")]}, "b")
    assert [container["name"] for container in both["spec"]["containers"]] == ["a", "b", "d", "c"]
    left = applied(both, {"containers": [container("a")]})
    assert [container["name"] for container in left["spec"]["containers"]] == ["a", "d", "c"]


def test_a_whole_list_or_map_has_one_owner() -> None:
    created = applied(None, {"command": ["x", "y"], "selector": {"a": "1"}})
    assert owned(created)["a"] == {"f:spec": {"f:command": {}, "f:selector": {}}}
    with pytest.raises(StatusError) as refused:
        applied(created, {"command": ["x"], "selector": {"a": "2"}}, "b")
    assert [cause["field"] for cause in refused.value.details["causes"]] == [
        ".spec.command",
        ".spec.selector",
    ]


# -- conflicts


def test_one_conflict_reads_as_kubectl_expects() -> None:
    created = applied(None, {"replicas": 1})
    with pytest.raises(StatusError) as refused:
        applied(created, {"replicas": 2}, "b")
    error = refused.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'
    assert error.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.replicas"}
    ]


def test_several_conflicts_are_listed_by_owner() -> None:
    created = applied(None, {"replicas": 1, "containers": [container("c", image="1")]})
    updated = track_update(
        created, {**created, "spec": {**created["spec"], "replicas": 3}}, WORKLOAD, field_manager("edit")
    )
    with pytest.raises(StatusError) as refused:
        applied(updated, {"replicas": 2, "containers": [container("c", image="2")]}, "b")
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.containers[name="c"].image\n'
        'conflicts with "edit" using example.com/v1:\n- .spec.replicas'
    )


def test_force_takes_the_field_over() -> None:
    created = applied(None, {"replicas": 1, "command": ["x"]})
    taken = applied(created, {"replicas": 2}, "b", force=True)
    assert taken["spec"]["replicas"] == 2
    assert owned(taken) == {"a": {"f:spec": {"f:command": {}}}, "b": {"f:spec": {"f:replicas": {}}}}


def test_the_same_value_is_no_conflict() -> None:
    created = applied(None, {"replicas": 1})
    assert set(owned(applied(created, {"replicas": 1}, "b"))) == {"a", "b"}


# -- updates


def test_a_create_owns_everything_and_an_update_what_it_changes() -> None:
    created = track_update(
        None, workload({"replicas": 1}, labels={"x": "y"}), WORKLOAD, field_manager("create")
    )
    assert owned(created) == {
        "create": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}, "f:spec": {".": {}, "f:replicas": {}}}
    }
    changed = {**created, "spec": {"replicas": 2, "command": ["x"]}}
    changed = track_update(created, changed, WORKLOAD, field_manager("edit", LATER))
    assert owned(changed)["edit"] == {"f:spec": {"f:replicas": {}, "f:command": {}}}
    assert owned(changed)["create"]["f:spec"] == {}


def test_an_update_that_changes_nothing_is_not_noted() -> None:
    created = track_update(None, workload({"replicas": 1}), WORKLOAD, field_manager("create"))
    assert track_update(created, copy.deepcopy(created), WORKLOAD, field_manager("edit", LATER)) == created
    assert track_update(created, bare(created), WORKLOAD, field_manager("edit", LATER)) == created


def test_an_object_without_managed_fields_belongs_to_before_first_apply() -> None:
    live = workload({"replicas": 1})
    assert track_update(live, workload({"replicas": 2}), WORKLOAD, field_manager("edit")) == workload(
        {"replicas": 2}
    )
    with pytest.raises(StatusError, match='conflict with "before-first-apply" using'):
        applied(live, {"replicas": 2})


def test_a_status_is_written_apart_from_the_rest() -> None:
    created = apply(None, workload({"replicas": 1}), WORKLOAD, field_manager("a", ignored=STATUS))
    with_status = {**created, "status": {"phase": "Running"}}
    noted = track_update(
        created, with_status, WORKLOAD, field_manager("node", subresource="status", ignored=SPEC)
    )
    (entry,) = (entry for entry in noted["metadata"]["managedFields"] if entry["manager"] == "node")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {".": {}, "f:phase": {}}})
    config = {**workload({"replicas": 2}), "status": {"phase": "Nonsense"}}
    again = apply(noted, config, WORKLOAD, field_manager("a", ignored=STATUS))
    assert again["status"] == {"phase": "Running"}
    assert again["spec"] == {"replicas": 2}


def test_the_oldest_of_many_updaters_are_put_together() -> None:
    content = track_update(None, workload({"replicas": 0}), WORKLOAD, field_manager("first"))
    for number in range(30):
        new = {
            **content,
            "metadata": {
                **content["metadata"],
                "labels": {**content["metadata"].get("labels", {}), f"l{number}": "x"},
            },
        }
        time = f"2026-01-01T00:00:{number:02}Z"
        content = track_update(content, new, WORKLOAD, field_manager(f"m{number}", time))
    assert len(owned(content)) == MAX_UPDATERS
    assert "f:l0" in owned(content)["ancient-changes"]["f:metadata"]["f:labels"]


# -- from client-side apply to server-side apply


def client_side(spec: Any) -> Any:
    """What `kubectl apply` leaves behind."""
    config = workload(spec)
    noted = {LAST_APPLIED: json.dumps(config)}
    return track_update(
        None, workload(spec, annotations=noted), WORKLOAD, field_manager("kubectl-client-side-apply")
    )


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    live = client_side({"replicas": 1})
    moved = apply(live, workload({"replicas": 2}), WORKLOAD, field_manager("kubectl"))
    assert moved["spec"] == {"replicas": 2}
    assert json.loads(moved["metadata"]["annotations"][LAST_APPLIED]) == workload({"replicas": 2})
    with pytest.raises(StatusError, match='"kubectl-client-side-apply" using'):
        applied(live, {"replicas": 2}, "somebody-else")


def test_a_field_changed_since_then_is_still_a_conflict_for_kubectl() -> None:
    live = client_side({"replicas": 1})
    scaled = track_update(live, {**live, "spec": {"replicas": 5}}, WORKLOAD, field_manager("autoscaler"))
    with pytest.raises(StatusError, match='"autoscaler" using'):
        apply(scaled, workload({"replicas": 2}), WORKLOAD, field_manager("kubectl"))


def test_managed_fields_can_be_rewritten_and_cleared_but_not_through_a_subresource() -> None:
    created = track_update(None, workload({"replicas": 1}), WORKLOAD, field_manager("old"))
    renamed = [
        {**entry, "manager": "new", "operation": "Apply"} for entry in created["metadata"]["managedFields"]
    ]
    moved = {**created, "metadata": {**created["metadata"], "managedFields": renamed}}
    assert set(owned(track_update(created, moved, WORKLOAD, field_manager("x")))) == {"new"}
    assert set(owned(track_update(created, moved, WORKLOAD, field_manager("x", subresource="status")))) == {
        "old"
    }
    cleared = {**created, "metadata": {**created["metadata"], "managedFields": [{}]}}
    assert owned(track_update(created, cleared, WORKLOAD, field_manager("x"))) == {}
    broken = {**created, "metadata": {**created["metadata"], "managedFields": [{"operation": "Guess"}]}}
    assert set(owned(track_update(created, broken, WORKLOAD, field_manager("x")))) == {"old"}


# -- what is refused


@pytest.mark.parametrize(
    ("config", "manager", "code", "message"),
    [
        (workload({}, managedFields=[]), "a", 400, "metadata.managedFields must be nil"),
        (
            {**workload({}), "apiVersion": "v7"},
            "a",
            400,
            "Specified patch version: v7, expected: example.com/v1",
        ),
        (workload({}), "", 422, "fieldManager: Required value"),
        (workload({"containers": [container("a"), container("a")]}), "a", 400, "duplicate entries for key"),
        (workload({"containers": ["a"]}), "a", 400, "is an object"),
        ([], "a", 400, "is an object"),
    ],
)
def test_a_configuration_that_cannot_be_applied_is_refused(
    config: Any, manager: str, code: int, message: str
) -> None:
    with pytest.raises(StatusError, match=message) as refused:
        apply(None, config, WORKLOAD, field_manager(manager))
    assert refused.value.code == code


# -- laws


@given(workloads, workloads)
def test_applying_twice_is_applying_once(first: Any, second: Any) -> None:
    live = apply(None, first, WORKLOAD, field_manager("a"))
    before = copy.deepcopy(live)
    once = apply(live, second, WORKLOAD, field_manager("b"), force=True)
    assert live == before
    assert apply(once, second, WORKLOAD, field_manager("b", LATER)) == once


@given(workloads, workloads)
def test_an_only_owner_gets_exactly_what_it_applies(first: Any, second: Any) -> None:
    live = apply(None, first, WORKLOAD, field_manager("a"))
    left = bare(apply(live, second, WORKLOAD, field_manager("a")))
    assert filled(left) == filled(second)


def filled(value: Any) -> Any:
    """Without empty maps and lists, and sets and lists with keys in one order: apply tells none of those apart."""
    if isinstance(value, dict):
        value = {key: sorted(child) if key == "finalizers" else child for key, child in value.items()}
        return {key: below for key, child in value.items() if (below := filled(child)) not in ({}, [], None)}
    if isinstance(value, list):
        items = [filled(child) for child in value]
        return (
            sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
            if all(isinstance(item, dict) for item in items)
            else items
        )
    return value


@given(workloads, workloads)
def test_what_two_apply_without_conflict_stands_in_the_object(first: Any, second: Any) -> None:
    live = apply(None, first, WORKLOAD, field_manager("a"))
    try:
        both = apply(live, second, WORKLOAD, field_manager("b"))
    except StatusError as refused:
        assert refused.code == 409
        assert refused.details["causes"]
        return
    for config, manager in ((first, "a"), (second, "b")):
        again = apply(both, config, WORKLOAD, field_manager(manager))
        assert filled(bare(again)) == filled(bare(both))
        assert owned(again) == owned(both)
    assert filled(bare(apply(both, workload(), WORKLOAD, field_manager("b")))) == filled(first)


@given(workloads, workloads)
def test_every_field_that_an_update_changed_is_the_updaters(first: Any, second: Any) -> None:
    live = track_update(None, first, WORKLOAD, field_manager("a"))
    new = track_update(live, second, WORKLOAD, field_manager("b"))
    assert bare(new) == second
    if first["spec"].get("replicas") != second["spec"].get("replicas") and "replicas" in second["spec"]:
        assert "f:replicas" in owned(new)["b"]["f:spec"]
        assert "f:replicas" not in owned(new).get("a", {}).get("f:spec", {})


@given(documents, documents, workloads)
def test_any_configuration_and_any_managed_fields_are_taken_or_refused(
    config: Any, fields: Any, live: Any
) -> None:
    entry = {
        "manager": "x",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    odd = {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}
    for patch in (config, {"apiVersion": "example.com/v1", "spec": config, "metadata": config}):
        for content in (live, odd):
            for ignored in ({}, STATUS, SPEC):
                try:
                    apply(content, patch, WORKLOAD, field_manager("a", ignored=ignored))
                except StatusError as refused:
                    assert refused.code in (400, 409)
            track_update(live, odd, WORKLOAD, field_manager("u"))
