"""Lifecycle policies: what a job or task does when something happens to its pods."""

from stromboli.admission.rules.field import Place
from stromboli.api.go_scalars import LONGEST_DURATION, duration

ANY = "*"
EVENTS = (
    ANY,
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)


def check(policies: Place, called: str) -> None:
    """Report what is wrong with a list of policies; `called` is its path in Volcano's messages."""
    events: dict[str, Place] = {}
    codes: set[int] = set()
    for policy in policies.items():
        named = _events(policy)
        code = policy["exitCode"]
        if named and code.given:
            policy.wrong(
                "must not specify event and exitCode simultaneously", "write a policy for each of the two"
            )
        elif code.given:
            _check_exit_code(code, codes)
        elif not named:
            policy.wrong("either event and exitCode should be specified", "add event, events or exitCode")
        _check_timeout(policy["timeout"], called)
        for event, place in named.items():
            _check_event(event, place, policy["action"], called, known=events)
        events |= named
    if ANY in events and len(events) > 1:
        events[ANY].wrong(
            "if there's * here, no other policy should be here", "drop it, or the policies for single events"
        )


def _events(policy: Place) -> dict[str, Place]:
    """The events of a policy, `events` before `event`, each once."""
    found: dict[str, Place] = {}
    for place in (*policy["events"].items(), policy["event"]):
        event = place.text()
        if event:
            found.setdefault(event, place)
    return found


def _check_event(event: str, place: Place, action: Place, called: str, known: dict[str, Place]) -> None:
    if event not in EVENTS:
        place.renamed(called).invalid("invalid policy event", f"valid events are {_listed(EVENTS)}")
    if action.text() not in ACTIONS:
        said = Place(action.text(), action.report, action.path, called)
        said.invalid("invalid policy action", f"valid actions are {_listed(ACTIONS)}")
    if event in known:
        place.wrong(f"duplicate event {event}  across different policy", "keep one policy for each event")


def _check_timeout(place: Place, called: str) -> None:
    text = place.text()
    seconds = duration(text)
    if text and (seconds is None or abs(seconds) >= LONGEST_DURATION):
        place.renamed(f"{called}.timeout").invalid("must be a duration", "such as 90s or 1h30m")


def _check_exit_code(place: Place, codes: set[int]) -> None:
    code = place.number()
    if code == 0:
        place.wrong("0 is not a valid error code", "use the event TaskCompleted for success")
    elif code in codes:
        place.wrong(f"duplicate exitCode {code}", "keep one policy for each exit code")
    codes.add(code)


def _listed(values: tuple[str, ...]) -> str:
    return f"[{' '.join(values)}]"
