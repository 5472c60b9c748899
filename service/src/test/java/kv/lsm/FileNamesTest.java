package kv.lsm;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Locale;
import org.junit.jupiter.api.Test;

class FileNamesTest {
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
