"""What an answer about a submitted job rests on, in sentences."""

from __future__ import annotations

from stromboli.cli.simulate.moment_text import span_text
from stromboli.simulator.count_sentences import count_sentence, counted
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.what_if.assumptions import Assumptions
from stromboli.simulator.what_if.future_world import GRACE_PERIOD

LEAVING = f"{{is}} being deleted: taken to be gone in {GRACE_PERIOD:.0f}s"


def assumption_sentences(rests_on: Assumptions) -> list[str]:
    """What an answer rests on."""
    sentences = [
        (rests_on.limited, "end{s} at {its} time limit; what ends sooner makes room sooner"),
        (rests_on.known, "run{s} as long as the annotation stromboli.sh/run-time says"),
        (rests_on.unknown_start, "do{es} not say since when: taken to have started now"),
    ]
    unlimited = [
        (rests_on.unlimited, "running job", "{has} no time limit"),
        (rests_on.over_limit, "running job", "{is} over {its} time limit"),
        (rests_on.waiting_unlimited, "waiting job", "{has} no time limit"),
    ]
    others = (
        f"{counted(rests_on.other_pods, 'pod')} of no job {'stays' if rests_on.other_pods == 1 else 'stay'}"
    )
    return [
        *(f"{count_sentence(count, 'running job', text)}." for count, text in sentences if count),
        *(
            f"{count_sentence(len(jobs), noun, text)}: {_then(rests_on.assumed, len(jobs))} ({first_few(jobs)})."
            for jobs, noun, text in unlimited
            if jobs
        ),
        *(
            [f"{others} where {'it is' if rests_on.other_pods == 1 else 'they are'}."]
            if rests_on.other_pods
            else []
        ),
        *([f"{count_sentence(rests_on.leaving, 'pod', LEAVING)}."] if rests_on.leaving else []),
        "Nothing else is submitted, and no node fails.",
    ]


def _then(assumed: float | None, count: int) -> str:
    """What is taken to become of jobs without a limit."""
    if assumed is None:
        return f"taken to run for ever; --assume-run-time 2h lets {'it' if count == 1 else 'them'} end"
    return f"taken to run for {span_text(assumed)} from now, or from {'its' if count == 1 else 'their'} start"
