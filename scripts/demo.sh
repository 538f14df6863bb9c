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

The run is $run in $STATE. In this folder:
  $selvedge show $run              result, threads and nodes
  $selvedge show $run --events     the journal
  $selvedge show $run --metadata   values by name, and where they come from
With a real model: leave --script out and add --base-url URL --model NAME (README.md).
END
