package kv;

import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// `4096`, `64k`, `16m` or `1g`, in bytes.
final class ByteCount implements ITypeConverter<Long> {
    @Override
    public Long convert(String text) {
        String digits = text.toLowerCase(Locale.ROOT);
        int shift = switch (digits.isEmpty() ? ' ' : digits.charAt(digits.length() - 1)) {
            case 'k' -> 10;
            case 'm' -> 20;
            case 'g' -> 30;
            default -> 0;
        };
        try {
            long count = Long.parseLong(shift == 0 ? digits : digits.substring(0, digits.length() - 1));
            return Math.multiplyExact(count, 1L << shift);
        } catch (NumberFormatException | ArithmeticException e) {
            throw new TypeConversionException("'" + text + "' is not a number of bytes such as 4096, 64k, 16m or 1g");
        }
    }
}
