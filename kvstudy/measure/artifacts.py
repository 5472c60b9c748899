"""What is measured and measured with: the built programs and the scripts, their versions and digests, and the
revision they come from."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kvstudy import __version__
from kvstudy.building import changed_source
from kvstudy.errors import RunFailed, ToolMissing
from kvstudy.measure.generator import generator_path
from kvstudy.measure.script import script_digest
from kvstudy.plan.run_plan import Configuration, Plan
from kvstudy.project import loadgen_binary, workloads_root
from kvstudy.subject.builds import Build, build_of, check_revisions
from kvstudy.subject.catalogue import subject_of
from kvstudy.subject.protocol import Subject

SCRIPT = "script"  # beside the names of programs in tool_digests


@dataclass(frozen=True)
class Artifacts:
    """What a plan needs; each is known to exist. ``generators``: program by name. ``subjects``: by what of a
    configuration names them. ``builds``: by revision, each asked for once: what `.` is may change
    meanwhile. ``states``: of programs, by which it is known whether one was built anew since."""

    root: Path
    loadgen: Path
    generators: dict[str, str]
    subjects: dict[str, Subject]
    builds: dict[str, Build] = field(default_factory=dict)
    states: dict[Path, tuple[int, int, int] | None] = field(default_factory=dict)

    @classmethod
    def needed_by(
        cls,
        plan: Plan,
        root: Path,
        build: Callable[[str, Path], Build] | None = None,
        on_hosts: bool = False,
    ) -> "Artifacts":
        """ToolMissing names what is not there, or older than its sources, and the command that makes it,
        before anything is started. ``build``: how another revision is had that is not built here;
        ``on_hosts``: services run there, and what a command needs is looked for there alone."""
        subjects: dict[str, Subject] = {}
        builds: dict[str, Build] = {}
        if build is None:
            asked = (run.configuration.spec.build for run in plan.runs)
            check_revisions(dict.fromkeys(filter(None, asked)), root)
            build = build_of

        def built(revision: str, of: Path) -> Path:
            if revision not in builds:
                builds[revision] = build(revision, of)
            return builds[revision].jar

        for run in plan.runs:
            key = _key(run.configuration)
            if key not in subjects:
                subjects[key] = subject_of(run.configuration, root, built)
            if not (on_hosts and run.configuration.spec.command):
                subjects[key].check(run.profile is not None)
        names = sorted({run.configuration.generator for run in plan.runs})
        loadgen, writes_first = (
            loadgen_binary(root),
            any(run.configuration.fill or run.head_start_writes for run in plan.runs),
        )
        if writes_first and not loadgen.is_file():
            raise ToolMissing(f"not built: {loadgen}", "kvstudy build")
        for product in {product for subject in subjects.values() for product in subject.products}:
            _check_age("service", root / "service", product)
        if "loadgen" in names or writes_first:
            _check_age("loadgen", root / "loadgen", loadgen)
        generators = {name: generator_path(name, loadgen) for name in names}
        programs = {path for subject in subjects.values() for path in subject.watched}
        states = {path: _state(path) for path in programs | set(map(Path, generators.values()))}
        found = cls(root, loadgen, generators, subjects, builds, states)
        # Asked now, not when a build may have replaced them.
        _ = found.subject_digests, found.generator_digests, found.versions, found.revision
        return found

    def check_unchanged(self) -> None:
        """RunFailed where a program is no longer the one that was there when all of it began: its digest was
        asked then, and is not of what ran."""
        for path, state in self.states.items():
            if _state(path) != state:
                raise RunFailed(
                    f"program was replaced while it was measured: {path}",
                    "the same command measures what is there now",
                )

    def subject(self, configuration: Configuration) -> Subject:
        """That of a planned run, or of a trial that differs from one in its rate alone."""
        return self.subjects[_key(configuration)]

    @cached_property
    def subject_digests(self) -> dict[str, str | None]:
        return {key: subject.digest for key, subject in self.subjects.items()}

    @cached_property
    def generator_digests(self) -> dict[str, str]:
        return {name: _digest(Path(path)) for name, path in self.generators.items()}

    def subject_digest(self, configuration: Configuration) -> str | None:
        return self.subject_digests[_key(configuration)]

    def _digest_of_script(self, workload: str, script: str | None, filled: bool) -> str:
        """As the script is now, which every run reads anew, and what fills the store before. ``script``: the
        path of one that is not among the project's own."""
        workloads = workloads_root(self.root)
        path = self.root / script if script else workloads / f"{workload}.lua"
        return script_digest(path, workloads, filled)

    def digests_of(self, configuration: Configuration) -> dict[str, str]:
        """By these a resumed measurement knows whether a sealed run was measured with the same programs, and
        the same script."""
        digest = self.subject_digest(configuration)
        of_subject = {self.subject(configuration).digest_name: digest} if digest else {}
        filled = configuration.fill is not None
        of_script = {SCRIPT: self._digest_of_script(configuration.workload, configuration.script, filled)}
        return of_subject | self.generator_digests | of_script

    def are_those_of(self, facts: dict) -> bool:
        """Whether a sealed run was measured with these programs, on this JDK, and by the script as it is now.
        ``facts``: its run.json."""
        noted, generator = facts.get("tool_digests") or {}, facts["generator"]
        if generator not in noted or noted[generator] != self.generator_digests.get(generator):
            return False
        asked = [facts.get("server") or "kv-service", facts.get("subject"), facts["service"], facts["jvm"]]
        subject = self.subjects.get(json.dumps(asked, sort_keys=True))
        return (
            subject is not None
            and subject.digest == noted.get(subject.digest_name)
            and self._is_script_of(facts, noted)
            and _is_jdk_of(facts, subject)
        )

    def _is_script_of(self, facts: dict, noted: dict) -> bool:
        """Runs of before it was noted do not say."""
        before, filled = noted.get(SCRIPT), facts.get("fill") is not None
        return before is None or before == self._digest_of_script(
            facts["workload"], facts.get("script"), filled
        )

    @cached_property
    def revision(self) -> tuple[str, bool]:
        """Git revision and whether tracked files differ from it; ``("unknown", True)`` outside a git
        repository."""

        def git(*words: str) -> str | None:
            try:
                asked = subprocess.run(
                    ["git", "-C", str(self.root), *words], capture_output=True, text=True, timeout=30
                )
            except OSError:
                return None
            return asked.stdout.strip() if asked.returncode == 0 else None

        revision = git("rev-parse", "HEAD")
        return (revision, git("status", "--porcelain") != "") if revision else ("unknown", True)

    @cached_property
    def versions(self) -> dict[str, str]:
        """``tool_versions`` of run.json."""
        versions = {"kvstudy": __version__, "python": platform.python_version()}
        for subject in self.subjects.values():
            versions |= subject.versions
        for name, path in self.generators.items():
            versions[name] = _version(path)
        return versions


def _state(path: Path) -> tuple[int, int, int] | None:
    """By which a file that was written anew is known; None of one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_age(name: str, folder: Path, product: Path) -> None:
    """Nobody who has changed a source shall measure what it was before."""
    source = changed_source(folder, product) if product.is_file() else None
    if source is not None:
        raise ToolMissing(f"{name} is older than its sources: {source}", "kvstudy build")


def _is_jdk_of(facts: dict, subject: Subject) -> bool:
    noted = (facts.get("tool_versions") or {}).get("jdk")
    return noted is None or subject.versions.get("jdk", noted) == noted


def _key(configuration: Configuration) -> str:
    return json.dumps(
        [configuration.server, configuration.subject, configuration.service, configuration.jvm],
        sort_keys=True,
    )


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
