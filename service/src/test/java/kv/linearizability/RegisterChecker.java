package kv.linearizability;

import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/// Is there an order of the operations on one key in which each takes effect at one moment between its call and
/// its return, and each read gives what the last write before it wrote?
///
/// The search of Wing and Gong with the memory of Lowe: try every operation that may come next (called before
/// the first return of those not yet placed), remember which sets of placed operations were tried with which
/// value. A read that fits is placed at once, because it changes nothing. A write without a return may be
/// placed anywhere after its call, or never.
public final class RegisterChecker {
    private record State(BitSet placed, String value) {}

    private RegisterChecker() {}

    /// @param history operations on one key, in any order; the key is absent before the first
    public static boolean isLinearizable(List<Operation> history) {
        List<Operation> ops = history.stream()
                .filter(op -> op.write() || op.returnNanos() != Operation.NEVER)
                .sorted(Comparator.comparingLong(Operation::callNanos))
                .toList();
        Set<State> seen = new HashSet<>();
        Deque<State> open = new ArrayDeque<>();
        open.push(new State(new BitSet(), null));
        while (!open.isEmpty()) {
            State state = withReads(ops, open.pop());
            if (!seen.add(state)) {
                continue;
            }
            long firstReturn = firstReturn(ops, state.placed);
            if (firstReturn == Operation.NEVER) {
                return true;
            }
            for (int i = state.placed.nextClearBit(0); i < ops.size(); i = state.placed.nextClearBit(i + 1)) {
                Operation op = ops.get(i);
                if (op.callNanos() > firstReturn) {
                    break;
                }
                if (op.write()) {
                    BitSet placed = (BitSet) state.placed.clone();
                    placed.set(i);
                    open.push(new State(placed, op.value()));
                }
            }
        }
        return false;
    }

    /// `state` with every read placed that may come next and fits.
    private static State withReads(List<Operation> ops, State state) {
        BitSet placed = (BitSet) state.placed.clone();
        boolean more = true;
        while (more) {
            more = false;
            long firstReturn = firstReturn(ops, placed);
            for (int i = placed.nextClearBit(0); i < ops.size(); i = placed.nextClearBit(i + 1)) {
                Operation op = ops.get(i);
                if (op.callNanos() > firstReturn) {
                    break;
                }
                if (!op.write() && Objects.equals(op.value(), state.value)) {
                    placed.set(i);
                    more = true;
                }
            }
        }
        return new State(placed, state.value);
    }

    private static long firstReturn(List<Operation> ops, BitSet placed) {
        long first = Operation.NEVER;
        for (int i = placed.nextClearBit(0); i < ops.size(); i = placed.nextClearBit(i + 1)) {
            if (ops.get(i).callNanos() > first) {
                break;
            }
            first = Math.min(first, ops.get(i).returnNanos());
        }
        return first;
    }
}
