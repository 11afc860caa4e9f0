#!/usr/bin/env bash
# Compares the benchmarks that run in one process with those of another commit, checked out in FOLDER: prints the median of
# alternating runs, and the ratio of the medians.
#
#   tools/benches/compare.sh FOLDER [ROUNDS]
set -euo pipefail
before=$(realpath "$1") rounds=${2:-5} now=$PWD
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# Prints the executable of a benchmark in a checkout, which is built first.
executable() {
  (cd "$1" && CARGO_TARGET_DIR=$2 cargo bench --locked --features otlp --bench "$3" --no-run 2>&1) |
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p'
}

# Prints the wanted columns of the rows of a table: label, column, value.
cells() {
  awk -F'|' -v OFS='\t' -v wanted="$1" '
    /^\|/ && !/^\| *:?-/ {
      for (at = 2; at < NF; at++) gsub(/^ +| +$/, "", $at)
      if (!header++) { for (at = 2; at < NF; at++) names[at] = $at; next }
      count = split(wanted, columns, ",")
      for (at = 1; at <= count; at++) print $2, names[columns[at] + 1], $(columns[at] + 1) + 0
    }'
}

# The benchmarks, each with the columns to compare.
for row in delivery:3 environment:2,4 trees:2; do
  bench=${row%%:*}
  old=$(executable "$before" "${BEFORE_TARGET_DIR:-$before/target}" "$bench")
  new=$(executable "$now" "${CARGO_TARGET_DIR:-$now/target}" "$bench")
  for _ in $(seq "$rounds"); do
    (cd "$before" && "$old" --bench) | cells "${row#*:}" | sed "s/^/$bench\tbefore\t/" >>"$results"
    (cd "$now" && "$new" --bench) | cells "${row#*:}" | sed "s/^/$bench\tnow\t/" >>"$results"
  done
done

echo '| benchmark | row | column | before | now | ratio |'
echo '|:--|:--|:--|--:|--:|--:|'
sort -t$'\t' -k1,1 -k3,3 -k4,4 -k2,2 -k5,5g "$results" | awk -F'\t' '
  { row = $1 " | " $3 " | " $4 }
  row != last { flush(); last = row; count["before"] = count["now"] = 0 }
  { value[$2, ++count[$2]] = $5 }
  END { flush() }
  function median(side) { return value[side, int((count[side] + 1) / 2)] }
  function flush() {
    if (last) printf "| %s | %s | %s | %.2f |\n", last, median("before"), median("now"), median("now") / median("before")
  }'
