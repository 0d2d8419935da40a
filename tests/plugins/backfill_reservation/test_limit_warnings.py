"""An invalid time limit counts as none, and is reported once."""

from stromboli.engine.decisions import Event
from stromboli.testing import Result
from tests.plugins.backfill_reservation.backfill_worlds import LIMIT, job, step, world


def warnings(result: Result) -> list[tuple[str, str]]:
    events = [each for each in result.decisions if isinstance(each, Event) and each.reason == "FieldIgnored"]
    return [(event.kind, event.message) for event in events]


def test_an_invalid_limit_of_a_job_is_reported_once() -> None:
    here = world()
    job(here, "a", 1, "soon")
    ((kind, message),) = warnings(step(here))
    assert kind == "PodGroup"
    assert "'soon'" in message or '"soon"' in message
    assert "1h30m" in message
    here.finish("a-0")
    assert warnings(step(here)) == []


def test_an_invalid_limit_of_a_queue_is_reported_once() -> None:
    here = world()
    here.rehearsal.annotate("default", LIMIT, "-3s")
    job(here, "a", 1)
    assert [kind for kind, _ in warnings(step(here))] == ["Queue"]
    job(here, "b", 1)
    assert warnings(step(here)) == []
