"""The soak's own ledger notices what is lost, and takes either outcome of a write that nobody heard of."""

from __future__ import annotations

from itertools import islice

from tests.soak.ledger import Ledger, Stored
from tests.soak.mutations import mutated_requests

KEY = ("/api/v1/namespaces/churn/configmaps", "a")


def ledger_with(serial: str) -> Ledger:
    """An object whose creation was acknowledged."""
    ledger = Ledger()
    ledger.begin(KEY, serial)
    ledger.acknowledge(KEY, 7)
    return ledger


def test_what_is_stored_as_acknowledged_is_no_problem() -> None:
    assert ledger_with("1").settle({KEY: Stored("1", leaving=False)}, 7) == []


def test_a_lost_creation_change_or_deletion_is_noticed() -> None:
    assert "absent is stored" in ledger_with("1").settle({}, 7)[0]
    changed = ledger_with("1")
    changed.begin(KEY, "2")
    changed.acknowledge(KEY, 8)
    assert "1 is stored" in changed.settle({KEY: Stored("1", leaving=False)}, 8)[0]
    deleted = ledger_with("1")
    deleted.begin(KEY, None)
    deleted.acknowledge(KEY, 8)
    assert "1 is stored" in deleted.settle({KEY: Stored("1", leaving=False)}, 8)[0]


def test_an_object_that_nobody_wrote_is_noticed() -> None:
    assert "9 is stored" in Ledger().settle({KEY: Stored("9", leaving=False)}, 7)[0]


def test_a_resource_version_that_falls_is_noticed() -> None:
    assert "fell from 7 to 6" in ledger_with("1").settle({KEY: Stored("1", leaving=False)}, 6)[0]


def test_a_write_without_an_answer_may_have_happened_or_not_and_is_known_from_then_on() -> None:
    for outcome in ("1", "2"):
        ledger = ledger_with("1")
        ledger.begin(KEY, "2")
        assert ledger.settle({KEY: Stored(outcome, leaving=False)}, 8) == []
        assert ledger.known(KEY) == outcome
        assert ledger.settle({}, 8) != []


def test_a_deleted_object_may_stay_as_long_as_it_is_leaving() -> None:
    ledger = ledger_with("1")
    ledger.begin(KEY, None)
    ledger.acknowledge(KEY, 8)
    assert ledger.settle({KEY: Stored("1", leaving=True)}, 8) == []
    assert ledger.settle({}, 9) == []


def test_a_refused_write_changes_nothing() -> None:
    ledger = ledger_with("1")
    ledger.begin(KEY, "2")
    ledger.refuse(KEY)
    assert ledger.settle({KEY: Stored("1", leaving=False)}, 8) == []


def test_the_same_seed_gives_the_same_mutated_requests() -> None:
    def requests(seed: int) -> list[bytes]:
        return [request.encode("token") for request in islice(mutated_requests(seed), 200)]

    assert requests(1) == requests(1)
    assert requests(1) != requests(2)
