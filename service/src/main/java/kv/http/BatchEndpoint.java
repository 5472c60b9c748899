package kv.http;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import kv.lsm.Store;
import kv.lsm.WriteBatch;

/// `POST /v0/entities/get` and `POST /v0/entities/batch`: many keys in one request. Lengths stand before what
/// they measure, so that keys and values may hold any byte.
///
/// ```
/// get      ( key bytes LF key LF )*                          answered by ( value bytes LF value LF | -1 LF )*
/// batch    ( put SP key bytes SP value bytes LF key value LF
///          | delete SP key bytes LF key LF )*                answered by the number of writes LF
/// ```
final class BatchEndpoint {
    static final int ENTRIES_MAX = 10_000;
    private static final String BYTES = "application/octet-stream";

    private final int valueBytesMax;
    private final int batchBytesMax;

    BatchEndpoint(HttpOptions options) {
        valueBytesMax = options.valueBytesMax();
        batchBytesMax = options.operations().batchBytesMax();
    }

    void get(Store store, Request request, Output out) {
        MemoryBudget.Share memory = request.memory.share();
        try {
            Values values = new Values(memory);
            Answer refusal = read(store, request, values);
            if (refusal == null) {
                out.text(values.answer(), BYTES, request);
            } else {
                out.answer(refusal, request);
            }
        } finally {
            memory.giveBack(); // a client that does not take the answer pays for what is left of it
        }
    }

    /// Why there is no answer, or null.
    private Answer read(Store store, Request request, Values values) {
        Frames frames = new Frames(request.value);
        for (int entries = 0; !frames.isAtEnd(); entries++) {
            byte[] key = frames.take(frames.number('\n'));
            frames.expect('\n');
            Answer refusal = entries == ENTRIES_MAX ? Answer.BATCH_TOO_MANY : frames.refusalOf(key);
            if (refusal != null) {
                return refusal;
            }
            byte[] value = store.get(key);
            if (value != null && values.valueBytes + value.length > batchBytesMax) {
                return Answer.BATCH_VALUES_TOO_LARGE;
            }
            if (!values.add(value)) {
                return values.canNeverBeHeld(request.memory) ? Answer.BATCH_VALUES_TOO_LARGE : Answer.MEMORY_FULL;
            }
        }
        return null;
    }

    /// What was found. It is in memory twice for a moment, as parts and as a whole, and both are paid for.
    private static final class Values {
        private static final byte[] ABSENT = Ascii.bytes("-1\n");
        private static final byte[] END = Ascii.bytes("\n");

        private final MemoryBudget.Share memory;
        private final List<byte[]> parts = new ArrayList<>();
        private int bytes;
        private long valueBytes;

        Values(MemoryBudget.Share memory) {
            this.memory = memory;
        }

        /// False when there is no memory for it.
        boolean add(byte[] valueOrNull) {
            if (valueOrNull == null) {
                append(ABSENT);
            } else {
                append(Ascii.bytes(valueOrNull.length + "\n"));
                append(valueOrNull);
                append(END);
                valueBytes += valueOrNull.length;
            }
            return memory.growTo(bytesNeeded());
        }

        /// True when trying again is of no use: it is more than there is for all requests together.
        boolean canNeverBeHeld(MemoryBudget.Account account) {
            return bytesNeeded() > account.bytesMax();
        }

        private long bytesNeeded() {
            return 2L * bytes;
        }

        private void append(byte[] part) {
            parts.add(part);
            bytes += part.length;
        }

        byte[] answer() {
            byte[] answer = new byte[bytes];
            int at = 0;
            for (byte[] part : parts) {
                System.arraycopy(part, 0, answer, at, part.length);
                at += part.length;
            }
            return answer;
        }
    }

    void write(Store store, Request request, Output out) {
        Frames frames = new Frames(request.value);
        List<WriteBatch.Write> writes = new ArrayList<>();
        while (!frames.isAtEnd()) {
            boolean isPut = frames.takeWord("put ");
            if (!isPut && !frames.takeWord("delete ")) {
                frames.isMalformed = true;
            }
            int keyBytes = frames.number(isPut ? ' ' : '\n');
            int valueBytes = isPut ? frames.number('\n') : 0;
            byte[] key = frames.take(keyBytes);
            byte[] value = isPut ? frames.take(valueBytes) : null;
            frames.expect('\n');
            Answer refusal = writes.size() == ENTRIES_MAX ? Answer.BATCH_TOO_MANY : frames.refusalOf(key);
            if (refusal == null && value != null && value.length > valueBytesMax) {
                refusal = Answer.VALUE_TOO_LARGE;
            }
            if (refusal != null) {
                out.answer(refusal, request);
                return;
            }
            writes.add(new WriteBatch.Write(key, value));
        }
        store.begin(new WriteBatch(writes)).await();
        out.text((writes.size() + "\n").getBytes(StandardCharsets.US_ASCII), "text/plain; charset=utf-8", request);
    }

    /// Takes a body apart. After the first thing that is not as expected it is malformed and at its end.
    private static final class Frames {
        private static final int DIGITS_MAX = 9;

        private final byte[] body;
        private int at;
        private boolean isMalformed;

        Frames(byte[] body) {
            this.body = body;
        }

        boolean isAtEnd() {
            return isMalformed || at == body.length;
        }

        boolean takeWord(String word) {
            byte[] wanted = Ascii.bytes(word);
            boolean there = at + wanted.length <= body.length && Ascii.equal(body, at, at + wanted.length, wanted);
            at += there ? wanted.length : 0;
            return there;
        }

        /// A number that `end` follows.
        int number(char end) {
            int number = 0;
            int start = at;
            while (at < body.length && at - start < DIGITS_MAX && body[at] >= '0' && body[at] <= '9') {
                number = 10 * number + body[at++] - '0';
            }
            isMalformed |= at == start;
            expect(end);
            return number;
        }

        void expect(char wanted) {
            if (isMalformed || at == body.length || body[at] != wanted) {
                isMalformed = true;
            } else {
                at++;
            }
        }

        byte[] take(int bytes) {
            if (isMalformed || bytes > body.length - at) {
                isMalformed = true;
                return Request.NO_BYTES;
            }
            at += bytes;
            return Arrays.copyOfRange(body, at - bytes, at);
        }

        Answer refusalOf(byte[] key) {
            if (isMalformed || key.length == 0) {
                return Answer.BATCH_MALFORMED;
            }
            return key.length > RequestKey.KEY_BYTES_MAX ? Answer.KEY_TOO_LONG : null;
        }
    }
}
