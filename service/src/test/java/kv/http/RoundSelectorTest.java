package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static kv.http.RawClient.delete;
import static kv.http.RawClient.get;
import static kv.http.RawClient.put;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.stream.Stream;
import kv.Eventually;
import kv.lsm.PendingWrite;
import kv.lsm.StallCause;
import kv.lsm.WriteStalledException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Requests that come while the selector is busy are answered in rounds, and nobody but the store notices.
class RoundSelectorTest {
    private static final int CLIENTS = 2 * RoundSelector.ROUND_MAX + 3;

    /// Holds the selector in a GET of `gate`, and takes down what is fetched before what.
    private static final class WatchedStore extends MemoryStore {
        final Semaphore atGate = new Semaphore(0);
        final Semaphore gate = new Semaphore(0);
        final List<Integer> fetchedAtOnce = new ArrayList<>();
        final Set<String> fetched = ConcurrentHashMap.newKeySet();
        final Set<String> askedFirst = ConcurrentHashMap.newKeySet();
        final StringBuffer steps = new StringBuffer();
        volatile Error fetchError;
        volatile boolean writesWait;
        volatile boolean isStalled;

        @Override
        public PendingWrite tryBegin(byte[] key, byte[] valueOrNull) {
            return isStalled && name(key).startsWith("waiting") ? null : super.tryBegin(key, valueOrNull);
        }

        @Override
        public byte[] get(byte[] key) {
            asked(key);
            steps.append('g');
            if (name(key).equals("gate")) {
                atGate.release();
                gate.acquireUninterruptibly();
            }
            return super.get(key);
        }

        @Override
        public void put(byte[] key, byte[] value) {
            asked(key);
            steps.append('w');
            super.put(key, value);
        }

        @Override
        public boolean writesWaitForDisk() {
            return writesWait;
        }

        @Override
        public PendingWrite begin(byte[] key, byte[] valueOrNull) {
            asked(key);
            steps.append('b');
            if (name(key).startsWith("stalled")) {
                throw new WriteStalledException(StallCause.FROZEN_MEMTABLES, Duration.ZERO, null);
            }
            return () -> {
                steps.append('a');
                if (name(key).startsWith("failing")) {
                    throw new IllegalStateException("planted");
                }
                if (valueOrNull == null) {
                    super.delete(key);
                } else {
                    super.put(key, valueOrNull);
                }
            };
        }

        @Override
        public void delete(byte[] key) {
            asked(key);
            super.delete(key);
        }

        @Override
        public void prefetchGets(byte[][] keys, int count) {
            fetch(keys, count);
        }

        @Override
        public void prefetchWrites(byte[][] keys, int count) {
            fetch(keys, count);
        }

        private void fetch(byte[][] keys, int count) {
            fetchedAtOnce.add(count);
            Arrays.stream(keys, 0, count).map(WatchedStore::name).forEach(fetched::add);
            if (fetchError != null) {
                throw fetchError;
            }
        }

        private void asked(byte[] key) {
            if (!fetched.contains(name(key))) {
                askedFirst.add(name(key));
            }
        }

        private static String name(byte[] key) {
            return new String(key, ISO_8859_1);
        }
    }

    private WatchedStore store = new WatchedStore();
    private TestServer server;
    private final List<RawClient> clients = new ArrayList<>();
    private RawClient gatekeeper;

    @BeforeEach
    void connectAndCloseTheGate() throws IOException {
        assumeFalse(one.nio.net.Socket.USE_NATIVE_SOCKET, "one-nio's native library is loaded: there are no rounds");
        connect(HttpOptions.onFreePort());
        closeGate();
        store.askedFirst.clear();
    }

    private void connect(HttpOptions options) throws IOException {
        server = new TestServer(store, options.withSelectors(1));
        gatekeeper = server.connect();
        for (int i = 0; i < CLIENTS; i++) {
            clients.add(server.connect());
            assertThat(clients.get(i)
                            .ask(put("/v0/entity?id=old" + i, "old" + i))
                            .status())
                    .isEqualTo(201);
        }
    }

    private void connectAnewWithTimeouts(int idleMillis, int requestMillis) throws IOException {
        openGate();
        disconnect();
        store = new WatchedStore();
        clients.clear();
        connect(HttpOptions.onFreePort().withTimeouts(idleMillis, requestMillis));
    }

    @AfterEach
    void disconnect() throws IOException {
        store.gate.release();
        for (RawClient client : clients) {
            client.close();
        }
        if (server != null) {
            gatekeeper.close();
            server.close();
        }
    }

    private void closeGate() throws IOException {
        gatekeeper.send(get("/v0/entity?id=gate"));
        store.atGate.acquireUninterruptibly();
    }

    private void openGate() throws IOException {
        store.gate.release();
        assertThat(gatekeeper.read().status()).isEqualTo(404);
    }

    private String answer(int client) throws IOException {
        RawClient.Reply reply = clients.get(client).read();
        return reply.status() + " " + reply.text();
    }

    @Test
    void getsThatCameMeanwhileAreFetchedTogetherAtMostARoundAtOnceAndEachClientGetsItsOwn() throws IOException {
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(get("/v0/entity?id=old" + i));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo("200 old" + i);
        }
        assertThat(store.fetchedAtOnce)
                .contains(RoundSelector.ROUND_MAX)
                .allMatch(count -> count <= RoundSelector.ROUND_MAX);
    }

    @Test
    void writesAndGetsOfOneRoundAreFetchedBeforeTheyAreAnswered() throws IOException {
        for (int i = 0; i < CLIENTS; i++) {
            String id = "/v0/entity?id=" + (i % 3 == 2 ? "old" : "new") + i;
            clients.get(i).send(i % 3 == 0 ? put(id, "new" + i) : i % 3 == 1 ? get(id) : delete(id));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo(i % 3 == 0 ? "201 " : i % 3 == 1 ? "404 " : "202 ");
        }
        assertThat(Stream.of("new0", "new1", "old2"))
                .allMatch(store.fetched::contains)
                .noneMatch(store.askedFirst::contains);
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(get("/v0/entity?id=" + (i % 3 == 2 ? "old" : "new") + i));
        }
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo(i % 3 == 0 ? "200 new" + i : "404 ");
        }
    }

    @Test
    void writesOfARoundThatWaitForTheDiskWaitTogetherAndGetsDoNotWaitForThem() throws IOException {
        store.writesWait = true;
        store.steps.setLength(0);
        for (int i = 0; i < CLIENTS; i++) {
            String id = "/v0/entity?id=" + (i % 2 == 0 ? "new" : "old") + i;
            clients.get(i).send(i % 2 == 1 ? get(id) : i % 6 == 0 ? delete(id) : put(id, "new" + i));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo(i % 2 == 1 ? "200 old" + i : i % 6 == 0 ? "202 " : "201 ");
        }
        assertThat(store.steps.toString())
                .as("b begins, g is a get, a awaits, w writes alone")
                .matches("(b{2,64}g*a{2,64}|g|w)+")
                .contains("bbbbbb", "bg", "ga");
    }

    @Test
    void ofWritesOfARoundThoseThatCannotBeginOrFailInTheEndAreRefusedAndNoOthers() throws IOException {
        store.writesWait = true;
        for (int i = 0; i < CLIENTS; i++) {
            String name = i % 3 == 0 ? "stalled" : i % 3 == 1 ? "failing" : "new";
            clients.get(i).send(put("/v0/entity?id=" + name + i, "new" + i));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(clients.get(i).read().status()).isEqualTo(i % 3 == 0 ? 503 : i % 3 == 1 ? 500 : 201);
        }
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(clients.get(i).ask(get("/v0/entity?id=new" + i)).status())
                    .isEqualTo(i % 3 == 2 ? 200 : 404);
        }
    }

    @Test
    void writesOfARoundThatWouldWaitWithoutMemoryLeftAreRefusedToTheirOwnClientsAndNoOthers() throws IOException {
        store.isStalled = true;
        for (int i = 0; i < CLIENTS; i++) {
            String name = i % 3 == 0 ? "waiting" : "new";
            clients.get(i).send(put("/v0/entity?id=" + name + i, "new" + i));
        }
        MemoryBudget budget = server.server.budget();
        MemoryBudget.Share ofOthers = budget.account().share();
        assertThat(ofOthers.growTo(budget.bytesMax() - budget.bytesTaken())).isTrue();
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(clients.get(i).read().status()).as("client %d", i).isEqualTo(i % 3 == 0 ? 503 : 201);
        }
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(get("/v0/entity?id=new" + i));
            assertThat(answer(i)).isEqualTo(i % 3 == 0 ? "404 " : "200 new" + i);
        }
        ofOthers.giveBack();
        assertThat(budget.bytesTaken()).isZero();
    }

    @Test
    void pipelinedRequestsKeepTheirOrderBesideARound() throws IOException {
        for (int i = 0; i < CLIENTS; i++) {
            String id = "/v0/entity?id=old" + i;
            clients.get(i).send(i % 2 == 0 ? get(id) : put(id, "newer") + get(id) + delete(id) + get(id));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            if (i % 2 == 0) {
                assertThat(answer(i)).isEqualTo("200 old" + i);
            } else {
                assertThat(List.of(answer(i), answer(i), answer(i), answer(i)))
                        .containsExactly("201 ", "200 newer", "202 ", "404 ");
            }
        }
    }

    @Test
    void aPartOfTheNextRequestBehindOneIsNotLost() throws IOException {
        String next = put("/v0/entity?id=next", "body");
        clients.get(0).send(get("/v0/entity?id=old0") + next.substring(0, 20));
        clients.get(1).send(get("/v0/entity?id=old1"));
        openGate();
        assertThat(answer(1)).isEqualTo("200 old1");
        assertThat(answer(0)).isEqualTo("200 old0");
        clients.get(0).send(next.substring(20));
        assertThat(answer(0)).isEqualTo("201 ");
    }

    @Test
    void aConnectionThatAsksToBeClosedIsClosedAfterItsAnswer() throws IOException {
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send("GET /v0/entity?id=old" + i + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo("200 old" + i);
            assertThat(clients.get(i).isClosedByServer()).isTrue();
        }
        Eventually.holds(() -> server.server.connections().size() == 1);
    }

    @Test
    void clientsThatGoAwayBeforeTheirRoundIsAnsweredDoTheOthersNoHarm() throws IOException {
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(i % 3 == 0 ? put("/v0/entity?id=left" + i, "left" + i) : get("/v0/entity?id=old" + i));
            if (i % 2 == 0) {
                clients.get(i).close();
            }
        }
        openGate();
        for (int i = 1; i < CLIENTS; i += 2) {
            assertThat(answer(i)).isEqualTo(i % 3 == 0 ? "201 " : "200 old" + i);
        }
        Eventually.holds(() -> server.server.connections().size() == 1 + CLIENTS / 2);
        Eventually.holds(() -> server.server.budget().bytesTaken() == 0);
    }

    @Test
    void aStoreThatCannotFetchAnswersAllTheSame() throws IOException {
        store.fetchError = new StackOverflowError("planted");
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(get("/v0/entity?id=old" + i));
        }
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo("200 old" + i);
        }
        assertThat(store.fetchedAtOnce).isNotEmpty();
    }

    @Test
    void aClientWhoseRequestCannotBeReadForLongerThanTheIdleTimeoutIsNotTakenForSilent() throws IOException {
        connectAnewWithTimeouts(2_000, 60_000);
        closeGate();
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(get("/v0/entity?id=old" + i));
        }
        ConnectionTest.sleep(4_500);
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo("200 old" + i);
        }
    }

    @Test
    void aRequestWhoseRestCannotBeReadForLongerThanTheRequestTimeoutIsNotGivenUp() throws IOException {
        connectAnewWithTimeouts(60_000, 2_000);
        String whole = put("/v0/entity?id=half", "body");
        clients.get(0).send(whole.substring(0, 20));
        // read after the half, or together with it
        assertThat(clients.get(1).ask(get("/v0/entity?id=old1")).status()).isEqualTo(200);
        closeGate();
        clients.get(0).send(whole.substring(20));
        ConnectionTest.sleep(4_500);
        openGate();
        assertThat(answer(0)).isEqualTo("201 ");
    }

    /// Its time stands still while the selector is held up, and goes on afterwards.
    @Test
    void silentClientsAreClosedThoughRequestsHoldTheirSelectorUpMoreOftenThanTheIdleTimeout() throws IOException {
        connectAnewWithTimeouts(2_000, 60_000);
        for (int i = 0; i < 200 && server.server.connections().size() > 1; i++) {
            closeGate();
            ConnectionTest.sleep(150);
            openGate();
            ConnectionTest.sleep(100);
        }
        assertThat(server.server.connections().size())
                .as("connections, the gatekeeper's included")
                .isEqualTo(1);
    }

    /// Connections are judged by a clock that stood still meanwhile: a move noted by another one would lie ahead of
    /// it by as long.
    @Test
    void clientsThatFallSilentAfterTheirSelectorWasHeldUpAreClosedNoLaterForIt() throws IOException {
        connectAnewWithTimeouts(2_000, 60_000);
        closeGate();
        ConnectionTest.sleep(9_000);
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(clients.get(i).ask(get("/v0/entity?id=old" + i)).status())
                    .isEqualTo(200);
        }
        for (int i = 0; i < 80 && server.server.connections().size() > 1; i++) {
            ConnectionTest.sleep(100);
        }
        assertThat(server.server.connections().size())
                .as("connections but the gatekeeper's")
                .isLessThanOrEqualTo(1);
    }

    @Test
    void aStopThatBeganWhileARoundWasAnsweredIsToldInItsLaterAnswersAndInThoseOfWhatWasSentMeanwhile()
            throws Exception {
        clients.get(0).send(get("/v0/entity?id=gate"));
        clients.get(1).send(get("/v0/entity?id=gate"));
        openGate();
        store.atGate.acquireUninterruptibly(); // one of the two, both of which were read
        Thread stop = Thread.ofPlatform().start(server.server::stopInOrder);
        Eventually.holds(server.server.router()::isStopping);
        clients.get(2).send(get("/v0/entity?id=old2"));
        ConnectionTest.sleep(1_000);
        store.gate.release(2);
        assertThat(Stream.of(clients.get(0).read(), clients.get(1).read()).filter(RawClient.Reply::closes))
                .isNotEmpty();
        RawClient.Reply meanwhile = clients.get(2).read();
        assertThat(meanwhile.text()).isEqualTo("old2");
        assertThat(meanwhile.closes()).isTrue();
        stop.join();
    }

    @Test
    void aStopAnswersWhatWaitsInARound() throws Exception {
        for (int i = 0; i < CLIENTS; i++) {
            clients.get(i).send(put("/v0/entity?id=last" + i, "last" + i));
        }
        Thread stop = Thread.ofPlatform().start(server.server::stopInOrder);
        Eventually.holds(server.server.router()::isStopping);
        openGate();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(answer(i)).isEqualTo("201 ");
            assertThat(clients.get(i).isClosedByServer()).isTrue();
        }
        stop.join();
        for (int i = 0; i < CLIENTS; i++) {
            assertThat(store.get(("last" + i).getBytes(ISO_8859_1))).isEqualTo(("last" + i).getBytes(ISO_8859_1));
        }
    }
}
