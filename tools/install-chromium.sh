#!/usr/bin/env bash
# Gets the Chromium that the browser tests need, if there is none: on Debian and its kin, as root or with sudo.
set -euo pipefail
if [[ -n "${CHROMIUM:-}" && -x "${CHROMIUM}" ]] || [[ -x /usr/bin/chromium ]]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo 'The browser tests need Chromium: install it, and set CHROMIUM to its path.' >&2
  exit 1
fi
run=()
if [[ "$(id -u)" != 0 ]]; then run=(sudo); fi
"${run[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends chromium
