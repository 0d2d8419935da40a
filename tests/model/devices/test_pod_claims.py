"""Which ResourceClaims a pod names."""

from stromboli.api.decoding import decode
from stromboli.api.types.pod import Pod, PodResourceClaim
from stromboli.model.devices.pod_claims import PodClaim, pod_claims


def pod(claims: list[dict[str, str]], statuses: list[dict[str, str]] | None = None) -> Pod:
    decoded = decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"resourceClaims": claims},
            "status": {"resourceClaimStatuses": statuses or []},
        }
    )
    assert isinstance(decoded, Pod)
    return decoded


FROM_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}


def test_a_claim_named_by_the_pod_is_that_claim() -> None:
    assert pod_claims(pod([{"name": "gpu", "resourceClaimName": "c"}])) == (PodClaim("gpu", "c"),)


def test_a_claim_from_a_template_is_named_in_the_status_of_the_pod() -> None:
    made = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    assert pod_claims(pod([FROM_TEMPLATE], made)) == (PodClaim("gpu", "p-gpu-x", "one-gpu"),)


def test_a_claim_that_was_not_created_yet_has_no_name() -> None:
    assert pod_claims(pod([FROM_TEMPLATE])) == (PodClaim("gpu", "", "one-gpu"),)


def test_an_entry_whose_status_has_no_name_needs_no_claim() -> None:
    assert pod_claims(pod([FROM_TEMPLATE], [{"name": "gpu"}])) == ()


def test_a_claim_is_the_groups_where_the_group_has_the_same_entry() -> None:
    made = PodClaim("gpu", "g-gpu-x", "one-gpu")
    assert made.is_entry(PodResourceClaim("gpu", None, "one-gpu"))
    assert not made.is_entry(PodResourceClaim("gpu", None, "two-gpus"))
    assert not made.is_entry(PodResourceClaim("nic", None, "one-gpu"))
    named = PodClaim("gpu", "c")
    assert named.is_entry(PodResourceClaim("gpu", "c"))
    assert not named.is_entry(PodResourceClaim("gpu", "d"))
