"""`--openb-nodes` and `--openb-pods`: pods arrive at the nodes of Alibaba's GPU cluster and never leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.authors_sequence import authors_sequence
from stromboli.cli.simulate.form_settings import given_nodes, settings_of
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.simulate_options import Score, Sequence, SimulateOptions
from stromboli.cli.simulate.simulation_policies import policy_of
from stromboli.engine.catalog import Catalog
from stromboli.simulator.runs.gpu_allocation import gpu_measures
from stromboli.simulator.runs.gpu_policies import fragmentation_gauge, score_policy, typical_task
from stromboli.simulator.workloads.openb_arrivals import SeededSequence
from stromboli.simulator.workloads.openb_workload import (
    arriving_workload,
    model_label,
    read_openb,
)

LOAD = 1.3
"""The GPU demand as a share of the cluster's GPUs, unless given."""


def prepare_openb(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read both lists and put the pods into the order of the seed; a pod that fits nowhere leaves."""
    if options.openb_nodes is None or options.openb_pods is None:
        missing = "--openb-nodes" if options.openb_nodes is None else "--openb-pods"
        raise Usage(f"{missing}: a list of nodes and a list of pods go together; give both")
    if options.score is None and options.policy is None and options.preset is None:
        options = replace(options, score=Score.FGD)
    load = LOAD if options.load is None else options.load
    options = replace(options, load=load)
    lists = read_openb(str(options.openb_nodes), str(options.openb_pods))
    go = options.sequence is Sequence.GO
    sequence = authors_sequence(options.seed) if go else SeededSequence(options.seed)
    workload = arriving_workload(lists, load, sequence)
    workload = replace(workload, jobs=workload.jobs[: options.jobs])
    tasks = Counter(
        typical_task(pod.cpu_milli, pod.gpu_milli, pod.gpus, map(model_label, pod.models))
        for pod in lists.pods
    )
    if options.score is None:
        policy = policy_of(options, catalog, "")
    elif options.policy is not None or options.preset is not None:
        raise Usage("--score is a policy of its own: leave out --policy and --preset, or --score")
    else:
        policy = score_policy(options.score.value, tasks, catalog, options.seed)
    settings = replace(
        settings_of(options, policy, workload=workload.name, sequence=options.sequence.value),
        drop_misfits=True,
        fragmentation=fragmentation_gauge(tasks),
        measures=partial(gpu_measures, load=load),
    )
    return PreparedSimulation(workload, given_nodes(options), policy, settings)
