"""How many mutants of a package its unit tests kill: `make mutants`, or `python -m tests.mutants plugins/capacity`.

A mutant is one small change of the code by cosmic-ray, such as `<` in the place of `<=`. A seeded sample is tested,
each mutant on a copy of the source. Mutants that differ from the code in annotations alone are left out.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import math
import os
import py_compile
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGES = {
    "engine/statement.py": ("tests/engine",),
    "model/cluster.py": ("tests/model",),
    "engine/eviction": ("tests/engine/eviction",),
    "plugins/capacity": ("tests/plugins/capacity",),
    "controllers/job": ("tests/controllers/job",),
}
"""What is mutated, and its unit tests."""
SLACK = 3
"""A mutant is killed if its tests take as many times the processor time that the tests of the code take."""
PATIENCE = 20
"""The same of wall time, for mutants that wait."""


class Mutant(NamedTuple):
    """One change of a file."""

    file: Path
    """Relative to the source."""
    operator: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.file} {self.operator.removeprefix('core/')} #{self.occurrence}"

    def code(self) -> str | None:
        """The changed file; None if it is the same program or none at all."""
        original = (SOURCE / self.file).read_text()
        changed = mutate_code(original, get_operator(self.operator)(), self.occurrence)
        if changed is None:
            return None
        try:
            return changed if _program(changed) != _program(original) else None
        except SyntaxError:  # such as an operator in the place of `**` in a call
            return None


def _program(code: str) -> str:
    """What a file does, without annotations."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def mutants(package: str) -> Iterator[Mutant]:
    """All mutants of a package or file."""
    place = SOURCE / "stromboli" / package
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        nodes = list(ast_nodes(get_ast(file.read_text())))
        for name in sorted(operator_names()):
            operator = get_operator(name)
            if not operator.arguments():
                count = sum(len(list(operator().mutation_positions(node))) for node in nodes)
                yield from (Mutant(file.relative_to(SOURCE), name, number) for number in range(count))


def sample(package: str, size: int, seed: int) -> Iterator[tuple[Mutant, str]]:
    """As many mutants, or all that there are, with their code."""
    known = list(mutants(package))
    random.Random(seed).shuffle(known)
    chosen = ((mutant, code) for mutant in known if (code := mutant.code()) is not None)
    for _, pair in zip(range(size), chosen, strict=False):
        yield pair


def _compiled(source: Path) -> Path:
    """Compile a copy of the source, so that tests start fast; Python ignores compiled files of changed sources."""
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(source, quiet=1, force=True, invalidation_mode=mode)
    return source


def passes(source: Path, tests: Sequence[str], cpu: float, seconds: float | None) -> bool:
    """Whether tests pass on a copy of the source within so much processor and wall time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tier", "fast", *tests]
    environment = os.environ | {
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "1",
    }
    limited = ["prlimit", f"--cpu={math.ceil(cpu)}", *command] if math.isfinite(cpu) else command
    try:
        done = subprocess.run(
            limited, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def survivors(package: str, size: int, seed: int, workers: int) -> tuple[int, list[Mutant]]:
    """How many mutants were tested, and which of them no test noticed."""
    tests = PACKAGES[package]
    with tempfile.TemporaryDirectory(prefix="stromboli-mutants-") as directory:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(workers):
            copies.put(_compiled(Path(shutil.copytree(SOURCE, Path(directory) / str(number)))))
        started, cpu = time.monotonic(), _cpu_of_children()
        if not passes(SOURCE, tests, math.inf, None):
            sys.exit(f"{' '.join(tests)}: these tests fail without any mutant")
        limits = SLACK * (_cpu_of_children() - cpu), PATIENCE * (time.monotonic() - started)

        def survives(pair: tuple[Mutant, str]) -> bool:
            mutant, code = pair
            copy = copies.get()
            file = copy / mutant.file
            original = file.read_text()
            try:
                file.write_text(code)
                return passes(copy, tests, *limits)
            finally:
                file.write_text(original)
                copies.put(copy)

        tested = list(sample(package, size, seed))
        with ThreadPoolExecutor(workers) as pool:
            alive = list(pool.map(survives, tested))
    return len(tested), [mutant for (mutant, _), survived in zip(tested, alive, strict=True) if survived]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help=f"among {', '.join(PACKAGES)}")
    parser.add_argument(
        "--mutants", type=int, default=200, help="mutants of each package (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=29, help="seed of the sample (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), help="tested at a time (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if unknown := [package for package in arguments.packages if package not in PACKAGES]:
        parser.error(f"unknown package {unknown[0]!r}; known: {', '.join(PACKAGES)}")
    for package in arguments.packages:
        started = time.monotonic()
        tested, alive = survivors(package, arguments.mutants, arguments.seed, arguments.workers)
        seconds = time.monotonic() - started
        print(
            f"{package}: {tested - len(alive)} of {tested} killed, seed {arguments.seed}, {seconds:.0f} s",
            flush=True,
        )
        for mutant in alive:
            print(f"  survived: {mutant}", flush=True)


if __name__ == "__main__":
    main()
