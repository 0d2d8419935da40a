"""Whatever stands in a manifest, the answer is an object or a BadObject."""

from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import Priorities, case_defaults
from stromboli.api.object_checks import check_object
from stromboli.api.resources.pod_requests import pod_request, view_request
from stromboli.api.resources.quantity import INT64_MAX
from stromboli.api.types.pod import Pod

CASES = sorted((Path(__file__).parent / "data" / "cases").glob("*.json"))
MANIFESTS = [manifest for path in CASES for manifest in msgspec.json.decode(path.read_bytes())["objects"]]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["1", "-1", "9e18"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def locations(value: Any) -> list[tuple[Any, Any]]:
    """Every spot in a manifest where something else could stand."""
    pairs = []
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        pairs.append((value, key))
        if isinstance(part, dict | list):
            pairs += locations(part)
    return pairs


@given(st.data())
def test_a_manifest_with_one_thing_changed_is_used_or_refused(data: st.DataObject) -> None:
    manifest = msgspec.json.decode(msgspec.json.encode(data.draw(st.sampled_from(MANIFESTS))))
    holder, key = data.draw(st.sampled_from(locations(manifest)))
    holder[key] = data.draw(values)
    try:
        obj = decode(manifest)
        if obj is None:
            return
        check_object(obj)
    except BadObject as error:
        assert error.problem
        return
    case_defaults(obj, 0, Priorities())
    assert obj.metadata.uid
    if isinstance(obj, Pod):
        assert all(0 <= amount <= INT64_MAX for amount in pod_request(obj).values())
        assert view_request(obj).nonzero_cpu >= 0
