import java.io.File;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Locale;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.HistogramLogReader;

/// Reads a histogram back with the Java HdrHistogram library and prints what it finds, a number a line.
///
/// `ReadBack log FILE TAG` adds up the intervals of one tag; `ReadBack base64 TEXT` decodes one histogram.
class ReadBack {
    public static void main(String[] arguments) throws Exception {
        Histogram histogram = arguments[0].equals("log")
                ? sum(new File(arguments[1]), arguments[2])
                : Histogram.decodeFromCompressedByteBuffer(
                        ByteBuffer.wrap(Base64.getDecoder().decode(arguments[1])), 1);
        long count = histogram.getTotalCount();
        System.out.printf(Locale.ROOT, "count %d%n", count);
        System.out.printf(Locale.ROOT, "mean %.3f%n", histogram.getMean() / 1000);
        System.out.printf(Locale.ROOT, "stdev %.3f%n", histogram.getStdDeviation() / 1000);
        System.out.printf(Locale.ROOT, "max %.3f%n", histogram.lowestEquivalentValue(histogram.getMaxValue()) / 1000.0);
        for (HistogramIterationValue step : histogram.percentiles(5)) {
            System.out.printf(Locale.ROOT, "tick %d %s %d%n",
                    step.getValueIteratedTo(), step.getPercentileLevelIteratedTo(),
                    step.getTotalCountToThisValue());
        }
        // The library rounds a percentile's rank up, the text to the nearest: ask for the same sample by its rank.
        for (double percentile : new double[] {50, 75, 90, 99, 99.9, 99.99, 99.999, 100}) {
            long rank = Math.max(1, (long) (percentile / 100 * count + 0.5));
            System.out.printf(Locale.ROOT, "percentile %s %d %d%n",
                    percentile, histogram.getValueAtPercentile(100.0 * rank / count),
                    histogram.getValueAtPercentile(percentile));
        }
    }

    private static Histogram sum(File log, String tag) throws Exception {
        Histogram sum = new Histogram(1, 86_400_000_000L, 3);
        try (HistogramLogReader reader = new HistogramLogReader(log)) {
            while (reader.hasNext()) {
                Histogram interval = (Histogram) reader.nextIntervalHistogram();
                if (interval != null && tag.equals(interval.getTag())) {
                    sum.add(interval);
                }
            }
        }
        return sum;
    }
}
