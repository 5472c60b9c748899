package kv.lsm.disk;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// The text of a file of the kernel, such as `/proc/meminfo`, read into the same room again and again: who looks
/// once a second leaves next to no garbage. Not thread-safe.
final class KernelText {
    /// What is no number, or not there.
    static final long NONE = Long.MAX_VALUE;

    private byte[] room = new byte[4096];
    private int length;

    /// Reads the file; one that cannot be read is empty.
    KernelText read(File file) {
        length = 0;
        try (FileInputStream in = new FileInputStream(file)) {
            for (int read; (read = in.read(room, length, room.length - length)) >= 0; ) {
                length += read;
                if (length == room.length) {
                    room = Arrays.copyOf(room, 2 * length);
                }
            }
        } catch (IOException e) {
            length = 0;
        }
        return this;
    }

    /// True also when the last file could not be read.
    boolean isEmpty() {
        return length == 0;
    }

    boolean is(byte[] text) {
        return Arrays.equals(room, 0, length, text, 0, text.length);
    }

    byte[] bytes() {
        return Arrays.copyOf(room, length);
    }

    /// The number that the text begins with, or [#NONE].
    long number() {
        return numberAt(0);
    }

    /// The number behind `label` on the first line that begins with it, or [#NONE].
    long numberBehind(byte[] label) {
        for (int line = 0; line < length; line = lineAfter(line)) {
            int end = line + label.length;
            if (end <= length && Arrays.equals(room, line, end, label, 0, label.length)) {
                return numberAt(end);
            }
        }
        return NONE;
    }

    /// The number in one of the fields, counted from 0 and parted by single blanks, that follow the last `)` of
    /// the text and a blank; or [#NONE].
    long numberBehindBrackets(int field) {
        int at = length - 1;
        while (at >= 0 && room[at] != ')') {
            at--;
        }
        int left = field + 1;
        for (; at >= 0 && at < length && left > 0; at++) {
            if (room[at] == ' ') {
                left--;
            }
        }
        return at < 0 || left > 0 ? NONE : numberAt(at);
    }

    private int lineAfter(int from) {
        int at = from;
        while (at < length && room[at] != '\n') {
            at++;
        }
        return at + 1;
    }

    private long numberAt(int from) {
        int at = from;
        while (at < length && (room[at] == ' ' || room[at] == '\t')) {
            at++;
        }
        int digits = at;
        long number = 0;
        for (; at < length && room[at] >= '0' && room[at] <= '9'; at++) {
            int digit = room[at] - '0';
            if (number > (Long.MAX_VALUE - digit) / 10) {
                return NONE;
            }
            number = 10 * number + digit;
        }
        return at == digits ? NONE : number;
    }

    static byte[] label(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
