package kv;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/// The check is checked: a failed assertion in a thread that nobody asks must not go unseen.
class UncaughtErrorsTest {
    @Test
    void aFailedAssertionInAThreadThatNobodyAsksFailsTheTest() throws Exception {
        Thread thread = Thread.ofPlatform().name("unasked").start(() -> {
            throw new AssertionError("planted");
        });
        thread.join();
        assertThatThrownBy(() -> new UncaughtErrors().afterEach(null))
                .hasMessageContaining("unasked")
                .hasMessageContaining("planted");
        Thread virtual = Thread.ofVirtual().start(() -> {
            throw new AssertionError("planted");
        });
        virtual.join();
        assertThatThrownBy(() -> new UncaughtErrors().afterEach(null)).hasMessageContaining("planted");
    }
}
