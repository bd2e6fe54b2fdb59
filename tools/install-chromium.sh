#!/usr/bin/env bash
# Gets the Chromium that the browser tests need, if there is none: on Debian and its kin, as root or with sudo.
# The one without windows starts and draws with a quarter of the work; older systems only have the other.
set -euo pipefail
for found in "${CHROMIUM:-}" /usr/bin/chromium-headless-shell /usr/bin/chromium; do
  if [[ -n "${found}" && -x "${found}" ]]; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
  echo 'The browser tests need Chromium: install it, and set CHROMIUM to its path.' >&2
  exit 1
fi
run=()
if [[ "$(id -u)" != 0 ]]; then run=(sudo); fi
"${run[@]}" apt-get update -qq
package=chromium-headless-shell
if ! apt-cache show "${package}" >/dev/null 2>&1; then package=chromium; fi
DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "${package}"
