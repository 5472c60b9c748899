package kv.lsm;

import java.nio.charset.StandardCharsets;

/// Bytes as one word of printable ASCII: everything else, and the backslash, becomes `\xNN`.
public final class Escaped {
    private Escaped() {}

    public static String of(byte[] bytesOrNull) {
        return bytesOrNull == null ? "nothing" : of(bytesOrNull, Integer.MAX_VALUE);
    }

    /// Cut behind `bytesMax` bytes, and then saying how many there are.
    public static String of(byte[] bytes, int bytesMax) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < Math.min(bytes.length, bytesMax); i++) {
            if (bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '\\') {
                text.append((char) bytes[i]);
            } else {
                text.append("\\x%02x".formatted(bytes[i] & 0xff));
            }
        }
        return bytes.length > bytesMax ? text + "... (" + bytes.length + " bytes)" : text.toString();
    }

    /// The bytes that [#of(byte\[\])] shows as `text`; any other character stands for its UTF-8.
    public static byte[] parse(String text) {
        java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
        for (int i = 0; i < text.length(); ) {
            if (text.startsWith("\\x", i) && i + 4 <= text.length()) {
                bytes.write(Integer.parseInt(text.substring(i + 2, i + 4), 16));
                i += 4;
            } else {
                int end = text.offsetByCodePoints(i, 1);
                bytes.writeBytes(text.substring(i, end).getBytes(StandardCharsets.UTF_8));
                i = end;
            }
        }
        return bytes.toByteArray();
    }
}
