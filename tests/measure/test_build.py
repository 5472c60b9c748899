"""Building: only what is not up to date, with a clear end when a build fails or a tool is missing."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from kvstudy import building
from kvstudy.errors import KvstudyError, ToolMissing
from kvstudy.hosts.process import wait_until
from kvstudy.measure import build as builder
from kvstudy.project import empty_server_jar, jfr_converter_jar, loadgen_binary, profiler_library, service_jar


@pytest.fixture
def tree(tmp_path):
    """A project whose products are newer than their sources."""
    for source in ("service/pom.xml", "service/src/Main.java", "loadgen/Cargo.toml", "loadgen/src/main.rs"):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).write_text("")
        os.utime(tmp_path / source, (1000, 1000))
    for product in (
        service_jar(tmp_path),
        empty_server_jar(tmp_path),
        profiler_library(tmp_path),
        jfr_converter_jar(tmp_path),
        loadgen_binary(tmp_path),
    ):
        product.parent.mkdir(parents=True, exist_ok=True)
        product.write_text("")
        os.utime(product, (2000, 2000))
    return tmp_path


def test_nothing_is_built_when_all_products_are_newer_than_their_sources(tree, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    builder.build(tree)
    assert capsys.readouterr().err == "service: up to date\nloadgen: up to date\n"


@pytest.mark.parametrize("source", ["src/Main.java", "pom.xml"])
def test_changed_source_is_built_again(tree, source):
    os.utime(tree / "service" / source, (3000, 3000))
    assert not building.is_up_to_date(tree / "service", (service_jar(tree),))
    assert building.is_up_to_date(tree / "loadgen", (loadgen_binary(tree),))


def test_a_source_that_is_saved_while_its_build_goes_on_is_newer_than_what_it_makes(tree):
    products = (service_jar(tree),)
    source = tree / "service/src/Main.java"
    with building.noted(tree / "service", products):
        time.sleep(0.05)
        source.write_text("saved by an editor")
        time.sleep(0.05)
    assert not building.is_up_to_date(tree / "service", products)
    with building.noted(tree / "service", products):
        time.sleep(0.05)
    assert building.is_up_to_date(tree / "service", products)


def test_a_source_that_is_deleted_or_replaced_by_an_older_one_is_built_again(tree):
    products = (service_jar(tree),)
    more = tree / "service/src/More.java"
    more.write_text("")
    for change in (more.unlink, lambda: os.utime(tree / "service/src/Main.java", (500, 500))):
        with building.noted(tree / "service", products):
            pass
        assert building.is_up_to_date(tree / "service", products)
        change()
        assert not building.is_up_to_date(tree / "service", products)
        assert (
            building.changed_source(tree / "service", products[0])
            == "one below service/ was deleted or replaced"
        )
    os.utime(products[0])
    assert building.is_up_to_date(tree / "service", products), "built by hand since then"


def test_missing_product_is_built_again(tree):
    profiler_library(tree).unlink()
    assert not building.is_up_to_date(tree / "service", (service_jar(tree), profiler_library(tree)))


def test_missing_cargo_is_named_with_what_installs_it(tree, monkeypatch):
    loadgen_binary(tree).unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("HOME", str(tree))
    with pytest.raises(ToolMissing, match="no Cargo") as caught:
        builder.build(tree)
    assert "rustup" in caught.value.hint


def test_failed_build_shows_its_last_lines_and_its_command(tree, monkeypatch, capfd):
    tools = tree / "tools"
    tools.mkdir()
    (tools / "cargo").write_text("#!/bin/sh\necho 'error: expected one of'\nexit 101\n")
    (tools / "cargo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    loadgen_binary(tree).unlink()
    with pytest.raises(KvstudyError, match="build failed: loadgen: cargo build: exit=101") as caught:
        builder.build(tree)
    assert "cargo build --release --locked" in caught.value.hint
    assert "error: expected one of" in capfd.readouterr().err


def test_an_interrupted_build_is_ended_with_all_that_it_started():
    """It would go on beside the next measurement."""
    words = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with (
        pytest.raises(KeyboardInterrupt),
        building._ended_with_us(
            lambda: subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        ) as maven,
    ):
        started = psutil.Process(int(maven.stdout.readline()))
        raise KeyboardInterrupt
    assert maven.returncode == -9
    assert wait_until(lambda: not started.is_running() or started.status() == psutil.STATUS_ZOMBIE, 10)


# As on a machine where others have the processor: the build is at work, and who has started it does not know.
SLOW_START = """
import subprocess, time
class Slow(subprocess.Popen):
    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        time.sleep(0.5)
subprocess.Popen = Slow
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("before", ["", SLOW_START], ids=["at work", "just started"])
def test_whoever_is_ended_by_a_signal_leaves_no_build_behind(tmp_path, number, before):
    """A closed terminal, or `kill`."""
    noted = tmp_path / "pid"
    words = ["sh", "-c", 'echo $$ >"$1.new"; mv "$1.new" "$1"; exec sleep 60', "sh", str(noted)]
    code = f"{before}\nfrom kvstudy.building import run_build; run_build({words}, None, 'maven')"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as kvstudy:
        assert wait_until(noted.is_file, 60)
        started = int(noted.read_text())
        kvstudy.send_signal(number)
    try:
        assert wait_until(lambda: not psutil.pid_exists(started), 5)
    finally:
        with suppress(ProcessLookupError):
            os.kill(started, signal.SIGKILL)


def test_only_a_build_that_has_something_to_do_waits_for_no_measurement_to_go_on(tree, monkeypatch):
    """What is measured shall not be replaced; but who measures may ask for what is there already."""

    @contextmanager
    def alone():
        raise KvstudyError("another kvstudy measures or builds in this folder: pid=1")
        yield

    monkeypatch.setenv("PATH", "/nowhere")
    builder.build(tree, alone)
    os.utime(tree / "service/src/Main.java", (3000, 3000))
    with pytest.raises(KvstudyError, match="another kvstudy measures or builds in this folder"):
        builder.build(tree, alone)
