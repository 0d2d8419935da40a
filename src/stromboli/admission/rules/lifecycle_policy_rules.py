"""Lifecycle policies: what a job or task does when something happens to its pods."""

from stromboli.admission.rules.field import Field
from stromboli.api.go_scalars import MAX_DURATION, duration

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


def check(policies: Field, shown_path: str) -> None:
    """Report the problems of a list of policies; `shown_path` is its path in Volcano's messages."""
    events: dict[str, Field] = {}
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
        _check_timeout(policy["timeout"], shown_path)
        for event, field in named.items():
            _check_event(event, field, policy["action"], shown_path, known=events)
        events |= named
    if ANY in events and len(events) > 1:
        events[ANY].wrong(
            "if there's * here, no other policy should be here", "drop it, or the policies for single events"
        )


def _events(policy: Field) -> dict[str, Field]:
    """The events of a policy, `events` before `event`, each once."""
    events: dict[str, Field] = {}
    for field in (*policy["events"].items(), policy["event"]):
        event = field.text()
        if event:
            events.setdefault(event, field)
    return events


def _check_event(event: str, field: Field, action: Field, shown_path: str, known: dict[str, Field]) -> None:
    if event not in EVENTS:
        field.renamed(shown_path).invalid("invalid policy event", f"valid events are {_listed(EVENTS)}")
    if action.text() not in ACTIONS:
        stated = Field(action.text(), action.report, action.path, shown_path)
        stated.invalid("invalid policy action", f"valid actions are {_listed(ACTIONS)}")
    if event in known:
        field.wrong(f"duplicate event {event}  across different policy", "keep one policy for each event")


def _check_timeout(field: Field, shown_path: str) -> None:
    text = field.text()
    seconds = duration(text)
    if text and (seconds is None or abs(seconds) >= MAX_DURATION):
        field.renamed(f"{shown_path}.timeout").invalid("must be a duration", "such as 90s or 1h30m")


def _check_exit_code(field: Field, codes: set[int]) -> None:
    code = field.number()
    if code == 0:
        field.wrong("0 is not a valid error code", "use the event TaskCompleted for success")
    elif code in codes:
        field.wrong(f"duplicate exitCode {code}", "keep one policy for each exit code")
    codes.add(code)


def _listed(values: tuple[str, ...]) -> str:
    return f"[{' '.join(values)}]"
