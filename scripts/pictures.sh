#!/usr/bin/env bash
# Makes the pictures and the film of docs/pictures anew, from the built binary, examples and a browser: nothing in them is drawn by hand.
# It needs what tests of the page need (scripts/test-means.sh).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
bash "$here/scripts/test-means.sh" page
cache=${SELVEDGE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/selvedge-tests}
modules=$cache/page-$(sha256sum "$here/crates/cli/tests/page/package-lock.json" | cut -c1-16)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/examples" "$here/docs" "$work/"
cd "$work"
export SELVEDGE=${SELVEDGE:-$here/target/debug/selvedge} MODULES=$modules WORK=$work HOME=$work/home
export SELVEDGE_STATE_DIR=$work/state SELVEDGE_TRUST=1 OUT=$here/docs/pictures PICTURES=$here/scripts/pictures
CHROMIUM=$(type -P chromium chromium-browser google-chrome | head -1 || true)
export CHROMIUM
mkdir -p "$HOME" "$OUT"
"$modules/node-program" "$here/scripts/pictures/pictures.mjs"
"$modules/node-program" "$here/scripts/pictures/film.mjs"
ls -l "$OUT"
