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

    /// As where a file or its directory has that attribute: also root may not change it then.
    @Test
    void whereAFileMayNotBeChangedByAnybodyTheReasonSaysWhatForbidsIt() {
        assertThat(StoreException.reasonOf(new FileSystemException("MANIFEST.tmp", null, "Operation not permitted")))
                .isEqualTo("MANIFEST.tmp: Operation not permitted (lsattr shows whether file or directory is "
                        + "immutable: chattr -i)");
    }
}
