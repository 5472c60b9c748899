"""Which part of the service a stack belongs to: the parts that the published reports give shares of.

    subsystem("one/nio/server/SelectorThread.run;…;one/nio/net/JavaSocket.read;…")   "socket read"
    shares(tables.stacks)                             one row per run, event and subsystem

The rules stand below in order. A rule knows frames; the first rule that knows any frame of a stack takes the
whole stack, so that each sample is counted once. The order says who takes what both know: garbage collection
and compilation are taken out first, since they run inside any code; the write-ahead log, flush and compaction
before the store whose code they use; the store before the response that a range is read in; work of any kind
before the waiting around it. What no rule knows is "other": its share says how far the rules reach (a test
holds it under 5 % on real profiles).
"""

import re
from functools import lru_cache

import pandas as pd

OTHER = "other"

# (subsystem, frames). Java frames are written a/b/C.method; an annotation like _[j] may follow; the JVM's own
# are C++ names.
RULES: tuple[tuple[str, str], ...] = (
    ("profiling", r"^(jdk/jfr/|Jfr|JFR|Profiler::|PerfEvents::|AllocTracer|ObjectSampler|AttachListener)"),
    (
        "JIT",
        r"^(CompileBroker::|CompilerThread|CompileQueue::|C1_|C2Compiler|Compiler::|Compile::|Compilation::|Deoptimization::|nmethod::make)",
    ),
    (
        "GC",
        r"^(G1|Shenandoah|Z(Barrier|Collect|Driver|Director|Generation|Heap|Mark|Page|Reloc|Store|Thread|Worker)|PS[A-Z]\w*::|Parallel|Serial"
        r"|DefNew|ConcurrentGCThread|WorkerThread::|GangWorker|VM_G1|VM_GC|VM_Collect|VM_Generation|CollectedHeap::collect|WeakProcessor"
        r"|com/sun/management/internal/GarbageCollector)",
    ),
    (
        "WAL",
        r"^kv/lsm/(log/|GroupCommit|IntervalSync|WalSync|LogSupply|LogReplay|disk/\w*Log|disk/\w+\.\w*(Log|fillWithZeros))",
    ),
    ("compaction", r"^kv/lsm/(Compact|LeveledPolicy|TieredPolicy)"),
    ("flush", r"^kv/lsm/(Flusher|RunWriter)"),
    ("store", r"^kv/(lsm|cache)[/.]"),
    (
        "socket read",
        r"^(one/nio/net/\w*(Socket|Session)\.(read|recv)|one/nio/net/\w*ServerSocket\.accept|one/nio/net/Socket\.accept|kv/http/(WritingSession\.read|SocketCalls\.receive))",
    ),
    (
        "response",
        r"^(one/nio/net/(\w*(Socket|Session)\.(\w*[wW]rite|send)|Session\$)"
        r"|kv/http/(Output|Answer|RangeStream|SocketCalls\.send|(Kv|Serving|Writing)Session\.(flush|send|processWrite|writeMore)))",
    ),
    ("parsing", r"^kv/http/Request"),
    (
        "idle",
        r"(^one/nio/net/\w*Selector\.|^sun/nio/ch/(EPollSelectorImpl|SelectorImpl)|epoll_wait|^java/util/concurrent/ThreadPoolExecutor\.getTask"
        r"|^java/util/concurrent/ForkJoinPool\.(awaitWork|park)|^VMThread::wait_for_operation|^java/lang/Thread\.sleep"
        r"|^java/util/concurrent/ScheduledThreadPoolExecutor\$DelayedWorkQueue|^WatcherThread)",
    ),
    (
        "dispatch",
        r"^(kv/http/|one/nio/(server|net|http)/|java/util/concurrent/(ThreadPoolExecutor|ForkJoin)|java/lang/(VirtualThread|ThreadBuilders))",
    ),
    ("metrics", r"^(io/prometheus/|kv/\w*Metrics)"),
    (
        "JVM",
        r"^(VMThread::|VM_|SafepointSynchronize|MonitorDeflationThread|ServiceThread|SystemDictionary|InterpreterRuntime|SharedRuntime|JavaThread::"
        r"|clone3|thread_native_entry|java/lang/ref/|jdk/internal/ref/|java/lang/invoke/|break_stack_range|method_entry_barrier)",
    ),
)
SUBSYSTEMS = (*(name for name, _ in RULES), OTHER)

_COMPILED = tuple(re.compile(pattern) for _, pattern in RULES)


@lru_cache(maxsize=200_000)
def _rank(frame: str) -> int:
    """Place of the first rule that knows the frame; len(RULES) when none does."""
    return next((place for place, rule in enumerate(_COMPILED) if rule.search(frame)), len(RULES))


@lru_cache(maxsize=200_000)
def subsystem(stack: str) -> str:
    """The subsystem, one of SUBSYSTEMS, of a stack (frames joined by ';', root first)."""
    return SUBSYSTEMS[min(_rank(frame) for frame in stack.split(";"))]


def shares(stacks: pd.DataFrame) -> pd.DataFrame:
    """One row per run_id, event and subsystem that occurs: ``samples`` and ``share`` (0 – 1) of the run's
    samples of that event."""
    if stacks.empty:
        return pd.DataFrame({"run_id": [], "event": [], "subsystem": [], "samples": [], "share": []})
    named = stacks.assign(subsystem=[subsystem(stack) for stack in stacks["stack"]])
    summed = named.groupby(["run_id", "event", "subsystem"], as_index=False)["samples"].sum()
    summed["share"] = summed["samples"] / summed.groupby(["run_id", "event"])["samples"].transform("sum")
    return summed
