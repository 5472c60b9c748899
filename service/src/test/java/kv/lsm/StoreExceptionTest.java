package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.FileSystemException;
import org.junit.jupiter.api.Test;

class StoreExceptionTest {
    @Test
    void whereTooManyFilesAreOpenTheReasonSaysWhatSetsTheLimit() {
        assertThat(StoreException.reasonOf(new FileSystemException("a", null, "Too many open files")))
                .isEqualTo("a: Too many open files (ulimit -n sets how many may be)");
    }
}
