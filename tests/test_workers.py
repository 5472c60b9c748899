"""Other processes share the work and are gone afterwards, however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvstudy import workers
from kvstudy.errors import FormatError, KvstudyError

ROOT = Path(__file__).parents[1]


def pid_of(_task: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def refuse(task: int) -> int:
    if task == 3:
        raise FormatError("latency.hlog", 7, "cut", "measure it again")
    return task


def sleep(task: int) -> int:
    (Path(os.environ["PIDS"]) / str(os.getpid())).touch()
    time.sleep(120)
    return task


def end_at_once(task: int) -> int:
    os._exit(7)


def print_much(task: int) -> int:
    print("no answer" * 100)
    return task


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def two_processors(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def test_every_task_is_answered_once_by_processes_that_end(two_processors):
    pids = set(workers.processes(pid_of, list(range(8))))
    assert 1 <= len(pids) <= 2 and os.getpid() not in pids
    assert not [pid for pid in pids if is_there(pid)]


def test_a_folder_named_kvstudy_where_it_runs_is_not_taken_for_this_one(
    two_processors, tmp_path, monkeypatch
):
    other = tmp_path / "kvstudy" / "__init__.py"
    other.parent.mkdir()
    other.write_text("raise SystemExit('another kvstudy')")
    monkeypatch.chdir(tmp_path)
    assert sorted(workers.processes(print_much, [1, 2, 3])) == [1, 2, 3]


def test_one_task_needs_no_process():
    assert list(workers.processes(pid_of, [1])) == [os.getpid()]


def test_an_error_of_ours_arrives_whole(two_processors):
    with pytest.raises(KvstudyError) as found:
        list(workers.processes(refuse, list(range(50))))
    assert (found.value.message, found.value.hint) == ("latency.hlog:7: cut", "measure it again")


def test_a_worker_that_dies_is_an_error_and_not_a_wait(two_processors):
    with pytest.raises(KvstudyError, match="ended: pid=[0-9]+ exit code=7"):
        list(workers.processes(end_at_once, [1, 2, 3]))


def test_what_is_printed_is_no_answer(two_processors):
    assert sorted(workers.processes(print_much, [1, 2, 3])) == [1, 2, 3]


def test_a_script_without_a_guard_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os; os.sched_getaffinity = lambda _: {0, 1}\nfrom kvstudy import workers\n"
        "import test_workers\n"
        "print(sorted(workers.processes(test_workers.print_much, [1, 2])))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[1, 2]\n", done.stderr


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda ending: ending.name
)
def test_no_worker_outlives_who_asked(tmp_path, ending):
    program = (
        "import os; os.sched_getaffinity = lambda _: {0, 1}\nfrom kvstudy import workers\n"
        "import test_workers\nlist(workers.processes(test_workers.sleep, [1, 2, 3]))"
    )
    environment = os.environ | {
        "PIDS": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as asking:
        deadline = time.monotonic() + 60
        while len(pids := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            assert time.monotonic() < deadline and asking.poll() is None
            time.sleep(0.05)
        asking.send_signal(ending)
        try:
            asking.wait(60)
        finally:
            asking.kill()
    deadline = time.monotonic() + 60
    while any(map(is_there, pids)):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.05)
