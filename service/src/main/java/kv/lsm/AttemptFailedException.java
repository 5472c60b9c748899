package kv.lsm;

/// What an operator asked for has failed for a reason that may pass, as a full disk does. Nothing is lost, and
/// the store tries again by itself.
public final class AttemptFailedException extends StoreException {
    AttemptFailedException(String reason) {
        super(reason, null);
    }
}
