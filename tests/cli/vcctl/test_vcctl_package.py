"""The programs of Volcano's command line are installed by their own package alone."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAMS = {"vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"}


def test_stromboli_itself_installs_none_of_them_and_no_extra_fetches_an_unpublished_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["scripts"]) == {"stromboli"}
    extras = project["optional-dependencies"].values()
    assert not [entry for extra in extras for entry in extra if entry.startswith("stromboli")]


def test_the_package_has_the_programs_and_each_leads_to_a_function(tmp_path: Path) -> None:
    build = ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    source = str(ROOT / "packages" / "vcctl")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", *build, "-w", str(tmp_path), source],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (wheel,) = tmp_path.glob("stromboli_vcctl-*.whl")
    with zipfile.ZipFile(wheel) as files:
        (entry_points,) = [name for name in files.namelist() if name.endswith("entry_points.txt")]
        parser = ConfigParser()
        parser.read_string(files.read(entry_points).decode())
        assert not [name for name in files.namelist() if ".dist-info/" not in name]
    scripts = dict(parser["console_scripts"])
    assert set(scripts) == PROGRAMS
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
