"""What docs/run.md says of Slurm's options and variables is what there is."""

import re
from pathlib import Path

from stromboli.submission.slurm_options import HONOURED, SRUN_REFUSED, UNMET
from tests.submission.requests import container, request, slurm_job

PAGE = (Path(__file__).parents[2] / "docs" / "run.md").read_text()
SHELL = re.compile(r"\b(SLURMD?_[A-Z_]+)=")


def test_every_option_of_sbatch_is_on_the_page_with_its_letter() -> None:
    for option in HONOURED:
        shown = f"`--{option.name}`" in PAGE or f"`--{option.name}=" in PAGE
        assert shown, option.name
        assert not option.letter or f"`-{option.letter}`" in PAGE, option.name
    for option in UNMET:
        letter = f" `-{option.letter}`" if option.letter else ""
        rows = [line for line in PAGE.splitlines() if f"`--{option.name}`{letter}" in line]
        assert any(row.endswith(f"| {option.unmet} |") for row in rows), option.name


def test_every_option_that_srun_refuses_is_on_the_page_with_its_remedy() -> None:
    table = PAGE.partition("### Options of srun")[2].partition("\n### ")[0].splitlines()
    for option, remedy in SRUN_REFUSED.items():
        assert any(f"`{option}`" in row and row.endswith(f"| {remedy} |") for row in table), option


def test_the_variables_on_the_page_are_those_that_scripts_have() -> None:
    known = set()
    for manifest in (slurm_job("-N 2 --gres=gpu:1 --mem=1G"), slurm_job("-a 1-3")):
        pod = container(manifest)
        known |= {each["name"] for each in pod["env"]} | set(SHELL.findall(pod["command"][2]))
    ours = {name for name in known if name.startswith("SLURM")} - {"SLURM_STEP_ID", "SLURM_STEPID"}
    paragraph = PAGE.partition("Variables of a script")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(SLURMD?_[A-Z_]+)`", paragraph)) == ours


def test_a_script_may_be_as_long_as_the_page_says() -> None:
    assert "96 KiB" in PAGE
    request("x" * 90 * 1024)
