#!/usr/bin/env bash
# Make .venv from requirements.lock, and install the Debian packages that we need (bubblewrap for the sandbox, libnuma1
# for vLLM on the CPU) and those named as arguments.
# A second run takes a fraction of a second: a stamp says what .venv was made from.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
UV_VERSION=0.13.9

say() { printf '== %s\n' "$*"; }

present() { # is the Debian package's program or library there, wherever it came from?
  case $1 in
    bubblewrap) command -v bwrap ;;
    postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' ;;
    lib*1) ldconfig -p | grep -F "${1%1}.so.1" ;;
    *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

install_debian() {
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "not root: please install $* yourself (sandbox, vLLM or tests need them)"
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

wanted=()
for package in bubblewrap libnuma1 "$@"; do present "$package" || wanted+=("$package"); done
[ ${#wanted[@]} = 0 ] || install_debian "${wanted[@]}"

stamp=$(cat requirements.lock pyproject.toml "$0" | sha256sum | cut -c1-64)
if [ "$(cat .venv/paddock-stamp 2>/dev/null || true)" != "$stamp" ]; then
  say "Python packages, from requirements.lock"
  make_venv
  .venv/bin/uv pip sync -q --python .venv/bin/python --require-hashes requirements.lock
  .venv/bin/uv pip install -q --python .venv/bin/python --no-deps "uv==$UV_VERSION" -e .
  echo "$stamp" > .venv/paddock-stamp
fi
