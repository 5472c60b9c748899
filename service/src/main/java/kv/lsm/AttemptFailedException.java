package kv.lsm;

/// What an operator asked for has failed for a reason that may pass, as a full disk does. Nothing is lost. The store
/// tries to flush again by itself; a full compaction or a checkpoint has to be asked for again.
public final class AttemptFailedException extends StoreException {
    AttemptFailedException(String reason) {
        super(reason, null);
    }
}
