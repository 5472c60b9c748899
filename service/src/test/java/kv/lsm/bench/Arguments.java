package kv.lsm.bench;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/// What was typed after the benchmark's name.
record Arguments(int rounds, int keys, int syncs, double minutes, String onlyOrNull, Path directory) {
    /// @param defaultKeys how many keys when nobody says
    static Arguments parse(String[] args, int defaultKeys) {
        int rounds = 5;
        int keys = defaultKeys;
        int syncs = 20_000;
        double minutes = 20;
        String only = null;
        Path directory = Path.of("target", "bench-engine");
        for (int i = 0; i < args.length; i += 2) {
            String value = i + 1 < args.length ? args[i + 1] : "";
            switch (args[i]) {
                case "--rounds" -> rounds = Integer.parseInt(value);
                case "--keys" -> keys = Integer.parseInt(value);
                case "--syncs" -> syncs = Integer.parseInt(value);
                case "--minutes" -> minutes = Double.parseDouble(value);
                case "--only" -> only = value;
                case "--directory" -> directory = Path.of(value);
                default -> throw new IllegalArgumentException("unknown option: " + args[i]);
            }
        }
        return new Arguments(rounds, keys, Math.min(syncs, keys), minutes, only, directory);
    }

    Map<String, Contender.Opener> contenders() {
        Map<String, Contender.Opener> contenders = new LinkedHashMap<>();
        contenders.put(Results.OURS, OurStore::new);
        contenders.put(Results.ROCKSDB, RocksStore::new);
        if (onlyOrNull != null) {
            contenders.keySet().retainAll(Set.of(onlyOrNull));
        }
        return contenders;
    }
}
