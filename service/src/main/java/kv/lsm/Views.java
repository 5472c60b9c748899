package kv.lsm;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import kv.lsm.memory.RefCounted;
import kv.lsm.table.SSTable;

/// The current [ReadView] and its replacement by the next one, with the memory of old views given back when
/// nobody reads them.
///
/// 1. Each change is made from the view that is current under this object's lock, so none can bring back an
///    older state.
/// 2. A reader inside [#enter] and [#exit] may use the view it loads in between; one that stays longer retains
///    it.
/// 3. Replaced views are released by a thread of their own, many at a time: unmapping stops all threads for a
///    moment.
final class Views {
    private static final long BATCH_NANOS = 20_000_000;

    private final Epochs epochs = new Epochs();
    /// Guarded by this object's lock.
    private final List<ReadView> replaced = new ArrayList<>();
    private final Thread reclaimer;
    /// Replaced views that somebody may still keep. Guarded by this object's lock.
    private final List<ReadView> retired = new ArrayList<>();
    private volatile ReadView current;

    /// @param first becomes this object's
    Views(ReadView first) {
        current = first;
        reclaimer = Threads.start("kv-reclaim", this::reclaim);
    }

    int enter() {
        return epochs.enter();
    }

    void exit(int token) {
        epochs.exit(token);
    }

    /// The current view, or null after [#close]. Use it before [#exit], or under a lock that keeps it current.
    ReadView current() {
        return current;
    }

    /// The current view with the caller as an owner.
    ///
    /// @throws StoreClosedException after [#close]
    ReadView retain() {
        int token = epochs.enter();
        try {
            ReadView view = current;
            if (view == null) {
                throw new StoreClosedException();
            }
            view.retain();
            return view;
        } finally {
            epochs.exit(token);
        }
    }

    /// Freezes the active memtable; `next` becomes the active one and passes to the views.
    void rotate(Memtable next) {
        replace(view -> {
            List<Memtable> frozen = new ArrayList<>(List.of(view.active()));
            frozen.addAll(view.frozen());
            return new ReadView(next, frozen, view.version(), view.openTables());
        });
        next.release();
    }

    /// Takes a flushed memtable away and its tables in.
    void flushed(Memtable memtable, Version version, List<NewTable> tables) {
        replace(view -> {
            List<Memtable> frozen = new ArrayList<>(view.frozen());
            if (!frozen.remove(memtable)) {
                throw new IllegalStateException("flushed a memtable that is not frozen: " + memtable);
            }
            return new ReadView(view.active(), frozen, version, opened(view, version, tables));
        });
    }

    /// Takes the tables of a compaction in.
    void compacted(Version version, List<NewTable> tables) {
        replace(view -> new ReadView(view.active(), view.frozen(), version, opened(view, version, tables)));
    }

    private static Map<Long, SSTable> opened(ReadView view, Version version, List<NewTable> tables) {
        Map<Long, SSTable> fresh = new HashMap<>();
        tables.forEach(table -> fresh.put(table.metadata().number(), table.table()));
        Map<Long, SSTable> open = new HashMap<>();
        for (TableMetadata table : version.tables()) {
            SSTable known = view.table(table.number());
            open.put(table.number(), known != null ? known : fresh.get(table.number()));
        }
        return open;
    }

    private synchronized void replace(UnaryOperator<ReadView> change) {
        ReadView before = current;
        current = change.apply(before);
        retired.removeIf(RefCounted::isDisposed);
        retired.add(before);
        replaced.add(before);
        notifyAll();
    }

    /// Memory and mapped files that are no longer current and kept by cursors, or by readers for a moment.
    /// Bytes.
    synchronized long pinnedBytes() {
        retired.removeIf(RefCounted::isDisposed);
        ReadView now = current;
        if (now == null) {
            return 0;
        }
        Set<RefCounted> pinned = new HashSet<>();
        retired.forEach(view -> pinned.addAll(view.owned()));
        pinned.removeAll(now.owned());
        return pinned.stream().mapToLong(RefCounted::bytesHeld).sum();
    }

    private void reclaim() {
        for (List<ReadView> batch; !(batch = awaitReplaced()).isEmpty(); ) {
            epochs.awaitReaders();
            batch.forEach(RefCounted::release);
        }
    }

    /// The views that were replaced within a moment; none when there will be no more.
    private synchronized List<ReadView> awaitReplaced() {
        try {
            while (replaced.isEmpty() && current != null) {
                wait();
            }
            long end = System.nanoTime() + BATCH_NANOS;
            for (long left; current != null && (left = end - System.nanoTime()) > 0; ) {
                wait(left / 1_000_000, (int) (left % 1_000_000));
            }
        } catch (InterruptedException e) {
            throw new AssertionError("nobody interrupts the store's threads", e);
        }
        List<ReadView> batch = List.copyOf(replaced);
        replaced.clear();
        return batch;
    }

    /// Ends all reading: waits for readers under way and releases the last view. Cursors keep theirs until they
    /// are closed.
    void close() {
        synchronized (this) {
            replaced.add(current);
            current = null;
            notifyAll();
        }
        Threads.join(reclaimer);
    }
}
