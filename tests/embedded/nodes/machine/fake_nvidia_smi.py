"""A program `nvidia-smi` for tests."""

from __future__ import annotations

from pathlib import Path

H200 = "NVIDIA H200"


def uuid(number: int) -> str:
    return f"GPU-{number:08d}-1111-2222-3333-444444444444"


def row(number: int, name: str = H200, memory: str = "143771", mig: str = "Disabled", card: str = "") -> str:
    return f"{number}, {card or uuid(number)}, {name}, {memory}, {mig}"


def install(folder: Path, *rows: str, script: str = "") -> Path:
    """The folder for PATH; the program lists these rows, or does what the script says."""
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    (bin / "rows").write_text("".join(f"{row}\n" for row in rows))
    program = bin / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script or f'exec /bin/cat {bin}/rows'}\n")
    program.chmod(0o755)
    return bin
