package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import kv.Eventually;
import kv.lsm.disk.FaultyDisk;
import kv.lsm.memory.Allocator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A store is closed while others use it: nothing is freed that somebody still reads or writes.
class ClosingTest {
    private final FaultyDisk real = new FaultyDisk();
    private final GatedDisk disk = new GatedDisk(real);
    private final Allocator allocator = new Allocator();

    /// A test that failed must not leave threads of the store at a gate.
    @AfterEach
    void openEveryGate() {
        disk.openedAtTheEnd().close();
    }

    private static CompletableFuture<Void> start(String name, Runnable work) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread.ofPlatform().name(name).daemon().start(() -> {
            try {
                work.run();
                done.complete(null);
            } catch (Throwable e) {
                done.completeExceptionally(e);
            }
        });
        return done;
    }

    /// Of a store that has failed, too: the memtable is the leader's until its sync is done.
    @Test
    void aCloseWaitsForTheLeaderOfAGroupThatIsInItsSync() throws Exception {
        StoreOptions options = StoreState.options(WalMode.ALWAYS).toBuilder()
                .frozenMemtablesMax(10)
                .build();
        LsmStore store = LsmStore.open(options, disk, allocator);
        boolean[] flushing = {false};
        real.setFaults((count, what) -> {
            boolean isFlush = Thread.currentThread().getName().equals("kv-flush");
            flushing[0] |= isFlush && what.startsWith("create ") && what.endsWith(FileNames.TEMPORARY);
            return isFlush && flushing[0] && what.equals("sync directory");
        });
        disk.hold("kv-flush");
        for (int i = 0; i < 12; i++) { // more than a memtable
            store.put(StoreState.key(i), new byte[1_000]);
        }
        disk.awaitHeld();
        disk.hold("leader");
        CompletableFuture<Void> leader = start("leader", () -> store.put(new byte[] {1}, new byte[] {1}));
        disk.awaitHeld(2);
        disk.letGo("kv-flush");
        Eventually.holds(() -> !store.isWritable());
        CompletableFuture<Void> closing = start("closer", store::close);
        Thread.sleep(100); // for a close that does not wait to do its harm
        assertThat(closing).isNotDone();
        disk.letGo("leader");
        leader.get(1, TimeUnit.MINUTES);
        closing.handle((done, error) -> assertThat(error)
                        .satisfiesAnyOf(
                                e -> assertThat(e).isNull(),
                                e -> assertThat(e).isInstanceOf(StoreFailedException.class)))
                .get(1, TimeUnit.MINUTES);
        assertThat(allocator.allocatedBytes()).isZero();
    }

    /// A sync that fails in one thread is the news that a writer waits for who was stopped because a flush is
    /// behind.
    @Test
    void aStalledWriterIsToldOfAFailureAtOnce() throws Exception {
        StoreOptions options = StoreState.options(WalMode.INTERVAL).toBuilder()
                .stallLimit(Duration.ZERO)
                .build();
        LsmStore store = LsmStore.open(options, disk, allocator);
        disk.hold("kv-flush");
        disk.hold("kv-wal-sync");
        AtomicReference<Thread> thread = new AtomicReference<>();
        CompletableFuture<Void> writer = start("writer", () -> {
            thread.set(Thread.currentThread());
            for (int i = 0; ; i++) {
                store.put(StoreState.key(i), new byte[1_000]);
            }
        });
        disk.awaitHeld(2);
        Eventually.holds(() -> thread.get().getState() == Thread.State.TIMED_WAITING);
        real.setFaults((count, what) -> what.equals("sync log"));
        disk.letGo("kv-wal-sync");
        Throwable error = writer.handle((done, e) -> e).get(1, TimeUnit.MINUTES);
        assertThat(error).isInstanceOf(StoreFailedException.class);
        disk.letGo("kv-flush");
        store.close();
        assertThat(allocator.allocatedBytes()).isZero();
    }

    /// Who stops the service waits for that, however long the values are.
    @Test
    void aCloseDoesNotWaitForTheEndOfAMergeOfAFewLongEntries() throws Exception {
        StoreOptions options = StoreState.options(WalMode.NONE).toBuilder()
                .memtableBytes(64 << 10)
                .stallLimit(Duration.ZERO)
                .build();
        int entries = 200;
        try (Store store = LsmStore.open(
                options.toBuilder().compaction(CompactionPolicyKind.NONE).build(), real, allocator)) {
            for (int i = 0; i < entries; i++) {
                store.put(Records.bytes("key " + i), new byte[10_000]);
            }
        }
        disk.hold(GatedDisk.COMPACTION);
        LsmStore store = LsmStore.open(options, disk, allocator);
        disk.awaitHeld();
        AtomicInteger tables = new AtomicInteger(); // of two entries each, at most
        real.setFaults((count, what) -> {
            tables.addAndGet(what.startsWith("create ") ? 1 : 0);
            return false;
        });
        AtomicReference<Thread> closer = new AtomicReference<>();
        CompletableFuture<Void> closing = start("closer", () -> {
            closer.set(Thread.currentThread());
            store.close();
        });
        Eventually.holds(() -> closer.get() != null
                && isInCallOf(closer.get(), Compactor.class, "stop")
                && isInCallOf(closer.get(), Threads.class, "join"));
        disk.letGo(GatedDisk.COMPACTION);
        closing.get(1, TimeUnit.MINUTES);
        assertThat(tables.get()).isBetween(1, entries / 4);
        assertThat(allocator.allocatedBytes()).isZero();
    }

    private static boolean isInCallOf(Thread thread, Class<?> type, String method) {
        return Arrays.stream(thread.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(type.getName())
                        && frame.getMethodName().equals(method));
    }

    @ParameterizedTest
    @EnumSource
    void writersReadersAndCursorsEndWithTheStore(WalMode wal) throws Exception {
        for (int round = 0; round < 20; round++) {
            LsmStore store = LsmStore.open(StoreState.options(wal), new FaultyDisk(), allocator);
            CountDownLatch started = new CountDownLatch(4);
            CompletableFuture<?>[] users = {
                start("writer", () -> use(started, i -> store.put(StoreState.key(i), new byte[500]))),
                start("beginner", () -> use(started, i -> store.begin(StoreState.key(i), new byte[50]))),
                start("reader", () -> use(started, i -> store.get(StoreState.key(i)))),
                start(
                        "ranger",
                        () -> use(started, i -> {
                            try (RangeCursor cursor = store.range(StoreState.key(i), null)) {
                                while (cursor.next()) {
                                    cursor.value();
                                }
                            }
                        }))
            };
            assertThat(started.await(1, TimeUnit.MINUTES)).as("all four work").isTrue();
            store.close();
            CompletableFuture.allOf(users).get(1, TimeUnit.MINUTES);
            assertThat(allocator.allocatedBytes()).as("memory after closing").isZero();
        }
    }

    private interface Use {
        void of(int number);
    }

    /// Until the store is closed.
    private static void use(CountDownLatch started, Use use) {
        try {
            for (int i = 0; ; i++) {
                use.of(i);
                if (i == 3) {
                    started.countDown();
                }
            }
        } catch (StoreClosedException e) {
            started.countDown();
        }
    }

    /// The last view came into the queue after the thread that empties it had seen that it may end.
    @RepeatedTest(200)
    void theLastViewIsReleasedHoweverSoonAClosingFollowsAChange() {
        Store store = LsmStore.open(StoreState.options(WalMode.NONE), real.copy(), allocator);
        for (int i = 0; i < 12; i++) {
            store.put(StoreState.key(i), new byte[1_000]);
        }
        store.close();
        assertThat(allocator.allocatedBytes()).isZero();
    }
}
