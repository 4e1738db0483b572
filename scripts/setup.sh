#!/usr/bin/env bash
# Make .venv from requirements.lock and install the Debian packages that sandbox and tests use.
# A second run takes a fraction of a second: each stage leaves a stamp of what it did.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
UV_VERSION=0.13.9
PACKAGES=(bubblewrap chromium)
BINARIES=(bwrap chromium)

say() { printf '== %s\n' "$*"; }

missing() {
  for index in "${!BINARIES[@]}"; do
    command -v "${BINARIES[$index]}" >/dev/null 2>&1 || printf '%s ' "${PACKAGES[$index]}"
  done
}

install_debian() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "not root: please install $* (sandbox and browser tests need them; the rest works without)"
    return 0
  fi
  say "Debian packages: $*"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

make_venv() {
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed; $PYTHON is $("$PYTHON" --version 2>&1)." >&2; exit 1; }
  "$PYTHON" -c 'import ensurepip' 2>/dev/null || install_debian python3-venv
  [ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
  [ -x .venv/bin/uv ] && [ "$(.venv/bin/uv --version | cut -d' ' -f2)" = "$UV_VERSION" ] ||
    .venv/bin/python -m pip install -q "uv==$UV_VERSION" 2>&1 | { grep -v '^WARNING' || true; }
}

wanted=$(missing)
# shellcheck disable=SC2086  # a list of package names
[ -z "$wanted" ] || install_debian $wanted

stamp=$(cat requirements.lock pyproject.toml "$0" | sha256sum | cut -c1-64)
if [ "$(cat .venv/paddock-stamp 2>/dev/null || true)" != "$stamp" ]; then
  say "Python packages, from requirements.lock"
  make_venv
  .venv/bin/uv pip sync -q --python .venv/bin/python --require-hashes requirements.lock
  .venv/bin/uv pip install -q --python .venv/bin/python --no-deps "uv==$UV_VERSION" -e .
  echo "$stamp" > .venv/paddock-stamp
fi
