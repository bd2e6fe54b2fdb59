#!/usr/bin/env bash
# Gets what the tests need besides npm's packages and is not there yet, on Debian and its kin, as root or with sudo:
# - a Chromium, for the browser tests: the one without windows starts and draws with a quarter of the work; older systems
#   only have the other;
# - redis-server, which the tests of the queue start themselves;
# - NumPy, which environments in Python are tested with;
# - Optuna, which reads the journals of studies and is what samplers are compared with.
set -euo pipefail
missing=()
has_chromium() {
  local found
  for found in "${CHROMIUM:-}" /usr/bin/chromium-headless-shell /usr/bin/chromium; do
    if [[ -n "${found}" && -x "${found}" ]]; then return 0; fi
  done
  return 1
}
has_chromium || missing+=(chromium-headless-shell)
command -v redis-server >/dev/null || missing+=(redis-server)
# Debian's own, whichever Python comes first on the path.
/usr/bin/python3 -c 'import numpy' >/dev/null 2>&1 || missing+=(python3-numpy)
python3 -c 'import optuna' >/dev/null 2>&1 || missing+=(python3-optuna)
if [[ "${#missing[@]}" == 0 ]]; then exit 0; fi
if ! command -v apt-get >/dev/null; then
  echo "The tests need ${missing[*]}: install them; CHROMIUM is the path of a Chromium elsewhere." >&2
  exit 1
fi
run=()
if [[ "$(id -u)" != 0 ]]; then run=(sudo); fi
"${run[@]}" apt-get update -qq
for i in "${!missing[@]}"; do
  if [[ "${missing[i]}" == chromium-headless-shell ]] && ! apt-cache show "${missing[i]}" >/dev/null 2>&1; then
    missing[i]=chromium
  fi
done
# A redis-server of the system's own would start with its package where there is a service manager; the tests need none.
DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
