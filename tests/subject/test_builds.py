"""The service of a revision: built once, kept by the digest of its tree, whole or not at all; every mistake
is one line."""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvstudy.errors import KvstudyError
from kvstudy.measure.artifacts import Artifacts
from kvstudy.project import jfr_converter_jar, profiler_library, service_jar
from kvstudy.subject.builds import build_of, built, check_revisions

# What Maven does here: a jar of the sources, a line per build, and a failure where the source says so.
MVN = """#!{python}
import pathlib, sys, time, zipfile
service = pathlib.Path(sys.argv[sys.argv.index("--file") + 1]).parent
source = (service / "src" / "Main.java").read_text()
with open({calls!r}, "a") as calls:
    calls.write(source + "\\n")
if source == "broken":
    sys.exit("[ERROR] Main.java:1: class expected")
time.sleep(0.3)
(service / "target" / "tools").mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(service / "target" / "kv-service.jar", "w") as jar:
    jar.writestr("Main.class", source)
for tool in ("libasyncProfiler.so", "jfr-converter.jar"):
    (service / "target" / "tools" / tool).write_text("")
"""


class Repository:
    def __init__(self, root: Path):
        self.root = root
        self.calls = root.parent / "mvn-calls"
        (root / "service" / "src").mkdir(parents=True)
        (root / "service" / "pom.xml").write_text("<project/>")
        (root / ".gitignore").write_text("/data/work/\n/service/target/\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("first")

    def git(self, *words: str) -> str:
        identity = {
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@t",
            "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@t",
        }
        return subprocess.run(
            ["git", "-C", str(self.root), *words],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | identity,
        ).stdout.strip()

    def source(self, text: str) -> None:
        (self.root / "service" / "src" / "Main.java").write_text(text)

    def commit(self, text: str) -> str:
        self.source(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")

    @property
    def builds(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def leftovers(self) -> list[str]:
        folder = self.root / "data" / "work" / "builds"
        return [path.name for path in folder.iterdir() if path.suffix in (".src", ".new")]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    repository = Repository(tmp_path / "my project")
    (tools / "mvn").write_text(MVN.format(python=sys.executable, calls=str(repository.calls)))
    (tools / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return repository


def content(jar: Path) -> str:
    with zipfile.ZipFile(jar) as opened:
        return opened.read("Main.class").decode()


def test_a_revision_is_built_once_and_another_one_beside_it(repository):
    repository.commit("second")
    assert content(built("HEAD", repository.root)) == "second"
    assert content(built("HEAD~1", repository.root)) == "first"
    assert content(built("main", repository.root)) == "second"
    assert repository.builds == ["second", "first"]
    assert repository.leftovers() == [] and repository.git("worktree", "list").count("\n") == 0
    assert repository.git("status", "--porcelain") == ""


def test_a_commit_that_leaves_the_service_alone_builds_nothing(repository):
    before = built("HEAD", repository.root)
    (repository.root / "README.md").write_text("new")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "-m", "docs")
    assert built("HEAD", repository.root) == before and repository.builds == ["first"]


def test_the_checkout_is_built_with_its_changes_and_kept_when_it_changes_again(repository):
    repository.source("changed")
    one = build_of(".", repository.root)
    of_revision = built("HEAD", repository.root)
    assert len(str(one.jar)) == len(str(of_revision)), "no side of a duet has the longer command line"
    assert (content(one.jar), one.dirty, one.revision) == (
        "changed",
        True,
        repository.git("rev-parse", "HEAD"),
    )
    assert content(built("HEAD", repository.root)) == "first"
    repository.source("changed again")
    for product in (
        service_jar(repository.root),
        profiler_library(repository.root),
        jfr_converter_jar(repository.root),
    ):
        os.utime(product, (1, 1))
    other = build_of(".", repository.root)
    assert (content(other.jar), content(one.jar)) == ("changed again", "changed")
    repository.commit("changed again")
    assert not build_of(".", repository.root).dirty


def test_a_jar_that_somebody_built_is_kept_as_it_was(repository, tmp_path):
    of_revision = built("HEAD", repository.root)
    jar = repository.root / "before" / "kv-service.jar"
    jar.parent.mkdir()
    shutil.copyfile(of_revision, jar)
    one = build_of("before/kv-service.jar", repository.root)
    assert (one.revision, one.dirty) == ("unknown", True)
    assert build_of(str(jar), repository.root).jar == one.jar != jar
    assert len(str(one.jar)) == len(str(of_revision)), "no side of a duet has the longer command line"
    jar.unlink()
    assert content(one.jar) == "first" and repository.builds == ["first"]
    with pytest.raises(KvstudyError, match="no such jar: before/kv-service.jar"):
        build_of("before/kv-service.jar", repository.root)
    with pytest.raises(KvstudyError, match="no such jar: other.jar"):
        check_revisions([".", "other.jar"], repository.root)
    jar.write_text("no zip")
    with pytest.raises(KvstudyError, match="not a jar: before/kv-service.jar: "):
        build_of("before/kv-service.jar", repository.root)


@pytest.mark.parametrize(
    ("revision", "told"),
    [
        (
            "mian",
            (
                "no such revision: mian\n"
                "  a branch, a tag or a commit that `git log` shows; . is the checkout as it is"
            ),
        ),
        ("--all", "no such revision: --all\n"),
        ("", "no such revision: \n"),
    ],
)
def test_an_unknown_revision_is_one_line_and_builds_nothing(repository, revision, told):
    with pytest.raises(KvstudyError) as caught:
        built(revision, repository.root)
    assert str(caught.value).startswith(told) and repository.builds == []


def test_of_several_revisions_an_unknown_one_is_told_before_any_is_built(repository):
    sides = [SimpleNamespace(spec=SimpleNamespace(build=build)) for build in (".", "mian")]
    runs = [SimpleNamespace(configuration=side) for side in sides]
    with pytest.raises(KvstudyError, match="no such revision: mian"):
        Artifacts.needed_by(SimpleNamespace(runs=runs), repository.root)
    assert repository.builds == []


def test_a_build_that_fails_leaves_its_last_lines_and_nothing_to_be_used(repository, capfd):
    commit = repository.commit("broken")
    for _ in range(2):
        with pytest.raises(KvstudyError) as caught:
            built("main", repository.root)
        assert str(caught.value).startswith(
            f"revision cannot be built: main ({commit[:12]}): build failed: service: mvn package"
        )
        assert "class expected" in capfd.readouterr().err
    assert repository.builds == ["broken", "broken"] and repository.leftovers() == []
    assert repository.git("worktree", "list").count("\n") == 0


def test_a_revision_without_a_service_and_a_project_without_git_are_told(repository, tmp_path, monkeypatch):
    repository.git("rm", "-r", "--quiet", "service")
    repository.git("commit", "--quiet", "-m", "none")
    with pytest.raises(KvstudyError, match="revision has no service to build: HEAD"):
        built("HEAD", repository.root)
    bare = tmp_path / "unpacked"
    bare.mkdir()
    with pytest.raises(KvstudyError, match="revision cannot be built: main: not a git repository"):
        built("main", bare)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(KvstudyError, match="main: git tells nothing of a repository that is another user's"):
        built("main", repository.root)


def test_what_a_killed_build_of_another_revision_left_goes_unless_it_is_still_built(repository):
    builds = repository.root / "data" / "work" / "builds"
    builds.mkdir(parents=True)
    for key in ("killed", "alive"):
        repository.git("worktree", "add", "--quiet", "--detach", str(builds / f"{key}.src"), "HEAD")
    with (builds / "alive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built("HEAD", repository.root)
        assert repository.leftovers() == ["alive.src"]
    built("HEAD", repository.root)
    assert repository.leftovers() == [] and repository.git("worktree", "list").count("\n") == 0


def test_two_at_once_build_it_once_and_a_killed_build_is_made_again(repository):
    code = (
        "from pathlib import Path; from kvstudy.subject.builds import built; print(built('HEAD', "
        f"Path({str(repository.root)!r})))"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        for _ in range(2)
    ]
    first, second = (process.communicate(timeout=60)[0] for process in both)
    assert first == second and repository.builds == ["first"]
    jar = Path(first.strip())
    jar.rename(jar.with_name("half"))
    left = jar.parent.with_name(f"{jar.parent.name}.src")
    repository.git("worktree", "add", "--quiet", "--detach", str(left), "HEAD")
    assert content(built("HEAD", repository.root)) == "first" and repository.builds == ["first", "first"]
    assert repository.leftovers() == [] and repository.git("worktree", "list").count("\n") == 0
