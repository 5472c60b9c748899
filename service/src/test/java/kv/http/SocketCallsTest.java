package kv.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SocketCallsTest {
    private one.nio.net.Socket server;
    private one.nio.net.Socket accepted;
    private Socket client;
    private int descriptor;

    @BeforeEach
    void connect() throws Exception {
        assumeFalse(
                one.nio.net.Socket.USE_NATIVE_SOCKET, "one-nio's native library is loaded: nothing is called directly");
        server = PatientAcceptor.listen("127.0.0.1", 0);
        client = new Socket("127.0.0.1", server.getLocalAddress().getPort());
        accepted = server.accept();
        accepted.setBlocking(false);
        descriptor = SocketCalls.descriptorOf(accepted);
    }

    @AfterEach
    void close() throws Exception {
        if (client != null) {
            client.close();
            accepted.close();
            server.close();
        }
    }

    private int received(byte[] buffer, int from, int count) throws Exception {
        for (int tries = 0; tries < 1_000; tries++) {
            int received = SocketCalls.receive(descriptor, buffer, from, count);
            if (received != SocketCalls.NOTHING_YET) {
                return received;
            }
            Thread.sleep(1);
        }
        throw new AssertionError("nothing came");
    }

    @Test
    void connectionsOfTheTestsHaveDescriptors() {
        assertThat(SocketCalls.available()).isTrue();
        assertThat(descriptor).isNotNegative();
    }

    @Test
    void whatIsSentArrives() throws Exception {
        byte[] bytes = "answer and more".getBytes(StandardCharsets.US_ASCII);
        assertThat(SocketCalls.send(descriptor, bytes, 0, 6, false)).isEqualTo(6);
        InputStream in = client.getInputStream();
        assertThat(in.readNBytes(6)).asString(StandardCharsets.US_ASCII).isEqualTo("answer");
        assertThat(in.available()).isZero();
    }

    @Test
    void aPartIsSentAndMayWaitForTheNext() throws Exception {
        byte[] bytes = "answer and more".getBytes(StandardCharsets.US_ASCII);
        assertThat(SocketCalls.send(descriptor, bytes, 7, 4, true)).isEqualTo(4);
        assertThat(SocketCalls.send(descriptor, bytes, 11, 4, false)).isEqualTo(4);
        assertThat(client.getInputStream().readNBytes(8))
                .asString(StandardCharsets.US_ASCII)
                .isEqualTo("and more");
    }

    @Test
    void whatComesGoesWhereItIsWantedAndNoFurther() throws Exception {
        client.getOutputStream().write("request".getBytes(StandardCharsets.US_ASCII));
        byte[] buffer = new byte[12];
        Arrays.fill(buffer, (byte) '.');
        assertThat(received(buffer, 3, 4)).isEqualTo(4);
        assertThat(buffer).asString(StandardCharsets.US_ASCII).isEqualTo("...requ.....");
    }

    @Test
    void nothingThereIsNotTheEnd() throws Exception {
        byte[] buffer = new byte[10];
        assertThat(SocketCalls.receive(descriptor, buffer, 0, 10)).isEqualTo(SocketCalls.NOTHING_YET);
        client.shutdownOutput();
        assertThat(received(buffer, 0, 10)).isZero();
    }

    @Test
    void aFullSocketTakesAPartAndThenNone() {
        byte[] bytes = new byte[32 << 20];
        int sent = 0;
        int last = SocketCalls.send(descriptor, bytes, 0, bytes.length, false);
        assertThat(last).isBetween(1, bytes.length - 1);
        while (last >= 0) {
            sent += last;
            assertThat(sent).isLessThan(1 << 28);
            last = SocketCalls.send(descriptor, bytes, 0, bytes.length, false);
        }
    }

    @Test
    void aConnectionThatWasResetTakesNothing() throws Exception {
        client.setSoLinger(true, 0);
        client.close();
        byte[] bytes = new byte[10];
        for (int tries = 0; tries < 1_000 && SocketCalls.send(descriptor, bytes, 0, 10, false) >= 0; tries++) {
            Thread.sleep(1);
        }
        assertThat(SocketCalls.send(descriptor, bytes, 0, 10, false)).isNegative();
    }

    @Test
    void aConnectionThatWasResetIsNotAtItsEnd() throws Exception {
        client.setSoLinger(true, 0);
        client.close();
        assertThatThrownBy(() -> received(new byte[10], 0, 10))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("recv failed: errno=");
    }
}
