"""What the metrics of a scheduler say of its cycles, of what waits and of what it writes.

Each function makes one line; None if the scheduler does not tell, as Volcano's does not tell what only ours counts.
"""

from __future__ import annotations

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics.measure_text import (
    count_text,
    counts_by,
    duration_text,
    noun_text,
    number,
    within_text,
)
from stromboli.cli.metrics.metric_samples import Distribution, Samples
from stromboli.cli.metrics.summary_line import Numbers, SummaryLine, judged, neutral

FINE_CYCLE_SECONDS = 1.0
"""Of 99 of 100 cycles: a pod that has room should not wait longer for its turn."""
FINE_WAIT_SECONDS = 60.0
"""Of half of all pods and jobs, from their creation to their binding."""
FINE_BIND_SECONDS = 0.5
"""Of 99 of 100 requests that bind a pod: the last bound of the histogram."""
FINE_FAILED_PART = 0.01
"""Of attempts, writes or requests."""
FINE_OLDEST_SECONDS = 3600.0
"""Age of the oldest job that waits."""
FINE_LAG_SECONDS = 5.0
"""For which a change may lie unapplied."""
_WHY = "`stromboli top` shows who waits, `stromboli explain JOB` tells why"


def _counts_all(samples: Samples) -> bool:
    """Whether it is our scheduler: what it has not counted yet is none."""
    return samples.has(names.LEADER) and samples.has(names.CYCLE)


def cycles(samples: Samples) -> SummaryLine | None:
    if not samples.has(names.CYCLE):
        return None
    taken = samples.distribution(names.CYCLE)
    if taken is None:
        return neutral("cycles", "none" if samples.seconds else "none yet", {"count": 0})
    worst = taken.quantile(0.99)
    slowest = {
        kind: _largest(samples.distributions(metric, label))
        for kind, metric, label in (("action", names.ACTION, "action"), ("plugin", names.PLUGIN, "plugin"))
    }
    parts = [
        f"{kind} {name} {duration_text(spent.total / taken.observed / 1000)}"
        for kind, (name, spent) in slowest.items()
        if spent is not None
    ]
    text = f"{count_text(taken.observed, samples.seconds)} took {_mean_and_worst(taken)}"
    if parts:
        text += f"; most of each: {', '.join(parts)}"
    numbers = distribution_numbers(taken)
    numbers |= {f"slowest{kind.title()}": name for kind, (name, _) in slowest.items() if name}
    return judged(
        worst.value <= FINE_CYCLE_SECONDS * 1000 and not worst.is_more,
        "cycles",
        text,
        numbers,
        "-o wide shows the time of each action and plugin; docs/performance.md has figures to compare with",
    )


def pods(samples: Samples) -> SummaryLine | None:
    if not (samples.has(names.POD_WAIT) or _counts_all(samples)):
        return None
    waited = samples.distributions(names.POD_WAIT, "stage").get("Bound")
    return _waits("pods", "bound", waited, samples)


def jobs(samples: Samples) -> SummaryLine | None:
    if not samples.has(names.JOB_WAIT):
        return None
    return _waits("jobs", "given room", samples.distribution(names.JOB_WAIT), samples)


def _waits(topic: str, done: str, waited: Distribution | None, samples: Samples) -> SummaryLine:
    if waited is None:
        return neutral(topic, f"none {done}" if samples.seconds else f"none {done} yet", {"count": 0})
    half, most = waited.quantile(0.5), waited.quantile(0.99)
    text = (
        f"{count_text(waited.observed, samples.seconds)} {done}; {within_text('half', half)} of their creation,"
        f" {within_text('99 of 100', most)}"
    )
    is_fine = half.value <= FINE_WAIT_SECONDS * 1000 and not half.is_more
    return judged(is_fine, topic, text, distribution_numbers(waited), _WHY)


def attempts(samples: Samples) -> SummaryLine | None:
    if not (samples.has(names.ATTEMPTS) or _counts_all(samples)):
        return None
    results = samples.by_label(names.ATTEMPTS, "result")
    failed = results.get("error", 0.0)
    text = counts_by(results, samples.seconds) or "none"
    return judged(
        failed <= FINE_FAILED_PART * (results.get("scheduled", 0.0) + failed),
        "attempts",
        text,
        {name: number(count) for name, count in results.items()},
        "binds fail: `stromboli events` and the log of the scheduler say why",
    )


def binds(samples: Samples) -> SummaryLine | None:
    taken = samples.distributions(names.STAGE, "stage").get("Bind")
    if not (samples.has(names.STAGE) or _counts_all(samples)):
        return None
    if taken is None:
        return neutral("binds", "none" if samples.seconds else "none yet", {"count": 0})
    worst = taken.quantile(0.99)
    return judged(
        worst.value <= FINE_BIND_SECONDS * 1000 and not worst.is_more,
        "binds",
        f"{count_text(taken.observed, samples.seconds)} requests took {_mean_and_worst(taken)}",
        distribution_numbers(taken),
        "the API server is slow, or --kube-api-qps of the scheduler too low for so many pods",
    )


def evictions(samples: Samples) -> SummaryLine | None:
    if not (samples.has(names.EVICTIONS) or _counts_all(samples)):
        return None
    actions = samples.by_label(names.EVICTIONS, "action")
    text = counts_by({f"by {action}": count for action, count in actions.items()}, samples.seconds) or "none"
    victims = samples.value(names.VICTIMS) or 0.0
    if victims:
        text += f"; the last preemption had {noun_text(victims, 'victim')}"
    return neutral("evictions", text, {"batches": {name: number(count) for name, count in actions.items()}})


def waiting(samples: Samples) -> SummaryLine | None:
    if not samples.has(names.PENDING_JOBS):
        short = samples.value(names.SHORT_JOBS)
        if short is None:
            return None
        return neutral("waiting", f"{noun_text(short, 'job')} short of members", {"jobs": number(short)})
    jobs, tasks = samples.value(names.PENDING_JOBS) or 0.0, samples.value(names.PENDING_PODS) or 0.0
    ages = samples.by_label(names.OLDEST, "queue_name")
    queue = max(ages, key=lambda name: (ages[name], name), default="")
    oldest = ages.get(queue, 0.0)
    numbers = {"jobs": number(jobs), "pods": number(tasks), "oldestSeconds": number(oldest)}
    if jobs <= 0:
        return judged(True, "waiting", "nobody", numbers, "")
    return judged(
        oldest <= FINE_OLDEST_SECONDS,
        "waiting",
        f"{noun_text(jobs, 'job')} with {noun_text(tasks, 'pod')}; the oldest since {duration_text(oldest)},"
        f" in queue {queue}",
        numbers | {"oldestQueue": queue},
        _WHY,
    )


def writes(samples: Samples) -> SummaryLine | None:
    if not (samples.has(names.WRITE_FAILURES) or _counts_all(samples)):
        return None
    failures = samples.by_label(names.WRITE_FAILURES, "decision")
    failed = sum(failures.values())
    decided = samples.by_label(names.DECISIONS, "decision")
    made = decided.get("Bind", 0.0) + decided.get("Evict", 0.0)
    late, held = samples.value(names.WAITING_WRITES) or 0.0, samples.value(names.WAITING_BINDS) or 0.0
    dropped = samples.value(names.DROPPED_EVENTS) or 0.0
    told = counts_by({f"{name.lower()}s failed": count for name, count in failures.items()}, samples.seconds)
    text = told or "none failed"
    text += f"; {count_text(late)} still to be written, {noun_text(held, 'bind')} held for volumes or devices"
    if dropped:
        text += f"; {count_text(dropped, samples.seconds)} events left out"
    numbers: Numbers = {
        "failed": {name: number(count) for name, count in failures.items()},
        "waiting": number(late),
        "waitingBinds": number(held),
        "droppedEvents": number(dropped),
    }
    remedy = "the log of the scheduler names each write that failed; events are left out where too many come at once"
    return judged(failed <= FINE_FAILED_PART * made and not dropped, "writes", text, numbers, remedy)


def mirror(samples: Samples) -> SummaryLine | None:
    lag = samples.value(names.MIRROR_LAG)
    if lag is None:
        return None
    return judged(
        lag <= FINE_LAG_SECONDS,
        "mirror",
        f"the oldest change of the cluster that no cycle has seen yet is {duration_text(lag)} old"
        if lag
        else "cycles have seen all changes of the cluster",
        {"lagSeconds": number(lag)},
        "a cycle takes long or a plugin hangs: see cycles and plugins here, and the log",
    )


def leader(samples: Samples) -> SummaryLine | None:
    leads = samples.value(names.LEADER)
    if leads is None:
        return None
    return judged(
        leads > 0,
        "leader",
        "this replica leads" if leads > 0 else "this replica stands by, and decides nothing",
        {"leads": leads > 0},
        "these are not the metrics of the scheduler that decides: `stromboli check` says who leads",
    )


def lost_cycles(samples: Samples) -> SummaryLine | None:
    lost = samples.value(names.LOST_CYCLES)
    if lost is None:
        return None
    return judged(
        lost <= 0,
        "lost cycles",
        f"{count_text(lost, samples.seconds)} came to nothing" if lost else "none",
        {"count": number(lost)},
        "a plugin failed in them: the log of the scheduler names it and its line",
    )


def plugins(samples: Samples) -> SummaryLine | None:
    if not _counts_all(samples):
        return None
    pair = ("plugin", "point")
    aside = sorted(culprit for culprit, value in samples.by_labels(names.SET_ASIDE, *pair).items() if value)
    running = samples.by_labels(names.RUNNING_CALLS, *pair)
    slow = samples.value(names.SLOW_CALLS) or 0.0
    told = [f"{plugin} ({point}) is set aside" for plugin, point in aside]
    told += [
        f"{plugin} ({point}) has run for {duration_text(seconds)}"
        for (plugin, point), seconds in sorted(running.items())
    ]
    if slow:
        told.append(f"{count_text(slow, samples.seconds)} calls took 5 s or more")
    numbers: Numbers = {
        "setAside": [{"plugin": plugin, "point": point} for plugin, point in aside],
        "running": [
            {"plugin": plugin, "point": point, "seconds": number(seconds)}
            for (plugin, point), seconds in sorted(running.items())
        ],
        "slowCalls": number(slow),
    }
    remedy = "a plugin that fails or hangs: the log of the scheduler says where (docs/custom-plugins.md)"
    return judged(not told, "plugins", "; ".join(told) or "none set aside, none hangs", numbers, remedy)


def hyper_nodes(samples: Samples) -> SummaryLine | None:
    left_out = samples.value(names.LEFT_OUT)
    if not left_out:
        return None
    return judged(
        False,
        "hypernodes",
        f"{count_text(left_out)} left out of the tree",
        {"leftOut": number(left_out)},
        "`stromboli events` has an event on each that says why",
    )


def distribution_numbers(spread: Distribution) -> Numbers:
    """Count, mean and quantiles of milliseconds, for programs."""
    half, most = spread.quantile(0.5), spread.quantile(0.99)
    numbers: Numbers = {
        "count": number(spread.observed),
        "meanMilliseconds": number(round(spread.mean, 3)),
        "p50Milliseconds": number(round(half.value, 3)),
        "p99Milliseconds": number(round(most.value, 3)),
    }
    if most.is_more:
        numbers["p99IsMore"] = True
    return numbers


def _mean_and_worst(spread: Distribution) -> str:
    return (
        f"{duration_text(spread.mean / 1000)} on average; {within_text('99 of 100', spread.quantile(0.99))}"
    )


def _largest(spent: dict[str, Distribution]) -> tuple[str, Distribution | None]:
    """Who took most time altogether."""
    name = max(spent, key=lambda each: (spent[each].total, each), default="")
    return name, spent.get(name)
