package kv.lsm.disk;

import java.io.IOException;
import java.nio.ByteBuffer;

/// Another file, for tests that change or count what one of its calls does.
public class ForwardingWriteFile implements WriteFile {
    private final WriteFile file;

    public ForwardingWriteFile(WriteFile file) {
        this.file = file;
    }

    @Override
    public void write(ByteBuffer buffer) throws IOException {
        file.write(buffer);
    }

    @Override
    public void beginWriting() {
        file.beginWriting();
    }

    @Override
    public void sync() throws IOException {
        file.sync();
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
