"""`--openb-nodes` and `--openb-pods`: pods arrive at the nodes of Alibaba's GPU cluster and never leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.form_settings import settings_of
from stromboli.cli.simulate.openb_arguments import arrival_sequence, given_lists
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.simulate_options import Score, SimulateOptions
from stromboli.cli.simulate.simulation_policies import policy_of
from stromboli.engine.catalog import Catalog
from stromboli.simulator.runs.gpu_allocation import gpu_measures
from stromboli.simulator.runs.gpu_policies import fragmentation_gauge, score_policy, typical_task
from stromboli.simulator.workloads.openb_workload import arriving_workload, model_label

LOAD = 1.3
"""The GPU demand as a share of the cluster's GPUs, unless given."""


def prepare_openb(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read both lists and put the pods into the order of the seed; a pod that fits nowhere leaves."""
    if options.score is None and options.policy is None and options.preset is None:
        options = replace(options, score=Score.FGD)
    elif options.score is not None and (options.policy is not None or options.preset is not None):
        raise Usage("--score is a policy of its own: leave out --policy and --preset, or --score")
    if options.score is not None and options.backfill is not None:
        raise Usage(
            "--backfill: with --score, which is fgd unless given, a pod that fits nowhere leaves; leave it out"
        )
    load = LOAD if options.load is None else options.load
    seed = options.seed or 0
    options = replace(options, load=load)
    lists = given_lists(options.openb_nodes, options.openb_pods)
    workload = arriving_workload(lists, load, arrival_sequence(options.sequence, seed))
    workload = replace(workload, jobs=workload.jobs[: options.jobs])
    tasks = Counter(
        typical_task(pod.cpu_milli, pod.gpu_milli, pod.gpus, map(model_label, pod.models))
        for pod in lists.pods
    )
    if options.score is None:
        policy = policy_of(options, catalog, "")
    else:
        policy = score_policy(options.score.value, tasks, catalog, seed)
    settings = replace(
        settings_of(options, policy, workload=workload.name, sequence=options.sequence.value),
        drop_misfits=True,
        fragmentation=fragmentation_gauge(tasks),
        measures=partial(gpu_measures, load=load),
    )
    return PreparedSimulation(workload, (), policy, settings)
