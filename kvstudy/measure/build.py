"""Builds the service with Maven on a JDK 25 and the load generator with Cargo, and says how it goes on."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from kvstudy.building import is_up_to_date, noted, run_build
from kvstudy.errors import ToolMissing
from kvstudy.project import loadgen_binary
from kvstudy.subject import builds

CARGO_MIN = (1, 88)  # rust-version of loadgen/Cargo.toml
CARGO_HINT = "install it: https://rustup.rs, or conda install rust, or apt-get install cargo (1.88 or newer)"


def build(root: Path, alone: Callable[[], AbstractContextManager] = nullcontext) -> None:
    """Builds what is not newer than all of its sources, ``alone``: what is measured shall not be replaced
    meanwhile. KvstudyError carries the last lines of a build that failed."""
    for name, products, builder in (
        ("service", builds.products(root), builds.build_service),
        ("loadgen", (loadgen_binary(root),), build_loadgen),
    ):
        if is_up_to_date(root / name, products):
            print(f"{name}: up to date", file=sys.stderr)
            continue
        with alone(), noted(root / name, products):
            builder(root)


def find_cargo() -> str | None:
    """Also that of a rustup for which no new shell was opened yet."""
    return shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))


def build_loadgen(root: Path) -> None:
    cargo = find_cargo()
    if cargo is None:
        raise ToolMissing("no Cargo: cargo is not on PATH", CARGO_HINT)
    run_build(
        [cargo, "build", "--release", "--locked", "--manifest-path", str(root / "loadgen" / "Cargo.toml")],
        None,
        "loadgen: cargo build",
    )
