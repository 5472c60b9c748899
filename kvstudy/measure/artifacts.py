"""What is measured and measured with: the built programs, their versions and digests, and the revision they come from."""

import hashlib
import platform
import subprocess
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kvstudy import __version__
from kvstudy.errors import ToolMissing
from kvstudy.measure.build import newer_source
from kvstudy.measure.generator import generator_path
from kvstudy.plan.run_plan import SERVER_PROGRAMS, Plan
from kvstudy.project import empty_server_jar, jfr_converter_jar, loadgen_binary, profiler_library, service_jar
from kvstudy.subject.jdk import Jdk, find_jdk


@dataclass(frozen=True)
class Artifacts:
    """Paths of what a plan needs; each is known to exist. ``server_jars``: by the server that an experiment names; ``generators``: program by name."""

    root: Path
    jdk: Jdk
    server_jars: dict[str, Path]
    loadgen: Path
    generators: dict[str, str]

    @classmethod
    def needed_by(cls, plan: Plan, root: Path) -> "Artifacts":
        """ToolMissing names what is not there, or older than its sources, and the command that makes it, before anything is started."""
        jdk = find_jdk()
        servers = {run.configuration.server for run in plan.runs}
        jars = {server: jar for server, jar in (("kv-service", service_jar(root)), ("empty", empty_server_jar(root))) if server in servers}
        wanted = [*jars.values(), jdk_tool(jdk, "jfr")]
        if any(run.configuration.fill for run in plan.runs):
            wanted.append(loadgen_binary(root))
        if any(run.profile for run in plan.runs):
            wanted += [profiler_library(root), jfr_converter_jar(root)]
        for path in wanted:
            if not path.is_file():
                raise ToolMissing(f"not built: {path}", "kvstudy build")
        names = sorted({run.configuration.generator for run in plan.runs})
        for jar in jars.values():
            _check_age("service", root / "service", jar)
        if "loadgen" in names or loadgen_binary(root) in wanted:
            _check_age("loadgen", root / "loadgen", loadgen_binary(root))
        found = cls(root, jdk, jars, loadgen_binary(root), {name: generator_path(name, loadgen_binary(root)) for name in names})
        found.digests, found.versions, found.revision  # noqa: B018 – now, not when a build may have replaced them
        return found

    @property
    def service_digest(self) -> str:
        """Of the service, in a plan that measures it."""
        return self.digests[SERVER_PROGRAMS["kv-service"]]

    @cached_property
    def digests(self) -> dict[str, str]:
        """By these a resumed measurement knows whether a sealed run was measured with the same programs."""
        servers = {SERVER_PROGRAMS[server]: jar_digest(jar) for server, jar in self.server_jars.items()}
        return servers | {name: _digest(Path(path)) for name, path in self.generators.items()}

    @cached_property
    def revision(self) -> tuple[str, bool]:
        """Git revision and whether tracked files differ from it; ``("unknown", True)`` outside a git repository."""
        def git(*words: str) -> str | None:
            try:
                asked = subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, timeout=30)
            except OSError:
                return None
            return asked.stdout.strip() if asked.returncode == 0 else None
        revision = git("rev-parse", "HEAD")
        return (revision, git("status", "--porcelain") != "") if revision else ("unknown", True)

    @cached_property
    def versions(self) -> dict[str, str]:
        """``tool_versions`` of run.json."""
        versions = {"kvstudy": __version__, "python": platform.python_version(), "jdk": self.jdk.version}
        for name, path in self.generators.items():
            versions[name] = _version(path)
        return versions


def _check_age(name: str, folder: Path, product: Path) -> None:
    """Nobody who has changed a source shall measure what it was before."""
    source = newer_source(folder, product) if product.is_file() else None
    if source is not None:
        raise ToolMissing(f"{name} is older than its sources: {source.relative_to(folder.parent)}", "kvstudy build")


def jar_digest(path: Path) -> str:
    """Of the jar's contents, not of its bytes: two builds of the same sources count as the same program."""
    with zipfile.ZipFile(path) as jar:
        entries = sorted((entry.filename, entry.CRC) for entry in jar.infolist() if not entry.filename.startswith("META-INF/maven/"))
    return hashlib.sha256(repr(entries).encode()).hexdigest()[:16]


def jdk_tool(jdk: Jdk, name: str) -> Path:
    return Path(jdk.tool(name))


def _version(program: str) -> str:
    """The first line of ``-v``; wrk and wrk2 end with 1 there, and mean it."""
    try:
        asked = subprocess.run([program, "-v"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = (asked.stdout or asked.stderr).strip().splitlines()
    return lines[0].strip() if lines else "unknown"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
