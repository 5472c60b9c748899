package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;

class FileNamesTest {
    @Test
    void everyNumberThatAFileGetsIsFoundInItsName() {
        for (long number = 1; number <= FileNames.NUMBER_MAX; number += number / 9 + 1) {
            assertThat(FileNames.logNumber(FileNames.log(number))).hasValue(number);
            assertThat(FileNames.tableNumber(FileNames.table(number))).hasValue(number);
        }
        StoreFiles files = new StoreFiles(null, null, StoreOptions.at(Path.of("/nowhere")));
        files.startNumbersAt(FileNames.NUMBER_MAX);
        assertThat(FileNames.logNumber(FileNames.log(files.newNumber()))).hasValue(FileNames.NUMBER_MAX);
        assertThatThrownBy(files::newNumber).isInstanceOf(StoreException.class).hasMessageContaining("no file number");
    }

    @Test
    void aFileIsFoundByItsNumberWhateverTheLocale() {
        Locale usual = Locale.getDefault();
        try {
            for (String tag : new String[] {"en-US", "fa-IR", "ar-EG", "bn-BD", "mr-IN"}) {
                Locale.setDefault(Locale.forLanguageTag(tag));
                assertThat(FileNames.log(12)).as(tag).isEqualTo("000012.log");
                assertThat(FileNames.logNumber(FileNames.log(12))).as(tag).hasValue(12);
                assertThat(FileNames.tableNumber(FileNames.table(1_234_567)))
                        .as(tag)
                        .hasValue(1_234_567);
            }
        } finally {
            Locale.setDefault(usual);
        }
    }
}
