"""What every build has in common, whoever is built: whether it is up to date, that an interrupted one leaves
nothing behind, and what is said while it goes on."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kvstudy.errors import KvstudyError
from kvstudy.hosts.interrupt import interruptible, shielded
from kvstudy.units import format_duration


@contextmanager
def noted(folder: Path, products: tuple[Path, ...]) -> Iterator[None]:
    """Around a build: its products become as old as its beginning, so that a source that is saved while it
    goes on is newer. A tool that finds nothing to do leaves its product as old as it was. Beside the first
    product stands which sources there were, since one that is deleted later is not newer."""
    begun_ns, digest = time.time_ns(), sources_digest(folder)
    yield
    for built in products:
        if not built.is_file():
            raise KvstudyError(f"the build ended without its product: {built}")
        os.utime(built, ns=(begun_ns, begun_ns))
    facts = {"built_ns": products[0].stat().st_mtime_ns, "sources": digest}
    _note(products[0]).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def is_up_to_date(folder: Path, products: tuple[Path, ...]) -> bool:
    """Whether the main product, the first, is of the sources below the folder as they are, and the others are
    there."""
    return all(product.is_file() for product in products) and changed_source(folder, products[0]) is None


def changed_source(folder: Path, product: Path) -> str | None:
    """What differs from the sources that the product was built of: a newer one by name, or that one is gone;
    None where nothing does."""
    built_ns = product.stat().st_mtime_ns
    if next(_sources(folder), None) is None:
        return None  # products alone, without a tree that anybody could change
    newer = next((path for path, status in _sources(folder) if status.st_mtime_ns > built_ns), None)
    if newer is not None:
        return str(newer.relative_to(folder.parent))
    try:
        note = json.loads(_note(product).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # built by hand
    # Built again by hand since then: the note is of another product.
    return (
        f"one below {folder.name}/ was deleted or replaced"
        if note["built_ns"] == built_ns and note["sources"] != sources_digest(folder)
        else None
    )


def sources_digest(folder: Path) -> str:
    """Of the list of sources, not of what they hold."""
    listed = [
        (str(path.relative_to(folder)), status.st_size, status.st_mtime_ns)
        for path, status in _sources(folder)
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]


def _note(product: Path) -> Path:
    return product.with_name(f"{product.name}.sources.json")


def _sources(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """What the build reads, not texts, tests, benchmarks and hidden files; in an order that stays."""
    for place, subfolders, files in os.walk(folder):
        at = Path(place).relative_to(folder)
        subfolders[:] = sorted(
            set(subfolders) & {"src", ".mvn"}
            if at == Path()
            else set(subfolders) - {"test"}
            if at == Path("src")
            else subfolders
        )
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith(".md"):
                yield Path(place) / name, os.stat(os.path.join(place, name))


@contextmanager
def _ended_with_us(start: Callable[[], subprocess.Popen]) -> Iterator[subprocess.Popen]:
    """Whoever is interrupted, or ended by its number, leaves no build behind that goes on beside the next
    measurement."""
    builder = None
    with ExitStack() as at_end:
        try:
            with shielded():  # an interrupt would come before anybody knows whom to end
                builder = at_end.enter_context(start())
            yield builder
        except BaseException:
            if builder:
                with suppress(ProcessLookupError):
                    os.killpg(builder.pid, signal.SIGKILL)
                builder.wait()  # which Popen does for a quarter of a second alone behind Ctrl-C
            raise


def run_build(argv: list[str], environment: dict[str, str] | None, what: str, echo: bool = False) -> None:
    """Runs a build; one line that goes on while it works, its last 30 lines when it fails. ``echo`` shows all
    it says."""
    start = time.monotonic()
    live = sys.stderr.isatty() and not echo
    print(f"{what} …", file=sys.stderr, end="" if live else "\n", flush=True)
    last_lines: deque[str] = deque(maxlen=30)
    with (
        interruptible(),
        _ended_with_us(
            lambda: subprocess.Popen(
                argv,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            last_lines.append(line.rstrip())
            if echo:
                print(line, end="", file=sys.stderr)
            elif live:
                print(
                    f"\r\033[K{what} {format_duration(time.monotonic() - start)} {line.strip()[:70]}",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    if process.returncode != 0:
        if not echo:
            print("\n" + "\n".join(last_lines), file=sys.stderr)
        raise KvstudyError(
            f"build failed: {what}: exit={process.returncode}", f"the command was: {' '.join(argv)}"
        )
    print(
        f"{chr(13) + chr(27) + '[K' if live else ''}{what}: done in "
        f"{format_duration(time.monotonic() - start)}",
        file=sys.stderr,
    )
