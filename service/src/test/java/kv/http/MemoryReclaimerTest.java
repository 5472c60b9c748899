package kv.http;

import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import kv.Eventually;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Who suffers when the memory for unfinished requests and unread answers runs short: who keeps most of it for longest.
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

    private final class Holder implements MemoryReclaimer.Holder {
        final MemoryBudget.Share memory;
        final long bytes;
        final long wasted;
        boolean cut;

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
                new Holder(budget, 300, 0), new Holder(budget, 170, 70), new Holder(budget, 240, 90), new Holder(budget, 200, 80),
                new Holder(budget, 70, 999));
        MemoryReclaimer reclaimer = new MemoryReclaimer(budget, holders);
        reclaimer.relieve(0);
        assertThat(holders.stream().map(holder -> holder.cut)).containsExactly(false, false, true, false, false);
        assertThat(reclaimer.cut()).isEqualTo(1);
        reclaimer.relieve(0);
        assertThat(reclaimer.cut()).as("a quarter is free").isEqualTo(1);
        new Holder(budget, 200, 0);
        reclaimer.relieve(0);
        assertThat(holders.stream().map(holder -> holder.cut)).as("the last one holds too little")
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
        for (; server.server.reclaimer().cut() == 0 && greedy < 200; greedy++) {
            connect().send(get("/v0/entity?id=a"));
            Thread.sleep(10); // for the answer to reach the socket
        }
        assertThat(greedy).isLessThan(200);
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
        int slow = 0;
        for (; server.server.reclaimer().cut() == 0 && slow < 200; slow++) {
            connect().send("PUT /v0/entity?id=a HTTP/1.1\r\nHost: x\r\nContent-Length: " + LARGE + "\r\n\r\n").send(half);
            Thread.sleep(10);
        }
        assertThat(slow).isLessThan(200);
        Eventually.holds(() -> !server.server.budget().isNearlyFull());
        for (int i = 0; i < 3; i++) {
            assertThat(server.ask(put("/v0/entity?id=b", "v".repeat(LARGE / 4))).status()).isEqualTo(201);
        }
        assertThat(server.server.reclaimer().cut()).isPositive();
    }
}
