package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import kv.Eventually;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Who suffers when the memory for unfinished requests and unread answers runs short: who keeps most of it for
/// longest.
class MemoryReclaimerTest {
    /// More than the sockets on both sides take.
    private static final int LARGE = 8 << 20;

    private final List<RawClient> clients = new ArrayList<>();
    private TestServer server;

    @AfterEach
    void closeAll() throws IOException {
        for (RawClient client : clients) {
            client.close();
        }
        if (server != null) {
            server.close();
        }
    }

    private static class Holder implements MemoryReclaimer.Holder {
        final MemoryBudget.Share memory;
        final long bytes;
        final long wasted;
        volatile boolean cut;

        Holder(MemoryBudget budget, long bytes, long wasted) {
            memory = budget.account().share();
            this.bytes = bytes;
            this.wasted = wasted;
            assertThat(memory.growTo(bytes)).isTrue();
        }

        @Override
        public long bytesHeld() {
            return bytes;
        }

        @Override
        public long wasted(long nowMillis) {
            return wasted;
        }

        @Override
        public boolean cutIfWasteful(long nowMillis) {
            cut = true;
            memory.giveBack();
            return true;
        }
    }

    @Test
    void thoseThatWasteMostAreCutUntilAQuarterIsFree() {
        MemoryBudget budget = new MemoryBudget(1_000);
        List<Holder> holders = List.of(
                new Holder(budget, 300, 0),
                new Holder(budget, 170, 70),
                new Holder(budget, 240, 90),
                new Holder(budget, 200, 80),
                new Holder(budget, 70, 999));
        MemoryReclaimer reclaimer = new MemoryReclaimer(budget, holders);
        reclaimer.relieve(0);
        assertThat(holders.stream().map(holder -> holder.cut)).containsExactly(false, false, true, false, false);
        assertThat(reclaimer.cut()).isEqualTo(1);
        reclaimer.relieve(0);
        assertThat(reclaimer.cut()).as("a quarter is free").isEqualTo(1);
        new Holder(budget, 200, 0);
        reclaimer.relieve(0);
        assertThat(holders.stream().map(holder -> holder.cut))
                .as("the last one holds too little")
                .containsExactly(false, false, true, true, false);
    }

    @Test
    void whereNobodyWastesAnythingNobodyIsCutAndNoMoreIsGiven() {
        MemoryBudget budget = new MemoryBudget(1_000);
        Holder holder = new Holder(budget, 1_000, 0);
        new MemoryReclaimer(budget, List.of(holder)).relieve(0);
        assertThat(holder.cut).isFalse();
        assertThat(budget.account().share().growTo(1)).isFalse();
    }

    private RawClient connect() throws IOException {
        RawClient client = new RawClient(server.server.port(), 4_096);
        clients.add(client);
        return client;
    }

    private void serve(MemoryStore store) throws IOException {
        server = new TestServer(store, HttpOptions.onFreePort().withLimits(LARGE, 1_000));
    }

    /// A client that holds less for as long, and others that read, come to no harm.
    @Test
    void whoReadsItsAnswersGetsThemHoweverManyOthersDoNot() throws Exception {
        MemoryStore store = new MemoryStore();
        store.put(new byte[] {'a'}, new byte[LARGE]);
        serve(store);
        RawClient small = connect().send("PUT /v0/entity?id=b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nha");
        int greedy = 0;
        for (; !server.server.budget().isNearlyFull() && greedy < 200; greedy++) {
            connect().send(get("/v0/entity?id=a"));
            Thread.sleep(10); // for the answer to reach the socket
        }
        assertThat(greedy).isLessThan(200);
        Eventually.holds(() -> server.server.reclaimer().cut() > 0);
        for (int i = 0; i < 6; i++) {
            connect().send(get("/v0/entity?id=a")); // memory stays scarce
            Eventually.holds(() -> !server.server.budget().isNearlyFull()); // however busy this machine is
            try (RawClient reader = server.connect()) {
                RawClient.Reply reply = reader.ask(get("/v0/entity?id=a"));
                assertThat(reply.status()).isEqualTo(200);
                assertThat(reply.body()).hasSize(LARGE);
            }
        }
        Eventually.holds(() -> !server.server.budget().isNearlyFull());
        assertThat(server.server.reclaimer().cut()).isPositive();
        assertThat(small.ask("lf").status()).isEqualTo(201);
    }

    @Test
    void whoSendsItsRequestIsServedHoweverManyOthersStopHalfWay() throws Exception {
        serve(new MemoryStore());
        byte[] half = new byte[LARGE / 2];
        holdMemoryWithHalfUploads(half);
        Eventually.holds(() -> server.server.reclaimer().cut() > 0);
        Eventually.holds(() -> !server.server.budget().isNearlyFull());
        for (int i = 0; i < 3; i++) {
            assertThat(server.ask(put("/v0/entity?id=b", "v".repeat(LARGE / 4))).status())
                    .isEqualTo(201);
        }
        assertThat(server.server.reclaimer().cut()).isPositive();
    }

    private void holdMemoryWithHalfUploads(byte[] half) throws Exception {
        int slow = 0;
        for (; !server.server.budget().isNearlyFull() && slow < 200; slow++) {
            connect()
                    .send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + LARGE + "\r\n\r\n")
                    .send(half);
            Thread.sleep(10);
        }
        assertThat(slow).isLessThan(200);
    }

    /// Both upload for twice the time after which silence is waste, while memory stays scarce, and both hold
    /// more than any other: one sends a stride in a tenth of that time, one a byte.
    @Test
    void anUploadThatGoesOnIsNotCutAndOneThatDripsIs() throws Exception {
        serve(new MemoryStore());
        int strides = 20;
        int begun = LARGE - strides * Timeouts.STRIDE_BYTES;
        holdMemoryWithHalfUploads(new byte[LARGE / 2]); // which may take as long as silence that is waste
        RawClient steady = connect()
                .send("PUT /v0/entity?id=s HTTP/1.1\r\nHost: x\r\nContent-Length: " + LARGE + "\r\n\r\n")
                .send(new byte[begun]);
        RawClient dripping = connect()
                .send("PUT /v0/entity?id=d HTTP/1.1\r\nHost: x\r\nContent-Length: " + LARGE + "\r\n\r\n")
                .send(new byte[begun]);
        for (int i = 0; i < strides; i++) {
            if (!server.server.budget().isNearlyFull()) {
                holdMemoryWithHalfUploads(new byte[LARGE / 2]);
            }
            steady.send(new byte[Timeouts.STRIDE_BYTES]);
            try {
                dripping.send(new byte[1]);
            } catch (IOException e) {
                // cut, as it should be
            }
            Thread.sleep(MemoryReclaimer.WASTED_MILLIS_MIN / 10);
        }
        assertThat(steady.read().status()).isEqualTo(201);
        assertThatThrownBy(dripping::read).isInstanceOf(IOException.class);
    }

    /// The first one's memory is asked for in vain, the second one cannot be cut.
    @Test
    void aConnectionThatCannotBeJudgedOrCutKeepsNoOtherFromBeingCutAndARoundThatFailsIsNotTheLast() {
        MemoryBudget budget = new MemoryBudget(1_000);
        Holder unjudged = new Holder(budget, 200, 90) {
            @Override
            public long wasted(long nowMillis) {
                throw new IllegalStateException("planted");
            }
        };
        Holder uncut = new Holder(budget, 200, 80) {
            @Override
            public boolean cutIfWasteful(long nowMillis) {
                throw new IllegalStateException("planted");
            }
        };
        Holder wasteful = new Holder(budget, 400, 70);
        AtomicInteger rounds = new AtomicInteger();
        Iterable<Holder> holders = () -> {
            if (rounds.getAndIncrement() == 0) {
                throw new StackOverflowError("planted");
            }
            return List.of(unjudged, uncut, wasteful).iterator();
        };
        try (MemoryReclaimer reclaimer = new MemoryReclaimer(budget, holders)) {
            reclaimer.start();
            Eventually.holds(() -> reclaimer.cut() == 1);
        }
        assertThat(wasteful.cut).isTrue();
    }

    @Test
    void aConnectionThatCannotBeSweptKeepsNoOtherFromBeingSwept() {
        List<Long> swept = new ArrayList<>();
        Connections.Sweepable broken = now -> {
            throw new IllegalStateException("planted");
        };
        Connections.sweep(List.of(broken, swept::add, broken, swept::add), 7);
        assertThat(swept).containsExactly(7L, 7L);
    }
}
