package kv.lsm.disk;

import java.io.IOException;

/// Another file, for tests that change what one or two of its calls do.
public class ForwardingReadFile implements ReadFile {
    private final ReadFile file;

    public ForwardingReadFile(ReadFile file) {
        this.file = file;
    }

    @Override
    public long bytes() {
        return file.bytes();
    }

    @Override
    public long map() throws IOException {
        return file.map();
    }

    @Override
    public void read(long position, long address, int bytes) throws IOException {
        file.read(position, address, bytes);
    }

    @Override
    public boolean isCached(long position, long bytes) {
        return file.isCached(position, bytes);
    }

    @Override
    public void expectRandomReads(long bytes, boolean random) {
        file.expectRandomReads(bytes, random);
    }

    @Override
    public void willBeDeleted() {
        file.willBeDeleted();
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
