#!/bin/sh
# The store beside RocksDB, in one process: builds what it needs, then runs one of the benchmarks of
# kv.lsm.bench.
#
#   service/bench/bench_engine.sh            EngineBenchmark: rates and ratios, 5 rounds, about 5 minutes
#   service/bench/bench_engine.sh costs      EngineCosts: amplification, heap per entry, recovery, 128 MB
#   service/bench/bench_engine.sh soak       EngineSoak: mixed load for 20 minutes, answers checked; 128 MB
#   service/bench/bench_engine.sh classpath  only builds, and prints the libraries: for bench_engine_beside.py
#
# Further arguments go to the benchmark: --rounds, --keys, --minutes, --directory, …
# JAVA_HOME names a JDK 25.
set -eu
cd "$(dirname "$0")/.."
: "${JAVA_HOME:?JAVA_HOME must name a JDK 25}"
export JAVA_HOME

main=EngineBenchmark
heap=512m
case "${1:-}" in
    costs) main=EngineCosts heap=128m; shift ;;
    soak) main=EngineSoak heap=128m; shift ;;
esac

mvn -q -B test-compile dependency:build-classpath -Dmdep.includeScope=test \
  -Dmdep.outputFile=target/test-classpath.txt >&2 # Maven ends with colours, which are no part of a class path
if [ "${1:-}" = classpath ]; then
    exec cat target/test-classpath.txt
fi
exec "$JAVA_HOME/bin/java" "-Xmx$heap" --enable-native-access=ALL-UNNAMED \
  --sun-misc-unsafe-memory-access=allow \
    -cp "target/classes:target/test-classes:$(cat target/test-classpath.txt)" "kv.lsm.bench.$main" "$@"
