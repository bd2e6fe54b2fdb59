import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file of environments in Python. */
export const pythonFile = (name: string): string =>
  fileURLToPath(new URL(`../files/${name}`, import.meta.url));

/** The system's Python, which has what tools/install-test-packages.sh installs. */
export const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : '';
