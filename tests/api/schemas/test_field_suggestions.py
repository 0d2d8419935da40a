"""A slip of the pen is met with the field that was meant."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.schemas.crd_schemas import from_crd
from stromboli.api.schemas.field_suggestions import suggested_field
from stromboli.api.schemas.volcano_definitions import volcano_definitions

(JOB,) = (
    from_crd(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for definition in volcano_definitions(["batch.volcano.sh"])
    if definition["metadata"]["name"] == "jobs.batch.volcano.sh"
)
TASK = "spec.tasks[0]"
POD = f"{TASK}.template.spec"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{POD}.nodeSelecter", "nodeSelector"),
        (f"{POD}.nodeselector", "nodeSelector"),
        (f"{POD}.containers[0].resource", "resources"),
        (f"{POD}.containers[0].images", "image"),
        (f"{POD}.containers[0].resources.request", "requests"),
        (f"{POD}.toleration", "tolerations"),
        ("spec.minAvailble", "minAvailable"),
        ("spec.task", "tasks"),
        ("specs", "spec"),
        (f"{POD}.containers[0].nodeSelector", f"{POD}.nodeSelector"),
        (f"{POD}.replicas", f"{TASK}.replicas"),
        (f"{TASK}.template.nodeSelector", f"{TASK}.template.spec.nodeSelector"),
        (f"{POD}.command", f"{POD}.containers[].command"),
        (f"{TASK}.labels", ""),
        (f"{POD}.zzz", ""),
        ("zzz.yyy", ""),
        (f"{POD}.a.b", ""),
    ],
)
def test_the_field_that_was_probably_meant(written: str, meant: str) -> None:
    assert suggested_field(written, JOB) == meant


@example(path="")
@example(path=".")
@given(path=st.text(alphabet="a.[]0 spec", max_size=12))
def test_any_field_is_taken_for_something_or_nothing(path: str) -> None:
    assert isinstance(suggested_field(path, JOB), str)


def test_a_field_made_to_hurt_is_compared_with_nothing() -> None:
    before = time.process_time()
    assert suggested_field(f"{POD}.{'nodeSelector' * 10_000}", JOB) == ""
    assert time.process_time() - before < 1
