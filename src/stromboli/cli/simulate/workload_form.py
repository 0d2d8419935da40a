"""`--workload` and `-f`: a saved or generated workload, or the jobs and nodes of a cluster."""

from __future__ import annotations

from dataclasses import replace

from stromboli.api.manifests.case_files import case_head
from stromboli.cli.cli_errors import Usage
from stromboli.cli.policy_options import case_policy, chosen_policy
from stromboli.cli.simulate.cluster_workload import cluster_workload
from stromboli.cli.simulate.form_settings import adjusted, assumed_run_time, given_nodes, settings_of
from stromboli.cli.simulate.prepared_simulation import PreparedSimulation
from stromboli.cli.simulate.progress_bar import reading_bar
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.cli.simulate.simulation_policies import with_backfill
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.workloads.submitted_jobs import Workload
from stromboli.simulator.workloads.swf_reader import SwfOptions
from stromboli.simulator.workloads.workload_files import read_workload


def prepare_workload(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Read a workload that was saved, or generate one: with the seed that is given, else with its own."""
    swf = SwfOptions(overrun=options.overrun)
    with reading_bar(options.quiet) as progress:
        workload = read_workload(str(options.workload), options.seed, swf, progress)
    return _prepared(workload, options, _policy(options, catalog, None), str(options.workload))


def prepare_files(options: SimulateOptions, catalog: Catalog) -> PreparedSimulation:
    """Make a workload of the jobs of a cluster; its nodes are those of the cluster unless others are given."""
    paths = options.files
    workload = cluster_workload(paths, options.now, assumed_run_time(options))
    config = next((head.config for path in paths if (head := case_head(path)) and head.config), None)
    return _prepared(workload, options, _policy(options, catalog, config), ", ".join(paths))


def _prepared(
    workload: Workload, options: SimulateOptions, policy: Policy, origin: str
) -> PreparedSimulation:
    nodes = given_nodes(options)
    if not nodes and not workload.nodes:
        raise Usage(f"{origin} has no nodes: give some with --nodes, such as --nodes 4x32cpu,256Gi")
    workload = adjusted(workload, options)
    if nodes:
        workload = replace(workload, jobs=tuple(replace(job, running_on=()) for job in workload.jobs))
    settings = settings_of(options, policy, workload=workload.name)
    return PreparedSimulation(workload, nodes, policy, settings)


def _policy(options: SimulateOptions, catalog: Catalog, config: str | None) -> Policy:
    """The policy that is named, else that of the dump, else the built-in one."""
    policy = chosen_policy(options.policy, options.preset, catalog, options.lenient)
    if policy is None:
        policy = case_policy(config, catalog, "the policy of the dump", options.lenient)
    if options.backfill is not None:
        policy = with_backfill(policy, options.backfill, catalog, options.lenient)
    return policy
