package kv.lsm;

import java.util.List;
import kv.lsm.memory.EntryIterator;
import kv.lsm.memory.Keys;

/// Several sources as one, each key once: of a key that several have, the entry of the first source in the
/// list, which is the newest. Tombstones are entries. What is [EntryIterator#INVISIBLE] comes too, and hides
/// nothing of an older source.
///
/// The sources stand in an array ordered by their current key, the smallest first. Few sources are usual, and
/// after a step the same source often stays first, so moving it to its place costs one or two comparisons of
/// eight-byte key prefixes.
final class MergingIterator implements EntryIterator {
    private static final class Source {
        final EntryIterator entries;
        final int age;
        long prefix;

        Source(EntryIterator entries, int age) {
            this.entries = entries;
            this.age = age;
        }

        boolean advance() {
            if (!entries.next()) {
                return false;
            }
            prefix = Keys.prefix(entries.keyAddress(), entries.keyLength(), 0);
            return true;
        }

        int compareKey(Source other) {
            return prefix != other.prefix
                    ? Long.compareUnsigned(prefix, other.prefix)
                    : Keys.compare(
                            entries.keyAddress(),
                            entries.keyLength(),
                            other.entries.keyAddress(),
                            other.entries.keyLength());
        }

        boolean isBefore(Source other) {
            int order = compareKey(other);
            return order < 0 || order == 0 && age < other.age;
        }
    }

    private final List<EntryIterator> all;
    private final Source[] sources;
    private int count;
    private boolean started;

    /// @param newestFirst closed with this iterator
    MergingIterator(List<EntryIterator> newestFirst) {
        all = List.copyOf(newestFirst);
        sources = new Source[all.size()];
    }

    @Override
    public boolean next() {
        if (!started) {
            start();
            return count > 0;
        }
        if (count == 0) {
            return false;
        }
        while (count > 1 && sources[1].compareKey(sources[0]) == 0 && valueLength() != INVISIBLE) {
            advance(1); // an older entry of the same key
        }
        advance(0);
        return count > 0;
    }

    private void start() {
        started = true;
        for (int i = 0; i < sources.length; i++) {
            Source source = new Source(all.get(i), i);
            if (source.advance()) {
                place(source, count++);
            }
        }
    }

    /// Moves the source at `index` on and to its new place.
    private void advance(int index) {
        Source source = sources[index];
        boolean more = source.advance();
        int at = index;
        while (at + 1 < count && (!more || sources[at + 1].isBefore(source))) {
            sources[at] = sources[at + 1];
            at++;
        }
        if (more) {
            sources[at] = source;
        } else {
            sources[--count] = null;
        }
    }

    /// Puts `source` into the first `end` sources.
    private void place(Source source, int end) {
        int at = end;
        while (at > 0 && source.isBefore(sources[at - 1])) {
            sources[at] = sources[at - 1];
            at--;
        }
        sources[at] = source;
    }

    @Override
    public long keyAddress() {
        return sources[0].entries.keyAddress();
    }

    @Override
    public int keyLength() {
        return sources[0].entries.keyLength();
    }

    @Override
    public long valueAddress() {
        return sources[0].entries.valueAddress();
    }

    @Override
    public int valueLength() {
        return sources[0].entries.valueLength();
    }

    @Override
    public long bytesHeld() {
        long bytes = 0;
        for (EntryIterator source : all) {
            bytes += source.bytesHeld();
        }
        return bytes;
    }

    @Override
    public void letGo() {
        all.forEach(EntryIterator::letGo);
    }

    @Override
    public void close() {
        all.forEach(EntryIterator::close);
    }
}
