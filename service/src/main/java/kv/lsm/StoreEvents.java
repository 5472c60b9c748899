package kv.lsm;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/// The store's events in a Java Flight Recording: what a slow second was spent on.
final class StoreEvents {
    private StoreEvents() {}

    @Name("kv.Flush")
    @Label("Memtable flush")
    @Category("Key-value store")
    @StackTrace(false)
    static final class Flush extends Event {
        @DataAmount
        @Label("Memtable bytes")
        long memtableBytes;

        @DataAmount
        @Label("Bytes written")
        long bytesWritten;

        @Label("Entries")
        long entries;
    }

    @Name("kv.Compaction")
    @Label("Compaction")
    @Category("Key-value store")
    @StackTrace(false)
    static final class Compaction extends Event {
        @Label("First input level")
        int fromLevel;

        @Label("Output level")
        int toLevel;

        @Label("Input tables")
        int inputTables;

        @DataAmount
        @Label("Bytes read")
        long bytesRead;

        @DataAmount
        @Label("Bytes written")
        long bytesWritten;

        @Label("Cause")
        String cause;
    }

    @Name("kv.WriteStall")
    @Label("Write stall")
    @Category("Key-value store")
    @StackTrace(false)
    static final class WriteStall extends Event {
        @Label("Cause")
        String cause;
    }

    @Name("kv.WalSync")
    @Label("Write-ahead log sync")
    @Category("Key-value store")
    @StackTrace(false)
    static final class WalSync extends Event {
        @DataAmount
        @Label("Bytes made durable")
        long bytes;
    }
}
