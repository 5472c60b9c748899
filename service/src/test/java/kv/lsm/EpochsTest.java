package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class EpochsTest {
    private final Epochs epochs = new Epochs();

    @Test
    void awaitingWithoutReadersReturnsAtOnce() {
        for (int i = 0; i < 10; i++) {
            epochs.awaitReaders();
        }
    }

    @Test
    void awaitingEndsWhenTheLastReaderThatCameBeforeHasLeft() throws InterruptedException {
        int first = epochs.enter();
        int second = epochs.enter();
        Thread writer = Thread.ofPlatform().start(epochs::awaitReaders);
        epochs.exit(first);
        assertThat(writer.join(Duration.ofMillis(50)))
                .as("returned though a reader was inside")
                .isFalse();
        epochs.exit(second);
        writer.join();
    }

    /// One thread that enters again before it leaves: its cell of a row would never be seen at zero.
    @Test
    @Timeout(300)
    void readersThatKeepComingDoNotHoldTheWriterUp() throws InterruptedException {
        AtomicBoolean stop = new AtomicBoolean();
        Thread reader = Thread.ofPlatform().start(() -> {
            int inside = epochs.enter();
            while (!stop.get()) {
                int next = epochs.enter();
                epochs.exit(inside);
                inside = next;
            }
            epochs.exit(inside);
        });
        for (int i = 0; i < 100; i++) {
            epochs.awaitReaders();
        }
        stop.set(true);
        reader.join();
    }

    /// What the store does: a reader uses what it loads, the writer destroys what it replaced.
    @Test
    void nobodyUsesWhatWasDestroyed() throws InterruptedException {
        AtomicReference<AtomicBoolean> current = new AtomicReference<>(new AtomicBoolean(true));
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicBoolean stop = new AtomicBoolean();
        Thread[] readers = new Thread[3];
        for (int i = 0; i < readers.length; i++) {
            readers[i] = Thread.ofPlatform().start(() -> {
                while (!stop.get()) {
                    int token = epochs.enter();
                    try {
                        assertThat(current.get().get()).as("alive").isTrue();
                    } catch (AssertionError e) {
                        failure.set(e);
                    } finally {
                        epochs.exit(token);
                    }
                }
            });
        }
        for (int i = 0; i < 2_000; i++) {
            AtomicBoolean previous = current.getAndSet(new AtomicBoolean(true));
            epochs.awaitReaders();
            previous.set(false);
        }
        stop.set(true);
        for (Thread reader : readers) {
            reader.join();
        }
        assertThat(failure.get()).isNull();
    }
}
