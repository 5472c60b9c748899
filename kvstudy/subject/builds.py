"""The service as it was at a revision, built once and kept: ``built("main", root)`` gives the jar.

    data/work/builds/revision-<key>/kv-service.jar   whole: it was moved there when its build had ended well
    data/work/builds/revision-<key>/build.json       revision, tree and JDK it was made of
    data/work/builds/revision-<key>.src/             a git worktree while the build goes on; never read
    data/work/builds/checkout-<digest>/              the same of ``.``, by the digest of what the jar holds
    data/work/builds/prebuilt-<digest>/              a copy of a jar that was named instead of a revision

``<key>`` is a digest of the tree of ``service/`` at that revision and of the JDK's version, so that commits
elsewhere build nothing anew. ``.`` is the checkout as it is, changes that are not committed included. What
ends with ``.jar`` is no revision but a file, from the project's folder, that somebody has built. All
paths are of one length: the size of its command line moves a process's stack, which can make one program
faster than another (Mytkowicz et al., ASPLOS 2009)."""

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kvstudy.building import is_up_to_date, noted, run_build
from kvstudy.errors import InputError, KvstudyError, ToolMissing
from kvstudy.project import empty_server_jar, jfr_converter_jar, profiler_library, service_jar, work_root
from kvstudy.subject.jdk import find_jdk
from kvstudy.subject.kv_service import jar_digest

CHECKOUT = "."
JAR = "kv-service.jar"
JAR_ENDING = ".jar"
UNKNOWN = "unknown"
JAR_HINT = "the path of a kv-service.jar, from the project's folder; or a revision, which is built"
GIT_TIMEOUT_S = 120
MAVEN_HINT = "install it: apt-get install maven (Debian, Ubuntu) or conda install maven"


@dataclass(frozen=True)
class Build:
    """``name``: as it was asked for. ``revision``: the commit; ``dirty``: whether it holds changes that no
    commit has."""

    name: str
    jar: Path
    revision: str
    dirty: bool


def products(root: Path) -> tuple[Path, ...]:
    """What a build of the service makes, the main one first."""
    return service_jar(root), empty_server_jar(root), profiler_library(root), jfr_converter_jar(root)


def build_service(root: Path, test: bool = False) -> None:
    jdk = find_jdk()
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolMissing("no Maven: mvn is not on PATH", MAVEN_HINT)
    goals = ["test"] if test else ["package", "-DskipTests"]
    run_build(
        [maven, "--batch-mode", "--file", str(root / "service" / "pom.xml"), *goals],
        jdk.environment(),
        f"service: mvn {goals[0]} (JDK {jdk.version})",
        echo=test,
    )


def built(revision: str, root: Path) -> Path:
    """The jar of a revision, or of ``.``, the checkout; built where that was not done yet. KvstudyError in
    one line."""
    return build_of(revision, root).jar


def build_of(revision: str, root: Path) -> Build:
    """``built``, and what it was made of."""
    builds = work_root(root) / "builds"
    builds.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root, builds)
    if revision == CHECKOUT:
        return _of_checkout(root, builds)
    if revision.endswith(JAR_ENDING):
        return _of_jar(revision, root, builds)
    commit, tree = _commit_and_tree(revision, root)
    key = hashlib.sha256(f"{tree} {find_jdk().version}".encode()).hexdigest()[:16]
    folder = builds / f"revision-{key}"
    with _alone(folder.with_suffix(".lock")):
        if not (folder / JAR).is_file():
            _build_tree(revision, commit, tree, root, folder)
    return Build(revision, folder / JAR, commit, dirty=False)


def _of_checkout(root: Path, builds: Path) -> Build:
    """A copy, so that a build in the meantime cannot change what is measured."""
    with _alone(builds / "checkout.lock"):
        needed = (service_jar(root), profiler_library(root), jfr_converter_jar(root))
        if not is_up_to_date(root / "service", needed):
            with noted(root / "service", needed):
                build_service(root)
        folder = builds / f"checkout-{jar_digest(service_jar(root))}"
        if not (folder / JAR).is_file():
            _keep(service_jar(root), folder, {"revision": CHECKOUT})
    commit = _git(root, "rev-parse", "HEAD")
    return Build(
        CHECKOUT,
        folder / JAR,
        commit or UNKNOWN,
        dirty=commit is None or _git(root, "status", "--porcelain", "--", "service") != "",
    )


def _of_jar(name: str, root: Path, builds: Path) -> Build:
    """A copy, as of the checkout; of which revision it is nobody knows."""
    _check_jar(name, root)
    try:
        digest = jar_digest(root / name)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"not a jar: {name}: {str(error).lower()}", JAR_HINT) from error
    folder = builds / f"prebuilt-{digest}"
    with _alone(folder.with_suffix(".lock")):
        if not (folder / JAR).is_file():
            _keep(root / name, folder, {"revision": UNKNOWN})
    return Build(name, folder / JAR, UNKNOWN, dirty=True)


def _check_jar(name: str, root: Path) -> None:
    if not (root / name).is_file():
        raise InputError(f"no such jar: {name}", JAR_HINT)


def _build_tree(revision: str, commit: str, tree: str, root: Path, folder: Path) -> None:
    source = folder.with_name(f"{folder.name}.src")
    _remove_worktree(root, source)
    prefix = _prefix(root)
    _asked(
        root,
        f"no worktree of {revision}",
        "worktree",
        "add",
        "--force",
        "--quiet",
        "--detach",
        "--no-checkout",
        str(source),
        commit,
    )
    try:
        _asked(source, f"no sources of {revision}", "checkout", "--quiet", commit, "--", f"{prefix}service")
        try:
            build_service(source / prefix)
        except ToolMissing:
            raise
        except KvstudyError as error:
            raise KvstudyError(
                f"revision cannot be built: {revision} ({commit[:12]}): {error.message}",
                "its last lines stand above; choose another revision, or mend it",
            ) from error
        if not service_jar(source / prefix).is_file():
            raise KvstudyError(
                f"revision cannot be built: {revision} ({commit[:12]}): the build ended without "
                f"service/target/{JAR}"
            )
        _keep(
            service_jar(source / prefix),
            folder,
            {"revision": commit, "tree": tree, "jdk": find_jdk().version},
        )
    finally:
        _remove_worktree(root, source)


def _keep(jar: Path, folder: Path, facts: dict) -> None:
    """Whole or not at all: what is half copied has another name."""
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    new.mkdir()
    shutil.copyfile(jar, new / JAR)
    (new / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    new.rename(folder)


def check_revisions(revisions: Iterable[str], root: Path) -> None:
    """InputError for the first that there is not; asked before the first of several is built."""
    for revision in revisions:
        if revision.endswith(JAR_ENDING):
            _check_jar(revision, root)
        elif revision != CHECKOUT:
            _commit_and_tree(revision, root)


def _commit_and_tree(revision: str, root: Path) -> tuple[str, str]:
    if not shutil.which("git"):
        raise ToolMissing(
            f"revision cannot be built without git: {revision}",
            "apt-get install git; or compare what you have built: --builds . .",
        )
    if refused := git_refuses(root):
        why, what_to_do = refused
        raise KvstudyError(
            f"revision cannot be built: {revision}: {why}", f"{what_to_do}; . is the checkout as it is"
        )
    commit = (
        None
        if revision.startswith("-")
        else _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    )
    if not commit:
        raise InputError(
            f"no such revision: {revision}",
            "a branch, a tag or a commit that `git log` shows; . is the checkout as it is",
        )
    tree = _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:{_prefix(root)}service")
    if not tree:
        raise InputError(f"revision has no service to build: {revision} ({commit[:12]}): no folder service/")
    return commit, tree


def _prefix(root: Path) -> str:
    """Of the project inside its repository; empty where it is the repository."""
    return _git(root, "rev-parse", "--show-prefix") or ""


def _remove_abandoned(root: Path, builds: Path) -> None:
    """Worktrees of builds that were killed: nobody holds their lock, and perhaps nobody will ask for their
    revision again."""
    for source in builds.glob("*.src"):
        with source.with_suffix(".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            _remove_worktree(root, source)


def _remove_worktree(root: Path, source: Path) -> None:
    """Also what an interrupted build has left behind."""
    if source.exists():
        _git(root, "worktree", "remove", "--force", "--force", str(source))
        shutil.rmtree(source, ignore_errors=True)


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None when it refuses, or is not there."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None


def git_refuses(root: Path) -> tuple[str, str] | None:
    """Why a git that runs tells nothing of the project, and what to do; None where it does."""
    asked = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--git-dir"],
        capture_output=True,
        text=True,
        timeout=GIT_TIMEOUT_S,
    )
    if asked.returncode == 0:
        return None
    command = re.search(r"git config .*safe\.directory .+", asked.stderr)
    if command:  # as in a container: it asks whose the folder is
        return f"git tells nothing of a repository that is another user's: {root}", command[0]
    return f"not a git repository: {root}", "clone the project with git"


def _asked(folder: Path, otherwise: str, *words: str) -> None:
    """KvstudyError with git's last line when it refuses."""
    asked = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S
    )
    if asked.returncode != 0:
        lines = asked.stderr.strip().splitlines()
        raise KvstudyError(f"{otherwise}: git {words[0]}: {lines[-1] if lines else asked.returncode}")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Waits until nobody else builds the same; ends with the process, however that ends."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
