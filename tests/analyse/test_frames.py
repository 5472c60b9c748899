"""The classification on stacks of real profiled runs (those with two samples or more) and on single stacks by
hand."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from kvstudy.analyse import frames
from kvstudy.record import stacks

PROFILES = sorted((Path(__file__).parent / "profiles").glob("*.collapsed"))


def shares_percent(path: Path) -> dict[str, float]:
    counted = Counter()
    for stack, samples in stacks.read(path.read_text(), path.name).items():
        counted[frames.subsystem(stack)] += samples
    return {name: 100 * samples / counted.total() for name, samples in counted.items()}


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_the_rules_reach_nearly_every_sample_of_a_real_profile(path):
    found = shares_percent(path)
    assert found.get(frames.OTHER, 0) < 5
    assert found["response"] > 5 and found["socket read"] > 1 and found["idle"] > 5 and found["JIT"] > 3
    assert set(found) <= set(frames.SUBSYSTEMS)


def test_only_put_runs_write_the_log_and_flush_and_only_workers_are_handed_work():
    found = {path.stem: shares_percent(path) for path in PROFILES}
    put_selector, put_workers, get_workers = found["put-selector"], found["put-workers"], found["get-workers"]
    for name in ("WAL", "flush", "compaction"):
        assert put_selector[name] > 1 and put_workers[name] > 0.5 and name not in get_workers
    assert put_workers["dispatch"] > 3 * put_selector["dispatch"]


@pytest.mark.parametrize(
    ("subsystem", "stack"),
    [
        (
            "socket read",
            "one/nio/server/SelectorThread.run_[1];one/nio/net/Session.process_[j];kv/http/KvSession.processRead_[i];one/nio/net/Session.read_[i];"
            "one/nio/net/JavaSocket.read_[i];sun/nio/ch/IOUtil.read_[i];__libc_recv;entry_SYSCALL_64_after_hwframe_[k]",
        ),
        (
            "socket read",
            "one/nio/server/SelectorThread.run;one/nio/net/Session.process;kv/http/KvSession.processRead;one/nio/net/NativeSocket.read;recv",
        ),
        (
            "response",
            "one/nio/server/SelectorThread.run;kv/http/KvSession.processRead;kv/http/KvSession.work;kv/http/KvSession.flush;one/nio/net/NativeSocket.write;send",
        ),
        (
            "socket read",
            "one/nio/server/SelectorThread.run;one/nio/net/Session.process;kv/http/KvSession.processRead;kv/http/WritingSession.read;kv/http/SocketCalls.receive;"
            "java/lang/invoke/LambdaForm$MH.0x0000.invokeExact_MT;nep_invoker_blob;__libc_recv;entry_SYSCALL_64_after_hwframe_[k]",
        ),
        (
            "response",
            "one/nio/server/SelectorThread.run;kv/http/KvSession.processRead;kv/http/KvSession.work;kv/http/WritingSession.flush;kv/http/WritingSession.send;"
            "kv/http/SocketCalls.send;java/lang/invoke/LambdaForm$MH.0x0000.invokeExact_MT;nep_invoker_blob;__GI___send;tcp_sendmsg_[k]",
        ),
        (
            "response",
            "one/nio/server/SelectorThread.run;one/nio/net/Session.process;kv/http/ServingSession.processWrite_[j];kv/http/ServingSession.writeMore_[i]",
        ),
        (
            "dispatch",
            "one/nio/server/SelectorThread.run;kv/http/RoundSelector.hasNext_[j];kv/http/ServingSession.serveInRound_[i];kv/http/ServingSession.giveAnswer_[i]",
        ),
        (
            "response",
            "one/nio/server/SelectorThread.run;kv/http/KvSession.work;kv/http/KvSession.serve;kv/http/Router.answer;kv/http/Output.value;byte[]_[i]",
        ),
        (
            "parsing",
            "one/nio/server/SelectorThread.run;kv/http/KvSession.work_[j];kv/http/RequestReader.read_[i];kv/http/RequestParser.header_[i]",
        ),
        (
            "store",
            "kv/http/KvSession.serve;kv/http/Router.entity_[j];kv/lsm/LsmStore.get_[j];kv/lsm/table/SSTable.get;java/util/zip/CRC32C.update",
        ),
        ("store", "kv/http/Router.entity_[j];kv/cache/CachedStore.get_[j]"),
        (
            "store",
            "kv/http/KvSession.flush;kv/http/RangeStream.write;kv/lsm/RangeCursor.next;kv/lsm/MergingIterator.next",
        ),
        (
            "WAL",
            "kv/http/Router.entity_[j];kv/lsm/LsmStore.put_[i];kv/lsm/WritePath.write_[i];kv/lsm/log/WriteAheadLogWriter.append_[i];write",
        ),
        (
            "WAL",
            "java/lang/Thread.run;kv/lsm/Flusher.run;kv/lsm/LogSupply.prepare;kv/lsm/disk/RealDisk.fillWithZeros;write",
        ),
        ("WAL", "java/lang/Thread.run;kv/lsm/IntervalSync.run;fdatasync"),
        (
            "flush",
            "java/lang/Thread.run;kv/lsm/Flusher$$Lambda.run;kv/lsm/Flusher.flush_[0];kv/lsm/RunWriter.add;kv/lsm/table/SSTableWriter.add_[i]",
        ),
        (
            "compaction",
            "java/lang/Thread.run;kv/lsm/Compactor.run_[0];kv/lsm/CompactionJob.run;kv/lsm/RunWriter.add;kv/lsm/table/SSTableWriter.add_[i]",
        ),
        (
            "GC",
            "clone3;start_thread;thread_native_entry;Thread::call_run;WorkerThread::run;G1EvacuateRegionsBaseTask::work",
        ),
        ("GC", "kv/http/Output.<init>_[j];G1CollectedHeap::attempt_allocation_slow"),
        ("GC", "start_thread;Thread::call_run;ConcurrentGCThread::run;ZDriverMinor::run_thread"),
        ("GC", "start_thread;Thread::call_run;VMThread::run;VM_G1CollectForAllocation::doit"),
        (
            "JIT",
            "clone3;JavaThread::thread_main_inner;CompileBroker::compiler_thread_loop;C2Compiler::compile_method;Compile::Optimize",
        ),
        (
            "idle",
            "one/nio/server/SelectorThread.run;one/nio/net/JavaSelector.select;sun/nio/ch/EPoll.wait;epoll_wait;do_epoll_wait_[k]",
        ),
        ("idle", "one/nio/server/SelectorThread.run;one/nio/net/NativeSelector.epollWait;epoll_wait"),
        (
            "idle",
            "java/util/concurrent/ThreadPoolExecutor.getTask;java/util/concurrent/LinkedBlockingQueue.take;Unsafe_Park",
        ),
        (
            "dispatch",
            "kv/http/KvSession.serve;kv/http/Handler$Workers.tryRun;java/util/concurrent/ThreadPoolExecutor.execute;Unsafe_Unpark",
        ),
        ("profiling", "kv/lsm/Flusher.flush;jdk/jfr/internal/EventWriter.commit"),
        ("JVM", "start_thread;Thread::call_run;VMThread::run;SafepointSynchronize::end"),
        ("other", "some/library/Thing.run"),
    ],
)
def test_a_stack_belongs_to(subsystem, stack):
    assert frames.subsystem(stack) == subsystem


def test_waiting_for_a_write_stall_is_the_stores_and_not_idle():
    assert (
        frames.subsystem(
            "kv/lsm/LsmStore.put;kv/lsm/WriteStall.await;java/util/concurrent/locks/LockSupport.park;Unsafe_Park"
        )
        == "store"
    )


def test_shares_are_of_the_runs_own_samples_of_that_event():
    rows = [
        ("a", "cpu", "x;kv/lsm/LsmStore.get", 30),
        ("a", "cpu", "y;kv/lsm/LsmStore.put", 10),
        ("a", "cpu", "z", 60),
        ("a", "alloc", "kv/http/Output.value", 5),
        ("b", "cpu", "z", 7),
    ]
    found = frames.shares(pd.DataFrame(rows, columns=["run_id", "event", "stack", "samples"])).set_index(
        ["run_id", "event", "subsystem"]
    )
    assert found["share"].to_dict() == {
        ("a", "alloc", "response"): 1.0,
        ("a", "cpu", "other"): 0.6,
        ("a", "cpu", "store"): 0.4,
        ("b", "cpu", "other"): 1.0,
    }
    assert found.loc[("a", "cpu", "store"), "samples"] == 40


def test_no_stacks_give_no_shares():
    assert frames.shares(pd.DataFrame({"run_id": [], "event": [], "stack": [], "samples": []})).empty
