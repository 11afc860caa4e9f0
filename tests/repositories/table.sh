#!/usr/bin/env bash
# Prints a row for each repository of public.txt that is checked out in $PORTCULLIS_CHECKOUTS/OWNER/NAME: its roots, those of Flux,
# the rejected ones that something builds, the denied and warned findings of `portcullis check .` by rule, and the CPU seconds that
# it took. Names of repositories may follow. OPTIONS are options of `check`. Needs jq.
set -eu
list=$(dirname "$(realpath "$0")")/public.txt
portcullis=$(realpath "$(command -v "${PORTCULLIS:-portcullis}")")
report=$(mktemp)
trap 'rm -f "$report"' EXIT
TIMEFORMAT='%U %S'
echo '| repository | roots | of Flux | rejected | denied | warned | CPU s |'
echo '|---|--:|--:|--:|---|---|--:|'
grep -v '^#' "$list" | while read -r name _; do
  folder=${PORTCULLIS_CHECKOUTS:?}/$name
  [ -e "$folder/.git" ] && { [ $# = 0 ] || grep -qxF "$name" <<<"$(printf '%s\n' "$@")"; } || continue
  # exit code 1: something is denied; 2: a file cannot be used
  seconds=$({ time (cd "$folder" && "$portcullis" check . ${OPTIONS:-} -o json >"$report" 2>/dev/null || [ $? -le 2 ]); } 2>&1)
  jq -r --arg name "$name" --arg seconds "$(awk '{printf "%.1f", $1 + $2}' <<<"$seconds")" '
    def rules($level): [.findings[] | select(.level == $level) | .rule] | group_by(.) | map("\(.[0]) \(length)") | join(", ");
    "| \($name) | \(.roots | length) | \([.roots[] | select(.profile == "flux")] | length) | " +
    "\([.roots[] | select(.verdict == "reject" and (.unused | not))] | length) | \(rules("deny")) | \(rules("warn")) | \($seconds) |"' "$report"
done
