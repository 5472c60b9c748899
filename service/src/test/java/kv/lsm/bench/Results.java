package kv.lsm.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/// Rates by contender, row and round; one round's two rates make one ratio.
final class Results {
    static final String OURS = "ours";
    static final String ROCKSDB = "rocksdb";

    private final Map<String, List<Map<EngineBenchmark.Row, Double>>> rounds = new LinkedHashMap<>();

    void add(String contender, Map<EngineBenchmark.Row, Double> perSecond) {
        rounds.computeIfAbsent(contender, name -> new ArrayList<>()).add(perSecond);
    }

    String lastLine(String contender, int round) {
        StringBuilder line = new StringBuilder("round %d %-8s".formatted(round + 1, contender));
        rounds.get(contender)
                .getLast()
                .forEach((row, rate) ->
                        line.append("  ").append(label(row)).append(String.format(Locale.ROOT, " %,.0f/s", rate)));
        return line.toString();
    }

    /// A table in Markdown; the ratio's spread is its smallest and largest round.
    String table() {
        StringBuilder table = new StringBuilder(
                "\n| row | ours, 1/s | RocksDB, 1/s | ratio (min–max of rounds) |\n|---|---|---|---|\n");
        for (EngineBenchmark.Row row : EngineBenchmark.Row.values()) {
            List<Double> ours = rates(OURS, row);
            List<Double> theirs = rates(ROCKSDB, row);
            List<Double> ratios = new ArrayList<>();
            for (int i = 0; i < Math.min(ours.size(), theirs.size()); i++) {
                ratios.add(ours.get(i) / theirs.get(i));
            }
            table.append(String.format(
                    Locale.ROOT,
                    "| %s | %,.0f | %,.0f | %s |%n",
                    label(row),
                    median(ours),
                    median(theirs),
                    ratios.isEmpty()
                            ? "–"
                            : String.format(
                                    Locale.ROOT,
                                    "%.2f (%.2f–%.2f)",
                                    median(ratios),
                                    ratios.stream().min(Double::compare).orElseThrow(),
                                    ratios.stream().max(Double::compare).orElseThrow())));
        }
        return table.toString();
    }

    private static String label(EngineBenchmark.Row row) {
        return row.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    private List<Double> rates(String contender, EngineBenchmark.Row row) {
        return rounds.getOrDefault(contender, List.of()).stream()
                .map(round -> round.get(row))
                .toList();
    }

    private static double median(List<Double> values) {
        if (values.isEmpty()) {
            return Double.NaN;
        }
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
