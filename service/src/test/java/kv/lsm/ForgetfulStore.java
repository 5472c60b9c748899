package kv.lsm;

/// A store with a planted fault: it forgets one write in a few hundred.
final class ForgetfulStore implements Store {
    private static final int FORGETS_EVERY = 300;

    private final Store store;
    private int puts;

    ForgetfulStore(Store store) {
        this.store = store;
    }

    @Override
    public void put(byte[] key, byte[] value) {
        if (++puts % FORGETS_EVERY != 0) {
            store.put(key, value);
        }
    }

    @Override
    public PendingWrite begin(WriteBatch batch) {
        return store.begin(batch);
    }

    @Override
    public byte[] get(byte[] key) {
        return store.get(key);
    }

    @Override
    public void delete(byte[] key) {
        store.delete(key);
    }

    @Override
    public RangeCursor range(byte[] start, byte[] endOrNull) {
        return store.range(start, endOrNull);
    }

    @Override
    public Administration administration() {
        return store.administration();
    }

    @Override
    public StoreMetrics metrics() {
        return store.metrics();
    }

    @Override
    public boolean isWritable() {
        return store.isWritable();
    }

    @Override
    public void close() {
        store.close();
    }
}
