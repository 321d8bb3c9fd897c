#!/bin/sh
# Measure all programs in this folder with limited local memory; requires root, zram and the servers that the programs start.
# Usage: measure_all.sh FOLDER. Optional variable: PREFIX, a command that starts each measurement.
here=$(dirname "$0") out=$1 failed=0
run() {
  name=$1; shift
  ${PREFIX:-} poolwise profile measure --make-swap --clock cpu --repeat 2 --timeout "150 s" --name "$name" --out "$out/$name.csv" "$@" || failed=1
}
run measured_kmeans -- python "$here/kmeans.py" 200000
run measured_conjugate_gradient -- python "$here/conjugate_gradient.py" 72 20
run measured_word_count -- python "$here/word_count.py" 3000000
run measured_graph_search -- python "$here/graph_search.py" 1000000 2
run measured_redis -- python "$here/redis_load.py" 120000 100000
run measured_postgresql -- python "$here/postgresql_query.py" "$out/postgresql" 3
exit $failed
