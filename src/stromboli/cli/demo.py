"""`stromboli demo`."""

import typer


def demo(fast: bool = typer.Option(False, "--fast")) -> None:
    """Demo."""
