"""Events: counted, combined, and never a flood."""

from __future__ import annotations

from stromboli.kube.event_recorder import (
    BURST,
    COMBINED,
    MAX_MESSAGE_BYTES,
    EventRecorder,
    ObjectReference,
    PendingEvent,
)
from stromboli.kube.request import ApiError
from tests.kube.fake_api import Clock, body

POD = ObjectReference("Pod", "ns", "web-0", "u1")


def say(events: EventRecorder, message: str = "m", subject: ObjectReference = POD) -> str:
    """`POST message`, `PATCH message`, or nothing."""
    request = events.request(PendingEvent(subject, "Warning", "FailedScheduling", message))
    return "" if request is None else f"{request.method} {body(request)['message']}"


def test_other_words_are_another_event_until_there_are_too_many() -> None:
    events = EventRecorder("volcano", "here", Clock())
    assert [say(events, str(n)) for n in range(10)] == [f"POST {n}" for n in range(10)]
    assert say(events, "10") == f"POST {COMBINED}10"
    assert say(events, "11") == f"PATCH {COMBINED}11"
    assert say(events, "3") == "PATCH 3"


def test_an_object_has_so_many_events_at_once_and_then_one_every_five_minutes() -> None:
    clock = Clock()
    events = EventRecorder("volcano", "here", clock)
    requests = [say(events) for _ in range(BURST + 5)]
    assert [bool(event) for event in requests] == [True] * BURST + [False] * 5
    assert events.dropped == 5
    assert say(events, subject=POD._replace(name="other"))
    clock.now += 301
    assert say(events)
    assert not say(events)


def test_an_old_event_is_not_raised_but_said_anew() -> None:
    clock = Clock()
    events = EventRecorder("volcano", "here", clock)
    assert say(events) == "POST m"
    clock.now += 3600
    assert say(events) == "POST m"


def test_an_event_that_expired_on_the_server_is_said_anew() -> None:
    events = EventRecorder("volcano", "here", Clock())
    assert say(events) == "POST m"
    assert say(events) == "PATCH m"
    saying = PendingEvent(POD, "Warning", "FailedScheduling", "m")
    assert events.failed(saying, ApiError(404))
    assert say(events) == "POST m"


def test_a_message_is_cut_to_as_many_bytes_as_the_server_takes() -> None:
    requests = say(EventRecorder("volcano", "here", Clock()), "x" + "ü" * MAX_MESSAGE_BYTES).removeprefix(
        "POST "
    )
    assert requests == "x" + "ü" * 511
    assert len(requests.encode()) <= MAX_MESSAGE_BYTES


def test_a_message_that_is_no_text_is_written_as_far_as_it_is() -> None:
    assert say(EventRecorder("volcano", "here", Clock()), "a\ud800b") == "POST a?b"
