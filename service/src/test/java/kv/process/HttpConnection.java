package kv.process;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;

/// A blocking client of the service's own few requests, on one connection. Text stands for its ISO-8859-1
/// bytes.
final class HttpConnection implements AutoCloseable {
    private static final int TIMEOUT_MILLIS = 30_000;
    private final Socket socket = new Socket();
    private final InputStream in;

    record Reply(int status, String body) {
        String valueOrNull() throws IOException {
            return switch (status) {
                case 200 -> body;
                case 404 -> null;
                default -> throw new IOException("unexpected status: " + status + " " + body);
            };
        }
    }

    HttpConnection(int port) throws IOException {
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MILLIS);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        socket.setTcpNoDelay(true);
        in = new BufferedInputStream(socket.getInputStream());
    }

    Reply get(String key) throws IOException {
        return ask("GET /v0/entity?id=" + key + " HTTP/1.1\r\nHost: x\r\n\r\n");
    }

    int put(String key, String value) throws IOException {
        return ask("PUT /v0/entity?id=" + key + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + value.length() + "\r\n\r\n"
                        + value)
                .status;
    }

    int delete(String key) throws IOException {
        return ask("DELETE /v0/entity?id=" + key + " HTTP/1.1\r\nHost: x\r\n\r\n").status;
    }

    /// @param writes by key, in their order; null for a delete
    int batch(Map<String, String> writes) throws IOException {
        StringBuilder body = new StringBuilder();
        writes.forEach((key, valueOrNull) -> {
            if (valueOrNull == null) {
                body.append("delete ")
                        .append(key.length())
                        .append('\n')
                        .append(key)
                        .append('\n');
            } else {
                body.append("put ")
                        .append(key.length())
                        .append(' ')
                        .append(valueOrNull.length())
                        .append('\n');
                body.append(key).append(valueOrNull).append('\n');
            }
        });
        return ask("POST /v0/entities/batch HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n"
                        + body)
                .status;
    }

    /// The status of a request without a body.
    int post(String target) throws IOException {
        return ask("POST " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").status;
    }

    /// What `/metrics` says, by name and labels, as in `kv_http_connections{selector="0"}`.
    Map<String, Double> metrics(String prefix) throws IOException {
        Map<String, Double> metrics = new TreeMap<>();
        ask("GET /metrics?prefix=" + prefix + " HTTP/1.1\r\nHost: x\r\n\r\n")
                .body
                .lines()
                .filter(line -> !line.startsWith("#"))
                .forEach(line -> {
                    int space = line.lastIndexOf(' ');
                    metrics.put(line.substring(0, space), Double.valueOf(line.substring(space + 1)));
                });
        return metrics;
    }

    /// The entries of a range, which must come in order.
    Map<String, String> range(String start, String end) throws IOException {
        send("GET /v0/entities?start=" + start + "&end=" + end + " HTTP/1.1\r\nHost: x\r\n\r\n");
        int status = Integer.parseInt(line().substring(9, 12));
        while (!line().isEmpty()) {
            // headers: always chunked
        }
        if (status != 200) {
            throw new IOException("unexpected status of a range: " + status);
        }
        TreeMap<String, String> entries = new TreeMap<>();
        for (int length = Integer.parseInt(line(), 16); length > 0; length = Integer.parseInt(line(), 16)) {
            String entry = text(length);
            line();
            String key = entry.substring(0, entry.indexOf('\n'));
            if (!entries.isEmpty() && entries.lastKey().compareTo(key) >= 0) {
                throw new AssertionError("a range out of order: " + entries.lastKey() + ", " + key);
            }
            entries.put(key, entry.substring(entry.indexOf('\n') + 1));
        }
        line();
        return entries;
    }

    private Reply ask(String request) throws IOException {
        send(request);
        int status = Integer.parseInt(line().substring(9, 12));
        int length = 0;
        for (String header = line(); !header.isEmpty(); header = line()) {
            if (header.startsWith("Content-Length: ")) {
                length = Integer.parseInt(header.substring(16));
            }
        }
        return new Reply(status, text(length));
    }

    private void send(String bytes) throws IOException {
        socket.getOutputStream().write(bytes.getBytes(ISO_8859_1));
    }

    private String text(int length) throws IOException {
        byte[] bytes = in.readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException();
        }
        return new String(bytes, ISO_8859_1);
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException();
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
