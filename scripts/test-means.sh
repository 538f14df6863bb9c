#!/usr/bin/env bash
# Installs what tests need of the system, where that can be done without asking: bubblewrap, for isolation. Without
# it, the tests of isolation say what they leave out. Called by `make test`.
set -uo pipefail
command -v bwrap >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap; } >/dev/null 2>&1
fi
command -v bwrap >/dev/null 2>&1 || echo "bubblewrap is not installed: isolation is tested in part" >&2
exit 0
