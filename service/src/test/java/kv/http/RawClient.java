package kv.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// A client of bytes: sends exactly what a test says and reads answers strictly. Strings stand for their
/// ISO-8859-1 bytes.
final class RawClient implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 20_000;

    /// An answer that does not come fails the test, also where the end of the connection is expected: an
    /// [IOException] would pass for it.
    private static final class Punctual extends FilterInputStream {
        Punctual(InputStream in) {
            super(in);
        }

        @Override
        public int read(byte[] bytes, int from, int count) throws IOException {
            try {
                return super.read(bytes, from, count);
            } catch (SocketTimeoutException e) {
                throw new AssertionError("neither an answer nor the end came in " + TIMEOUT_MILLIS + " ms", e);
            }
        }
    }

    private final Socket socket = new Socket();
    private final InputStream in;

    /// @param headers by lower-case name
    record Reply(int status, Map<String, String> headers, byte[] body) {
        String text() {
            return new String(body, ISO_8859_1);
        }

        boolean closes() {
            return "close".equals(headers.get("connection"));
        }
    }

    RawClient(int port) throws IOException {
        this(port, 0);
    }

    /// @param receiveBytes size of the receive buffer, 0 for the system's
    RawClient(int port, int receiveBytes) throws IOException {
        if (receiveBytes > 0) {
            socket.setReceiveBufferSize(receiveBytes);
        }
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MILLIS);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        in = new BufferedInputStream(new Punctual(socket.getInputStream()));
    }

    RawClient send(String bytes) throws IOException {
        return send(bytes.getBytes(ISO_8859_1));
    }

    RawClient send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        return this;
    }

    Reply ask(String bytes) throws IOException {
        return send(bytes).read();
    }

    static String put(String target, String body) {
        return "PUT " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
    }

    static String get(String target) {
        return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }

    static String delete(String target) {
        return "DELETE " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }

    /// One answer with its body, by length, by chunks or up to the end.
    Reply read() throws IOException {
        return read(true);
    }

    /// As [#read], or null when the server ends the connection before another answer.
    Reply readOrEnd() throws IOException {
        in.mark(1);
        if (in.read() < 0) {
            return null;
        }
        in.reset();
        return read(true);
    }

    /// One answer to HEAD: no body follows.
    Reply readHead() throws IOException {
        return read(false);
    }

    private Reply read(boolean withBody) throws IOException {
        String line = line();
        if (!line.startsWith("HTTP/1.1 ")) {
            throw new IOException("not a status line: " + line);
        }
        int status = Integer.parseInt(line.substring(9, 12));
        Map<String, String> headers = new TreeMap<>();
        for (String header = line(); !header.isEmpty(); header = line()) {
            int colon = header.indexOf(':');
            if (headers.put(
                            header.substring(0, colon).toLowerCase(),
                            header.substring(colon + 1).strip())
                    != null) {
                throw new IOException("repeated header: " + header);
            }
        }
        if (!withBody || status == 100) {
            return new Reply(status, headers, new byte[0]);
        }
        byte[] body;
        if (headers.containsKey("content-length")) {
            body = exactly(Integer.parseInt(headers.get("content-length")));
        } else if ("chunked".equals(headers.get("transfer-encoding"))) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (byte[] chunk : chunks()) {
                all.write(chunk);
            }
            body = all.toByteArray();
        } else {
            body = in.readAllBytes();
        }
        return new Reply(status, headers, body);
    }

    /// The chunks of a body whose head was read.
    List<byte[]> chunks() throws IOException {
        List<byte[]> chunks = new ArrayList<>();
        for (byte[] chunk = chunk(); chunk.length > 0; chunk = chunk()) {
            chunks.add(chunk);
        }
        return chunks;
    }

    /// The next chunk; empty for the last one.
    byte[] chunk() throws IOException {
        byte[] chunk = exactly(Integer.parseInt(line(), 16));
        if (!line().isEmpty()) {
            throw new IOException("a chunk is not ended by CRLF");
        }
        return chunk;
    }

    String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = byteOrEnd(); c != '\r'; c = byteOrEnd()) {
            line.append((char) c);
        }
        if (byteOrEnd() != '\n') {
            throw new IOException("CR without LF after: " + line);
        }
        return line.toString();
    }

    private int byteOrEnd() throws IOException {
        int c = in.read();
        if (c < 0) {
            throw new EOFException("the server closed the connection");
        }
        return c;
    }

    private byte[] exactly(int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        if (bytes.length < count) {
            throw new EOFException("the server closed the connection within a body");
        }
        return bytes;
    }

    /// True when the server ends the connection without another byte.
    boolean isClosedByServer() throws IOException {
        return in.read() < 0;
    }

    void endOfInput() throws IOException {
        socket.shutdownOutput();
    }

    /// Ends the connection so that the server is told at once.
    void reset() throws IOException {
        socket.setSoLinger(true, 0);
        socket.close();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
