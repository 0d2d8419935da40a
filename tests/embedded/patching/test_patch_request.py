"""The content type decides."""

import pytest

from stromboli.api.patches import JSON_PATCH, MERGE, STRATEGIC
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.patch_request import check_media, patched
from tests.embedded.patching.workload import WORKLOAD, container, workload


def test_each_type_has_its_way_with_lists() -> None:
    content = workload({"containers": [container("a")]})
    patch = {"spec": {"containers": [container("b")]}}
    assert len(patched(content, patch, MERGE, WORKLOAD)["spec"]["containers"]) == 1
    assert len(patched(content, patch, STRATEGIC, WORKLOAD)["spec"]["containers"]) == 2
    assert patched(content, [{"op": "remove", "path": "/spec"}], JSON_PATCH, WORKLOAD) == workload()


def test_objects_of_crds_take_no_strategic_merge_patch() -> None:
    check_media(STRATEGIC, built_in=True)
    with pytest.raises(StatusError, match="accepted media types include: application/json-patch") as refused:
        check_media(STRATEGIC, built_in=False)
    assert refused.value.code == 415
    with pytest.raises(StatusError):
        check_media("text/plain", built_in=True)


def test_an_object_stays_an_object() -> None:
    with pytest.raises(StatusError, match="is not an object"):
        patched(workload(), [{"op": "replace", "path": "", "value": 7}], JSON_PATCH, WORKLOAD)
