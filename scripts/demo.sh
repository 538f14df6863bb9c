#!/usr/bin/env bash
# Runs examples/two-sources to its end with the scripted model: no key, no service. Called by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TARGET:=target}" "${STATE:=$PWD/.selvedge}"
selvedge=$TARGET/debug/selvedge
example=examples/two-sources
run=demo-$(date +%Y%m%d-%H%M%S)

command=(run "$example/plan.json" --tools "$example/tools" --script "$example/script.yaml"
  --state-dir "$STATE" --run-id "$run")
printf '\n$ %s' "$selvedge"; printf ' %q' "${command[@]}"; printf '\n'
"$selvedge" "${command[@]}"

cat <<END

The run is $run in $STATE/selvedge.db. To look at it:
  $selvedge resume $run --json      everything: threads, results, metadata
  $selvedge check $example/plan.json --tools $example/tools
The same with a real model: leave --script out and add --base-url or --model; see README.md.
END
