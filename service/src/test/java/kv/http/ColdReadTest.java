package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import kv.Eventually;
import kv.lsm.RangeCursor;
import kv.lsm.StoreException;
import org.junit.jupiter.api.Test;

/// GETs that wait for the disk hold up their own connections and nobody else.
class ColdReadTest {
    private static final int READERS = 8;

    /// Keys that begin with `cold` are on a disk that stands still until the gate opens.
    private static final class ColdStore extends MemoryStore {
        final CountDownLatch gate = new CountDownLatch(1);
        final AtomicInteger waiting = new AtomicInteger();
        volatile boolean diskFails;

        private static boolean isCold(byte[] key) {
            return new String(key).startsWith("cold");
        }

        @Override
        public byte[] tryGet(byte[] key, byte[] roomOrNull) {
            return isCold(key) ? WOULD_WAIT : super.get(key);
        }

        @Override
        public byte[] get(byte[] key) {
            await(key);
            return super.get(key);
        }

        @Override
        public boolean readsWaitForDisk() {
            return true;
        }

        @Override
        public RangeCursor range(byte[] start, byte[] endOrNull) {
            await(start);
            return super.range(start, endOrNull);
        }

        private void await(byte[] key) {
            if (!isCold(key)) {
                return;
            }
            waiting.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            if (diskFails) {
                throw new StoreException("the disk is gone", new IOException());
            }
        }
    }

    /// Opened before the server is closed, so that a test that fails ends.
    private interface Gate extends AutoCloseable {
        @Override
        void close();
    }

    private final ColdStore store = new ColdStore();

    private TestServer server() throws Exception {
        return new TestServer(store, HttpOptions.onFreePort().withSelectors(1));
    }

    @Test
    void othersAreAnsweredMeanwhileAndTheReadsAfterwardsInOrder() throws Exception {
        List<RawClient> readers = new ArrayList<>();
        try (TestServer server = server();
                RawClient other = server.connect();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < READERS; i++) {
                other.ask(put("/v0/entity?id=cold" + i, "cold value " + i));
            }
            other.ask(put("/v0/entity?id=warm", "warm value"));
            for (int i = 0; i < READERS; i++) { // alone in its packet, or with others behind it
                RawClient reader = server.connect();
                readers.add(reader);
                String cold = get("/v0/entity?id=cold" + i);
                reader.send(i % 2 == 0 ? cold : cold + get("/v0/entity?id=warm") + cold);
            }
            Eventually.holds(() -> store.waiting.get() >= READERS);
            for (int i = 0; i < 50; i++) {
                assertThat(other.ask(get("/v0/entity?id=warm")).text()).isEqualTo("warm value");
                assertThat(other.ask(put("/v0/entity?id=more", "x")).status()).isEqualTo(201);
                assertThat(other.ask(get("/v0/entities?start=warm")).status()).isEqualTo(200);
            }
            store.gate.countDown();
            for (int i = 0; i < READERS; i++) {
                assertThat(readers.get(i).read().text()).isEqualTo("cold value " + i);
                if (i % 2 != 0) {
                    assertThat(readers.get(i).read().text()).isEqualTo("warm value");
                    assertThat(readers.get(i).read().text()).isEqualTo("cold value " + i);
                }
            }
        } finally {
            for (RawClient reader : readers) {
                reader.close();
            }
        }
    }

    @Test
    void aRangeThatWaitsForTheDiskHoldsUpNobodyElse() throws Exception {
        try (TestServer server = server();
                RawClient reader = server.connect();
                RawClient other = server.connect();
                Gate gate = store.gate::countDown) {
            other.ask(put("/v0/entity?id=cold", "value"));
            reader.send(get("/v0/entities?start=cold"));
            Eventually.holds(() -> store.waiting.get() > 0);
            assertThat(other.ask(get("/v0/entity?id=absent")).status()).isEqualTo(404);
            store.gate.countDown();
            assertThat(reader.read().text()).isEqualTo("cold\nvalue");
        }
    }

    @Test
    void aReadThatFailsIsAnsweredAndItsConnectionGoesOn() throws Exception {
        store.diskFails = true;
        try (TestServer server = server();
                RawClient reader = server.connect();
                Gate gate = store.gate::countDown) {
            store.gate.countDown();
            assertThat(reader.ask(get("/v0/entity?id=cold")).status()).isEqualTo(500);
            assertThat(reader.ask(get("/v0/entity?id=warm")).status()).isEqualTo(404);
        }
    }

    @Test
    void clientsThatGoAwayWhileTheirReadsWaitLeaveNothingBehind() throws Exception {
        try (TestServer server = server();
                Gate gate = store.gate::countDown) {
            for (int i = 0; i < READERS; i++) {
                try (RawClient reader = server.connect()) {
                    reader.send(get("/v0/entity?id=cold" + i));
                }
            }
            Eventually.holds(() -> store.waiting.get() >= READERS);
            store.gate.countDown();
            Eventually.holds(() -> server.server.connections().size() == 0);
            Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
        }
    }

    /// Lets reads from the disk end one by one.
    private static final class OneByOne extends MemoryStore {
        final Semaphore gate = new Semaphore(0);
        final List<String> begun = new CopyOnWriteArrayList<>();

        @Override
        public byte[] tryGet(byte[] key, byte[] roomOrNull) {
            return new String(key).startsWith("cold") ? WOULD_WAIT : super.get(key);
        }

        @Override
        public byte[] get(byte[] key) {
            if (new String(key).startsWith("cold")) {
                begun.add(new String(key));
                gate.acquireUninterruptibly();
            }
            return super.get(key);
        }

        @Override
        public boolean readsWaitForDisk() {
            return true;
        }
    }

    @Test
    void readsOfClientsThatHaveGoneComeLastOrNotAtAll() throws Exception {
        OneByOne slow = new OneByOne();
        List<RawClient> clients = new ArrayList<>();
        try (TestServer server = new TestServer(slow, HttpOptions.onFreePort().withSelectors(1));
                RawClient other = server.connect();
                Gate gate = () -> slow.gate.release(1_000)) {
            for (int i = 0; i < Handler.COLD_READS_AT_ONCE; i++) {
                clients.add(server.connect());
                clients.getLast().send(get("/v0/entity?id=cold" + i));
            }
            Eventually.holds(() -> slow.begun.size() == Handler.COLD_READS_AT_ONCE);
            for (int i = 0; i < 5; i++) {
                RawClient reset = server.connect();
                reset.send(get("/v0/entity?id=cold-reset" + i));
                RawClient closed = server.connect();
                closed.send(get("/v0/entity?id=cold-closed" + i));
                int waiting = 2 * i + 2;
                Eventually.holds(() -> server.server.coldReads().waiting() == waiting);
                reset.reset();
                closed.close();
            }
            RawClient halfClosed = server.connect();
            clients.add(halfClosed);
            halfClosed.send(get("/v0/entity?id=cold-half-closed"));
            halfClosed.endOfInput();
            RawClient alive = server.connect();
            clients.add(alive);
            alive.send(get("/v0/entity?id=cold-alive"));
            Eventually.holds(() -> server.server.coldReads().waiting() == 12);
            for (int i = 0; i < 3; i++) { // the only selector has seen who has gone
                other.ask(get("/v0/entity?id=warm"));
            }
            slow.gate.release();
            Eventually.holds(() -> slow.begun.size() > Handler.COLD_READS_AT_ONCE);
            assertThat(slow.begun.getLast()).isEqualTo("cold-alive");
            slow.gate.release(1_000);
            assertThat(alive.read().status()).isEqualTo(404);
            assertThat(halfClosed.read().status()).isEqualTo(404);
            Eventually.holds(() -> server.server.coldReads().waiting() == 0);
            assertThat(slow.begun).noneMatch(key -> key.startsWith("cold-reset"));
        } finally {
            for (RawClient client : clients) {
                client.close();
            }
        }
    }

    /// Who ends connections looks at all of them, one after the other.
    @Test
    void aSliceOfARangeThatWaitsForTheDiskIsReadWithoutItsConnectionsLock() throws Exception {
        CountDownLatch disk = new CountDownLatch(1);
        AtomicInteger stepsAtTheDisk = new AtomicInteger();
        MemoryStore records = recordsOnADiskThatStops(disk, stepsAtTheDisk);
        try (TestServer server =
                        new TestServer(records, HttpOptions.onFreePort().withSelectors(1));
                RawClient reader = server.connect();
                Gate gate = disk::countDown) {
            CompletableFuture<RawClient.Reply> taken = asked(reader, get("/v0/entities?start=key"));
            Eventually.holds(() -> stepsAtTheDisk.get() > 0);
            Thread looker =
                    Thread.startVirtualThread(() -> server.server.connections().closeQuiet(0));
            assertThat(looker.join(Duration.ofMinutes(1)))
                    .as("looked at all connections")
                    .isTrue();
            disk.countDown();
            assertThat(taken.get(1, TimeUnit.MINUTES).body()).hasSizeGreaterThan(1_000_000);
            Eventually.holds(() -> records.metrics().openCursors() == 0);
        }
    }

    /// Nothing moves on the connection meanwhile, and that is not the client's fault.
    @Test
    void aSliceOfARangeThatWaitsForTheDiskForLongerThanTheIdleTimeoutComesAllTheSame() throws Exception {
        CountDownLatch disk = new CountDownLatch(1);
        AtomicInteger stepsAtTheDisk = new AtomicInteger();
        MemoryStore records = recordsOnADiskThatStops(disk, stepsAtTheDisk);
        HttpOptions options = HttpOptions.onFreePort().withSelectors(1).withTimeouts(1_000, 60_000);
        try (TestServer server = new TestServer(records, options);
                RawClient reader = server.connect();
                Gate gate = disk::countDown) {
            CompletableFuture<RawClient.Reply> taken = asked(reader, get("/v0/entities?start=key"));
            Eventually.holds(() -> stepsAtTheDisk.get() > 0);
            ConnectionTest.sleep(3_000);
            disk.countDown();
            assertThat(taken.get(1, TimeUnit.MINUTES).body()).hasSizeGreaterThan(1_000_000);
        }
    }

    private static CompletableFuture<RawClient.Reply> asked(RawClient client, String request) throws IOException {
        client.send(request);
        return CompletableFuture.supplyAsync(() -> {
            try {
                return client.read();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    /// A hundred records; a range waits for the disk behind twenty of them, in one of its later slices.
    private static MemoryStore recordsOnADiskThatStops(CountDownLatch disk, AtomicInteger stepsAtTheDisk) {
        MemoryStore records = new MemoryStore() {
            @Override
            public boolean readsWaitForDisk() {
                return true;
            }

            @Override
            public RangeCursor range(byte[] start, byte[] endOrNull) {
                RangeCursor cursor = super.range(start, endOrNull);
                return waitingAfter(20, cursor, disk, stepsAtTheDisk);
            }
        };
        for (int i = 0; i < 100; i++) {
            records.put("key%03d".formatted(i).getBytes(), new byte[10_000]);
        }
        return records;
    }

    private static RangeCursor waitingAfter(int steps, RangeCursor cursor, CountDownLatch disk, AtomicInteger waits) {
        int[] left = {steps};
        return new ForwardingCursor(cursor) {
            @Override
            public Step step(int recordsMax) {
                if (left[0]-- == 0) {
                    waits.incrementAndGet();
                    try {
                        disk.await();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }
                return super.step(recordsMax);
            }
        };
    }
}
