"""Builds the service with Maven on a JDK 25 and the load generator with Cargo, and says how it goes on."""

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.project import empty_server_jar, jfr_converter_jar, loadgen_binary, profiler_library, service_jar
from kvstudy.subject.jdk import find_jdk
from kvstudy.units import format_duration

MAVEN_HINT = "install it: apt-get install maven (Debian, Ubuntu) or conda install maven"
CARGO_HINT = "install it: https://rustup.rs, or conda install rust, or apt-get install cargo (1.88 or newer)"


def build(root: Path) -> None:
    """Builds what is not newer than all of its sources; KvstudyError carries the last lines of a build that failed."""
    of_service = (service_jar(root), empty_server_jar(root), profiler_library(root), jfr_converter_jar(root))
    for name, products, builder in (("service", of_service, build_service), ("loadgen", (loadgen_binary(root),), build_loadgen)):
        if is_up_to_date(root / name, products):
            print(f"{name}: up to date", file=sys.stderr)
            continue
        builder(root)
        for built in products:
            if not built.is_file():
                raise KvstudyError(f"the build ended without its product: {built}")
            os.utime(built)  # a tool that finds nothing to do leaves its product as old as it was


def is_up_to_date(folder: Path, products: tuple[Path, ...]) -> bool:
    """Whether the main product, the first, is newer than every source below the folder, and the others are there."""
    return all(product.is_file() for product in products) and newer_source(folder, products[0]) is None


def newer_source(folder: Path, product: Path) -> Path | None:
    """A source below the folder that is newer than its product. Sources: what the build reads, not texts, tests, benchmarks and hidden files."""
    built_at = product.stat().st_mtime
    for place, subfolders, files in os.walk(folder):
        at = Path(place).relative_to(folder)
        subfolders[:] = sorted(set(subfolders) & {"src", ".mvn"} if at == Path() else set(subfolders) - {"test"} if at == Path("src") else subfolders)
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(".md") and os.stat(os.path.join(place, name)).st_mtime > built_at:
                return Path(place) / name
    return None


def build_service(root: Path, test: bool = False) -> None:
    jdk = find_jdk()
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolMissing("no Maven: mvn is not on PATH", MAVEN_HINT)
    goals = ["verify"] if test else ["package", "-DskipTests"]
    _run([maven, "--batch-mode", "--file", str(root / "service" / "pom.xml"), *goals], jdk.environment(),
         f"service: mvn {goals[0]} (JDK {jdk.version})", echo=test)


def build_loadgen(root: Path) -> None:
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if cargo is None:
        raise ToolMissing("no Cargo: cargo is not on PATH", CARGO_HINT)
    _run([cargo, "build", "--release", "--locked", "--manifest-path", str(root / "loadgen" / "Cargo.toml")], None, "loadgen: cargo build")


def _run(argv: list[str], environment: dict[str, str] | None, what: str, echo: bool = False) -> None:
    """Runs a build; one line that goes on while it works, its last 30 lines when it fails. ``echo`` shows all it says."""
    start = time.monotonic()
    live = sys.stderr.isatty() and not echo
    print(f"{what} …", file=sys.stderr, end="" if live else "\n", flush=True)
    last_lines: deque[str] = deque(maxlen=30)
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            last_lines.append(line.rstrip())
            if echo:
                print(line, end="", file=sys.stderr)
            elif live:
                print(f"\r\033[K{what} {format_duration(time.monotonic() - start)} {line.strip()[:70]}", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        if not echo:
            print("\n" + "\n".join(last_lines), file=sys.stderr)
        raise KvstudyError(f"build failed: {what}: exit={process.returncode}", f"the command was: {' '.join(argv)}")
    print(f"{chr(13) + chr(27) + '[K' if live else ''}{what}: done in {format_duration(time.monotonic() - start)}", file=sys.stderr)
