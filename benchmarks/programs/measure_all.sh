#!/bin/sh
# Measure all programs here under less local memory; needs root, zram and the programs named in them.
# Usage: measure_all.sh FOLDER; PREFIX, if set, is a command that each measurement is started through.
here=$(dirname "$0") out=$1 failed=0
run() {
  name=$1; shift
  ${PREFIX:-} poolwise profile measure --make-swap --longest "90 s" --name "$name" --out "$out/$name.csv" "$@" || failed=1
}
run kmeans --cpu 0.75,0.5 -- python "$here/kmeans.py" 200000
run conjugate_gradient --cpu 0.75,0.5 -- python "$here/conjugate_gradient.py" 72 60
run word_count --cpu 0.75,0.5 -- python "$here/word_count.py" 3000000
run graph_search --cpu 0.75,0.5 -- python "$here/graph_search.py" 1000000 2
run redis -- python "$here/redis_load.py" 120000 100000
run postgresql -- python "$here/postgresql_query.py" "$out/postgresql" 3
exit $failed
