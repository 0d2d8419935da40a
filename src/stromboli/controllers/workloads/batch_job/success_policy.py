"""`spec.successPolicy`: which indexes, or how many of them, are enough for the job to be complete."""

from __future__ import annotations

from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob, SuccessRule
from stromboli.controllers.workloads.batch_job.index_intervals import IndexIntervals


def matched_rule(job: BatchJob, succeeded: IndexIntervals) -> int | None:
    """The number of the first rule that holds."""
    policy = job.spec.success_policy
    if policy is None or not succeeded:
        return None
    rules = enumerate(policy.rules)
    return next((number for number, rule in rules if _holds(rule, job.completions, succeeded)), None)


def _holds(rule: SuccessRule, completions: int, succeeded: IndexIntervals) -> bool:
    enough = rule.succeeded_count
    if rule.succeeded_indexes is None:
        return enough is not None and len(succeeded) >= enough
    wanted = IndexIntervals.parse(rule.succeeded_indexes, completions)
    common = wanted.count_common(succeeded)
    return len(wanted) > 0 and (common == len(wanted) or (enough is not None and common >= enough))
