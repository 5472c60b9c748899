package kv;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// The path of a directory as typed. Java knows names in the characters of the locale only.
final class DirectoryPath implements ITypeConverter<Path> {
    @Override
    public Path convert(String text) {
        try {
            return Path.of(text);
        } catch (InvalidPathException e) {
            throw new TypeConversionException("no path: " + e.getMessage() + "; LC_ALL=C.UTF-8 takes every name");
        }
    }
}
