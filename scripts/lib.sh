# shellcheck shell=bash
# Set-up shared by scripts/serve, scripts/test and scripts/check. Each function makes sure of one thing, says what it
# installs, and remembers it in .setup/ under a fingerprint of what it depends on, so that the second time is quick.
# Everything is said on stderr: stdout belongs to the program that is run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '> %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# ── fingerprints and stamps ─────────────────────────────────────────

SHA=(sha256sum)
command -v sha256sum >/dev/null || SHA=(shasum -a 256)

# Fingerprint of files, and of all files below folders (what npm installed aside).
fingerprint() {
  find "$@" -name node_modules -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | "${SHA[@]}" | cut -d' ' -f1
}

# once NAME FINGERPRINT WHAT COMMAND…: says WHAT and runs COMMAND, unless it succeeded before with this fingerprint.
once() {
  local stamp=".setup/$1" mark="$2" what="$3"
  shift 3
  if [ -f "$stamp" ] && [ "$(<"$stamp")" = "$mark" ]; then return; fi
  rm -f "$stamp"
  say "$what"
  "$@" >&2
  mkdir -p .setup
  printf '%s\n' "$mark" >"$stamp"
}

# ── system packages ─────────────────────────────────────────────────

# Whether this user may install Debian packages without being asked for a password.
can_apt() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

apt_install() {
  local become=()
  [ "$(id -u)" = 0 ] || become=(sudo -n)
  say "Installing with apt-get: $*"
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# ── Python ──────────────────────────────────────────────────────────

# Sets PYTHON to an interpreter that is new enough.
need_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      PYTHON="$(command -v "$name")"
      return
    fi
  done
  die "perdure needs Python 3.11 or newer; found $(python3 --version 2>/dev/null || echo none)."
}

# Sets UV; installs it for this user, or beside the project where Python forbids that.
need_uv() {
  local user_uv
  user_uv="$("$PYTHON" -m site --user-base)/bin/uv"
  for UV in "$(command -v uv || true)" "$user_uv" "$PWD/.setup/uv/bin/uv"; do
    if [ -n "$UV" ] && [ -x "$UV" ] && "$UV" --version >/dev/null 2>&1; then return; fi
  done
  say "Installing uv, which installs the Python packages"
  if "$PYTHON" -m pip install --quiet --user uv 2>/dev/null && [ -x "$user_uv" ]; then
    UV="$user_uv"
    return
  fi
  private_uv || { can_apt && apt_install python3-venv && private_uv; } ||
    die "Cannot install uv: install Debian's python3-venv, or uv itself (https://docs.astral.sh/uv/), and run this again."
  UV="$PWD/.setup/uv/bin/uv"
}

private_uv() {
  rm -rf .setup/uv
  "$PYTHON" -m venv .setup/uv >/dev/null 2>&1 && .setup/uv/bin/pip install --quiet uv >&2
}

need_venv() {
  need_python
  need_uv
  [ -x .venv/bin/python ] || rm -f .setup/venv
  once venv "$(fingerprint pyproject.toml uv.lock)" "Installing the Python packages into .venv" \
    "$UV" sync --locked --quiet --python "$PYTHON"
}

# ── JavaScript ──────────────────────────────────────────────────────

NODE_WANTED="Node 20.19 or newer of 20, or 22.12 or newer"

need_node() {
  command -v node >/dev/null || die "The page needs $NODE_WANTED, with npm; found none."
  local check='const [a, b] = process.versions.node.split(".").map(Number);
    process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)'
  node -e "$check" || die "The page needs $NODE_WANTED; found $(node --version)."
  command -v npm >/dev/null || die "The page needs npm beside Node; found none."
}

# npm_ci NAME FOLDER
npm_ci() {
  need_node
  [ -d "$2/node_modules" ] || rm -f ".setup/$1"
  once "$1" "$(fingerprint "$2/package.json" "$2/package-lock.json")" "Installing the JavaScript packages of $2" \
    npm ci --prefix "$2" --no-audit --no-fund --loglevel=error
}

need_playground_packages() { npm_ci playground-packages playground; }
need_wire_packages() { npm_ci wire-packages tests/wire; }

PAGE=src/perdure/server/static/index.html

# The page at /, built from playground/.
need_page() {
  local mark
  mark="$(fingerprint playground)"
  if [ -f "$PAGE" ] && [ -f .setup/page ] && [ "$(<.setup/page)" = "$mark" ]; then return; fi
  rm -f .setup/page
  need_playground_packages
  once page "$mark" "Building the page" npm run --prefix playground --silent build -- --logLevel warn
}

# ── browser ─────────────────────────────────────────────────────────

# Sets PERDURE_CHROMIUM to a browser for tests/browser, or says how to get one: those tests then fail.
need_chromium() {
  find_chromium && return
  if can_apt && apt_install chromium && find_chromium; then return; fi
  say "No Chromium found, so the browser tests will fail. Install it (sudo apt-get install chromium) or set PERDURE_CHROMIUM."
}

find_chromium() {
  local name
  for name in "${PERDURE_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if [ -n "$name" ] && command -v "$name" >/dev/null; then
      PERDURE_CHROMIUM="$(command -v "$name")"
      export PERDURE_CHROMIUM
      return
    fi
  done
  return 1
}

# ── running several checks ──────────────────────────────────────────

FAILED=()

# run WHAT COMMAND…: runs it under a heading; a failure is kept for `finish`, so that one run shows all that is wrong.
run() {
  local what="$1" start=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  "$@" || FAILED+=("$what")
  printf '   (%s s)\n' "$((SECONDS - start))"
}

finish() {
  [ ${#FAILED[@]} = 0 ] && return
  printf '\nfailed:\n' >&2
  printf '  %s\n' "${FAILED[@]}" >&2
  exit 1
}
