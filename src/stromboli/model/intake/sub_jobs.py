"""The sub-job of a task (spec 01 3.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stromboli.api.selectors import matches_labels
from stromboli.api.types.scheduling import SubGroupPolicy
from stromboli.model.job import Job, SubJob

MAX_LENGTH = 128
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


def sub_job_of(job: Job, labels: Mapping[str, str]) -> SubJob:
    """The sub-job of the first policy that matches, else the job's default one; created on first use."""
    policies = job.policies
    if not policies and job.sub_jobs:
        return next(iter(job.sub_jobs.values()))
    for policy in policies:
        values = _match(policy, labels)
        if values:
            return _sub_job(job, f"{job.key}/{_short(policy.name, values)}", policy, values[0])
    return _sub_job(job, job.key, None, "")


def _match(policy: SubGroupPolicy, labels: Mapping[str, str]) -> list[str]:
    """The values that identify a sub-group. # quirk: spec 01 3.5: a policy without matchLabelKeys matches nothing."""
    if policy.label_selector is not None and not matches_labels(policy.label_selector, labels):
        return []
    values = [labels.get(key, "") for key in policy.match_label_keys]
    return values if all(values) else []


def _short(policy: str, values: list[str]) -> str:
    joined = "-".join(values)
    return f"{policy}-{joined if len(joined) <= MAX_LENGTH else _hashed(joined)}"


def _hashed(joined: str) -> str:
    """FNV-1a of 32 bits in decimal, spelt with letters that are safe in names."""
    digest = 0x811C9DC5
    for byte in joined.encode():
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(digest))


def _sub_job(job: Job, id: str, policy: SubGroupPolicy | None, first_value: str) -> SubJob:
    sub_job = job.sub_jobs.get(id)
    if sub_job is None:
        if policy is not None:
            minimum = policy.sub_group_size
        else:
            minimum = 1 if job.policies else job.minimum
        index = int(first_value) if _NUMBER.fullmatch(first_value) else 0
        sub_job = job.sub_jobs[id] = SubJob(job, id, policy, index, minimum=minimum)
    return sub_job
