package kv.lsm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The bytes that a format page shows: lines of an offset and sixteen bytes; lines of zeros may be left out.
public final class HexDump {
    private static final int BYTES_PER_LINE = 16;
    private static final Pattern LINE = Pattern.compile("([0-9a-f]{2,})  ((?:[0-9a-f]{2} ?)+)");

    private HexDump() {}

    /// The page `service/docs/NAME`, lines.
    static List<String> page(String name) throws IOException {
        return Files.readAllLines(Path.of("docs", name));
    }

    /// The bytes shown on a page, up to the last line shown.
    public static byte[] parse(List<String> page) {
        byte[] bytes = new byte[0];
        for (String line : page) {
            Matcher matcher = LINE.matcher(line);
            if (matcher.matches()) {
                int offset = Integer.parseInt(matcher.group(1), 16);
                byte[] shown =
                        HexFormat.ofDelimiter(" ").parseHex(matcher.group(2).strip());
                bytes = Arrays.copyOf(bytes, offset + shown.length);
                System.arraycopy(shown, 0, bytes, offset, shown.length);
            }
        }
        return bytes;
    }

    static String format(byte[] bytes) {
        StringBuilder dump = new StringBuilder();
        for (int offset = 0; offset < bytes.length; offset += BYTES_PER_LINE) {
            byte[] line = Arrays.copyOfRange(bytes, offset, Math.min(offset + BYTES_PER_LINE, bytes.length));
            if (!Arrays.equals(line, new byte[line.length]) || offset + BYTES_PER_LINE >= bytes.length) {
                dump.append("%03x  %s%n"
                        .formatted(offset, HexFormat.ofDelimiter(" ").formatHex(line)));
            }
        }
        return dump.toString();
    }
}
