#!/usr/bin/env bash
# Runs examples to their ends, with scripted models where one is asked: no key, no service. Called by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TARGET:=target}" "${STATE:=$PWD/.selvedge}"
selvedge=$TARGET/debug/selvedge
now=$(date +%Y%m%d-%H%M%S)

# run NAME OPTION…: shows the command and runs it as the run NAME-…
run() {
  local command=(run "${@:2}" --state-dir "$STATE" --run-id "$1-$now")
  printf '\n$ %s' "$selvedge"; printf ' %q' "${command[@]}"; printf '\n'
  "$selvedge" "${command[@]}"
}

echo "A step task: three steps at the same time, then two, then one."
run squares examples/squares/task.json --tools examples/squares/tools

echo
echo "A step task whose sixth step fails: data have gaps. The scripted model says how to fill them, and the step goes on."
run forecast examples/load-forecast/task.json --tools examples/load-forecast/tools --tools examples/tools \
  --allow-write examples/load-forecast/out --script examples/load-forecast/script.yaml
echo "The report: examples/load-forecast/out/report.html"

echo
echo "A plan: two tools at the same time, and the scripted model over both results."
run demo examples/two-sources/plan.json --tools examples/two-sources/tools \
  --script examples/two-sources/script.yaml

cat <<END

The runs are in $STATE. In this folder:
  $selvedge show demo-$now              result, threads and nodes
  $selvedge explain forecast-$now       when each step ran, and how it was recovered
  $selvedge show demo-$now --events     the journal
  $selvedge show demo-$now --metadata   values by name, and where they come from
And to look at them, live, at any event, in a browser: open the address that this prints.
  $selvedge serve --state-dir $STATE
With a real model: leave --script out and add --base-url URL --model NAME (README.md).
END
