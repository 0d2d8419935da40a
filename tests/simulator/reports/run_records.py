"""Records of simulations, made by hand, for tests of what is told of them."""

from __future__ import annotations

import heapq
from random import Random

from stromboli.simulator.runs.run_record import JobRecord, PodRecord, RunRecord, Sample


def job(
    name: str, submitted: float, started: float | None, ended: float | None, cpu: float = 1, **more
) -> JobRecord:
    """A job of a pod unless `pods` says otherwise."""
    more.setdefault("pods", 1)
    run_time = 0.0 if started is None or ended is None else ended - started
    return JobRecord(
        name, submitted, requests={"cpu": cpu}, started=started, ended=ended, **{"run_time": run_time, **more}
    )


def record_of(*jobs: JobRecord, cpu: float = 4, **more) -> RunRecord:
    """A run on a node with some CPUs, with a pod for each job that started."""
    pods = [
        PodRecord(
            index,
            f"{job.name}-{pod}",
            "n1",
            job.started,
            more.get("end", 0.0) if job.ended is None else job.ended,
        )
        for index, job in enumerate(jobs)
        if job.started is not None
        for pod in range(job.pods)
    ]
    return RunRecord(
        more.pop("name", "a run"), {"cpu": cpu}, {"n1": {"cpu": cpu}}, list(jobs), **{"pods": pods, **more}
    )


def busy_run(
    jobs: int, nodes: int = 8, cpus: int = 16, seed: int = 0, slack: float = 1.1, **more
) -> RunRecord:
    """Jobs of several users and queues, first come first served on equal nodes; `slack` above 1 leaves room."""
    random = Random(seed)
    frees = [(0.0, node) for node in range(nodes * cpus)]
    heapq.heapify(frees)
    records, pods, clock = [], [], 0.0
    for index in range(jobs):
        size = min(2 ** random.randrange(0, 5), nodes * cpus)
        run_time = random.lognormvariate(5, 1.5)
        clock += random.expovariate(1.0) * run_time * size / (nodes * cpus) * slack
        taken = [heapq.heappop(frees) for _ in range(size)]
        start = max(clock, taken[-1][0])
        end = start + run_time
        queue = ("research", "production", "default")[min(random.randrange(5), 2)]
        records.append(
            JobRecord(
                f"job-{index}", clock, size, {"cpu": float(size)}, start, end, run_time=run_time, queue=queue,
                user=f"user{random.randrange(12)}",
            )
        )  # fmt: skip
        for place, (_, cpu) in enumerate(taken):
            pods.append(PodRecord(index, f"job-{index}-{place}", f"node-{cpu // cpus}", start, end))
            heapq.heappush(frees, (end, cpu))
    return RunRecord(
        more.pop("name", f"busy {seed}"),
        {"cpu": float(nodes * cpus)},
        {f"node-{node}": {"cpu": float(cpus)} for node in range(nodes)},
        records,
        pods,
        samples_of(records, {"cpu": float(nodes * cpus)}),
        seed=seed,
        end=max((record.ended or 0.0 for record in records), default=0.0),
        **more,
    )


def samples_of(jobs: list[JobRecord], capacity: dict[str, float], count: int = 50) -> list[Sample]:
    """The cluster at equal distances; queues deserve equal parts."""
    end = max((job.ended or 0.0 for job in jobs), default=0.0)
    queues = sorted({job.queue for job in jobs})
    samples = []
    for place in range(count if jobs else 0):
        time = end * place / count
        running = [
            job for job in jobs if job.started is not None and job.started <= time < (job.ended or end)
        ]
        by_queue = {
            queue: {"cpu": sum(j.requests["cpu"] for j in running if j.queue == queue)} for queue in queues
        }
        samples.append(
            Sample(
                time,
                {"cpu": sum(used["cpu"] for used in by_queue.values())},
                sum(job.submitted <= time < (job.started or end) for job in jobs),
                len(running),
                by_queue,
                {queue: {"cpu": capacity["cpu"] / len(queues)} for queue in queues},
                0.1 + 0.2 * place / count,
            )
        )
    return samples
