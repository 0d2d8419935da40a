"""`python -m bench`: measure everything.

`naive`, `scaling` and `profile` look closer, `kubernetes` and `simulator` further.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.kubernetes.shapes import Shape
from bench.workloads import WORKLOADS


def main() -> int:
    """Do what the command line asks for."""
    options = parser().parse_args()
    return int(options.do(options) or 0)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    _run_options(top)
    top.set_defaults(do=_run)
    parts = top.add_subparsers(title="closer looks")
    naive = parts.add_parser("naive", help="compare with an evaluator in plain Python, node by node")
    naive.add_argument("--repeat", type=int, default=1, metavar="N")
    naive.set_defaults(do=_naive)
    scaling = parts.add_parser("scaling", help="how cycle time grows, as numbers and as a plot")
    scaling.add_argument("--repeat", type=int, default=3, metavar="N")
    scaling.add_argument("--scale", type=float, default=1.0, help="smaller sizes for a quick look")
    scaling.add_argument("-o", "--output", choices=["table", "markdown"], default="table")
    scaling.add_argument(
        "--plot", default="docs/pictures/scaling.svg", help="where to (default: %(default)s)"
    )
    scaling.set_defaults(do=_scaling)
    profile = parts.add_parser("profile", help="where the time of one cycle goes, function by function")
    profile.add_argument("name", choices=WORKLOADS, metavar="NAME")
    profile.add_argument("--cycle", type=int, default=1, help="which cycle (default: %(default)s)")
    profile.add_argument("--sort", default="tottime", help="tottime or cumtime (default: %(default)s)")
    profile.add_argument("--top", type=int, default=25, help="how many functions (default: %(default)s)")
    profile.add_argument("--scale", type=float, default=1.0)
    profile.set_defaults(do=_profile)
    measure = parts.add_parser("measure", help="one case file in this process, as JSON")
    measure.add_argument("path")
    measure.add_argument("--cycles", type=int, default=1)
    measure.add_argument("--placed", action="store_true", help="say which pod went where")
    measure.add_argument("--arriving", action="store_true", help="let a pod come before each later cycle")
    measure.set_defaults(do=_measure)
    server = parts.add_parser("server", help="the embedded API server, and the real one where it is built")
    server.add_argument("--count", type=int, default=10_000, help="pods (default: %(default)s)")
    server.set_defaults(do=_server)
    _user_options(parts)
    jobs = parts.add_parser("jobs", help="many jobs at once, on the embedded API server and the real one")
    jobs.add_argument("--count", type=int, default=1000, help="jobs (default: %(default)s)")
    jobs.add_argument(
        "--look", action="store_true", help="only the look at one large job, without an API server"
    )
    jobs.add_argument(
        "--life", action="store_true", help="only the whole life of one large job, without an API server"
    )
    jobs.set_defaults(do=_jobs)
    write = parts.add_parser("write", help="write a workload as a case file to standard output")
    write.add_argument("name", choices=WORKLOADS, metavar="NAME")
    write.add_argument("--scale", type=float, default=1.0)
    write.set_defaults(do=_write)
    kubernetes = parts.add_parser(
        "kubernetes", help="on a real API server, with kube-scheduler in turn (needs Go)"
    )
    kubernetes.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    kubernetes.add_argument(
        "--only",
        action="append",
        choices=["burst", "stream", "jobs", "standing"],
        help="just this part; may be repeated",
    )
    kubernetes.add_argument(
        "--shape",
        action="append",
        type=_shape,
        metavar="GANGSxPODS",
        help="bursts of this shape, such as 500x20, instead of the usual ones; may be repeated",
    )
    kubernetes.add_argument(
        "--scale", type=float, default=1.0, help="0.2 for bursts and jobs at a fifth of the size"
    )
    kubernetes.add_argument(
        "--rate", type=float, metavar="N", help="pods a second in a stream, for half a minute (default: 50)"
    )
    kubernetes.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="runs of all but the standing cluster; medians are told",
    )
    kubernetes.add_argument("-o", "--output", choices=["table", "markdown", "json"], default="table")
    kubernetes.set_defaults(do=_kubernetes)
    _proof_options(parts)
    _simulator_options(parts.add_parser("simulator", help="the simulator against published results"))
    return top


def _simulator_options(simulator: argparse.ArgumentParser) -> None:
    simulator.add_argument("--quick", action="store_true", help="few runs, to see that everything works")
    simulator.add_argument(
        "--only",
        action="append",
        choices=["packing", "backfill", "month"],
        help="just this part; may be repeated",
    )
    simulator.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="where results of finished runs are kept (default: build/bench-simulator)",
    )
    simulator.add_argument(
        "--cores", type=int, metavar="N", help="runs at a time (default: one for each core)"
    )
    simulator.add_argument("-o", "--output", choices=["table", "markdown"], default="table")
    simulator.set_defaults(do=_simulator)


def _shape(text: str) -> Shape:
    try:
        return Shape.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _run_options(top: argparse.ArgumentParser) -> None:
    top.add_argument("--list", action="store_true", help="list the workloads and stop")
    top.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="just the workloads whose name begins so, and those they are compared with; may be repeated",
    )
    top.add_argument("--scale", type=float, default=1.0, help="0.1 for a quick run at a tenth of the size")
    top.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="runs of each; best and median are told"
    )
    top.add_argument("-o", "--output", choices=["table", "markdown", "json"], default="table")
    top.add_argument(
        "--without-naive", action="store_true", help="leave the comparison with plain Python out"
    )


def _run(options: argparse.Namespace) -> int:
    from bench import apiserver, naive
    from bench.run import as_json, report, run

    if options.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name:40} {workload.about}")
        return 0
    names = [name for name in WORKLOADS if not options.only or name.startswith(tuple(options.only))]
    if not names:
        print(f"no workload begins with {' or '.join(options.only)}; see --list", file=sys.stderr)
        return 2
    results = run(names, options.scale, options.repeat)
    if options.output == "json":
        print(as_json(results))
    else:
        print(report(results, markdown=options.output == "markdown"))
        if not options.only and not options.without_naive:
            print("\n" + naive.report(naive.compare(), markdown=options.output == "markdown"))
        if not options.only:
            servers = apiserver.compare(max(int(apiserver.COUNT * options.scale), 100))
            print("\n" + apiserver.report(servers, markdown=options.output == "markdown"))
    return any(result.problem for result in results)


def _naive(options: argparse.Namespace) -> int:
    from bench import naive

    results = naive.compare(options.repeat)
    print(naive.report(results))
    return any(not result.same for result in results)


def _scaling(options: argparse.Namespace) -> None:
    from bench import scaling

    scaling.main(options.repeat, options.scale, options.plot, options.output == "markdown")


def _kubernetes(options: argparse.Namespace) -> int:
    from bench.kubernetes.report import as_json, report
    from bench.kubernetes.run import FULL, PARTS, QUICK, run
    from tests.kubernetes.program import CannotBuild, program

    try:
        program()
    except CannotBuild as error:
        print(f"no control plane: {error}", file=sys.stderr)
        return 2
    sizes = QUICK if options.quick else FULL
    bursts = tuple(options.shape or sizes.bursts)
    sizes = sizes._replace(rate=options.rate or sizes.rate, bursts=bursts).scaled(options.scale)
    results = run(sizes, options.only or PARTS, options.repeat)
    if options.output == "json":
        print(as_json(results))
    else:
        print(report(results, markdown=options.output == "markdown"))
    return bool(results.problems)


def _proof_options(parts: Any) -> None:
    proof = parts.add_parser("proof", help="the figures of the README, kept in docs/proof.json (needs Go)")
    proof.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="runs; medians are kept (default: 1)"
    )
    proof.set_defaults(do=_proof)


def _proof(options: argparse.Namespace) -> None:
    from bench import proof

    figures = proof.measure(options.repeat)
    proof.keep(figures)
    print(proof.table(figures))


def _simulator(options: argparse.Namespace) -> int:
    from bench.simulator.run import PARTS, main

    parts = options.only or PARTS
    return main(parts, options.quick, options.results, options.cores, options.output == "markdown")


def _profile(options: argparse.Namespace) -> None:
    from bench.profile import profile

    profile(WORKLOADS[options.name].scaled(options.scale), options.cycle, options.sort, options.top)


def _measure(options: argparse.Namespace) -> None:
    from bench.measure import measure

    measurement = measure(options.path, options.cycles, options.placed, options.arriving)
    sys.stdout.buffer.write(msgspec.json.encode(measurement) + b"\n")


def _first_line_options(parts: Any) -> None:
    first_line = parts.add_parser("first-line", help="from the return key to the first line of stromboli run")
    first_line.add_argument("--repeat", type=int, default=10, metavar="N")
    first_line.set_defaults(do=_first_line)


def _first_line(options: argparse.Namespace) -> int:
    from bench.first_line import report

    return report(options.repeat)


def _server(options: argparse.Namespace) -> None:
    from bench import apiserver

    print(apiserver.report(apiserver.compare(options.count)))


def _user_options(parts: Any) -> None:
    """What users wait for: commands and pages."""
    _first_line_options(parts)
    _explanation_options(parts)
    _dashboard_options(parts)


def _dashboard_options(parts: Any) -> None:
    dashboard = parts.add_parser("dashboard", help="what the dashboard costs on a large cluster")
    dashboard.add_argument("--nodes", type=int, default=5000, help="(default: %(default)s)")
    dashboard.add_argument("--pods", type=int, default=50_000, help="(default: %(default)s)")
    dashboard.set_defaults(do=_dashboard)


def _dashboard(options: argparse.Namespace) -> int:
    from bench import dashboard

    figures = dashboard.measure(options.nodes, options.pods)
    print(dashboard.report(figures))
    return 1 if dashboard.misses(figures) else 0


def _explanation_options(parts: Any) -> None:
    explanations = parts.add_parser("explanations", help="what `stromboli explain` takes on a large cluster")
    explanations.add_argument("--nodes", type=int, default=5000, help="(default: %(default)s)")
    explanations.add_argument(
        "--count", type=int, default=2500, help="running jobs of twenty pods (default: %(default)s)"
    )
    explanations.set_defaults(do=_explanations)


def _explanations(options: argparse.Namespace) -> None:
    from bench import explanations

    print(explanations.title(options.nodes, options.count))
    print(explanations.report(explanations.run(options.nodes, options.count)))


def _jobs(options: argparse.Namespace) -> None:
    from bench import job_life, jobs, large_job

    if options.life:
        print(job_life.report(job_life.measure()))
        return
    print(large_job.report([large_job.look(pods) for pods in large_job.SIZES]))
    if not options.look:
        print(jobs.report(jobs.compare(options.count)))


def _write(options: argparse.Namespace) -> None:
    WORKLOADS[options.name].scaled(options.scale).write(sys.stdout.buffer)


if __name__ == "__main__":
    sys.exit(main())
