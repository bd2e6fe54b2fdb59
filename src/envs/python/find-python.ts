/** Which Python runs environments: the one that the user names, else that of a virtual environment, else the system's. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { jsonOf } from '../../base/json.ts';
import { findProgram } from '../../base/programs.ts';
import { EnvError, fail, show } from '../errors.ts';

/** The oldest that is tried in the tests. */
const oldest = [3, 9] as const;

/** How a Python is started. */
export interface Python {
  readonly executable: string;
  /** What a script that stands before it sets, such as PYTHONPATH. */
  readonly environment: Readonly<Record<string, string>>;
}

const known = new Map<string, Python>();

/** The program, asked once in each thread. `named` is the user's own choice, empty for none. */
export function findPython(named: string): Python {
  if (process.platform === 'win32')
    fail('python-failed', 'environments in Python need named pipes, which Linux and macOS have: use WSL');
  const program = named === '' ? foundPython() : findProgram(named);
  if (program === undefined)
    return fail(
      'python-missing',
      named === ''
        ? 'environments in Python need Python, and there is no python3: install it, or name one with --python'
        : `the Python ${show(named)} is no program: name one such as --python .venv/bin/python`,
    );
  const python = known.get(program) ?? pythonOf(program);
  known.set(program, python);
  return python;
}

/** Where a virtual environment is looked for, and the program in it. */
function foundPython(): string | undefined {
  const { VIRTUAL_ENV } = process.env;
  const folders = [...(VIRTUAL_ENV ? [VIRTUAL_ENV] : []), '.venv', 'venv'];
  const inFolders = folders.map(
    folder => findProgram(join('.', folder, 'bin', 'python')) ?? absolute(folder),
  );
  return inFolders.find(found => found !== undefined) ?? findProgram('python3') ?? findProgram('python');
}

const absolute = (folder: string): string | undefined =>
  folder.startsWith('/') ? findProgram(join(folder, 'bin', 'python')) : undefined;

const question = `import json, os, sys
print("%d.%d" % sys.version_info[:2], sys.executable, json.dumps(dict(os.environ)), sep="\\n")`;
const MOST_MS = 20_000;

/**
 * The interpreter itself: what is found first may be a script that looks for it each time, as pyenv's is, or one that sets
 * what the interpreter needs to find its packages.
 */
function pythonOf(program: string): Python {
  let lines: string[];
  try {
    const printed = execFileSync(program, ['-S', '-c', question], {
      encoding: 'utf8',
      timeout: MOST_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    lines = printed.trim().split('\n');
  } catch (cause) {
    throw new EnvError('python-missing', `${program} is no Python: ${whyNot(cause)}`, { cause });
  }
  const [version = '', executable = '', environment = '{}'] = lines;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (!(major > oldest[0] || (major === oldest[0] && minor >= oldest[1])))
    fail(
      'python-missing',
      `${program} is Python ${show(version)}, environments need ${oldest.join('.')} or newer: name another with --python`,
    );
  return {
    executable: executable.startsWith('/') ? executable : program,
    environment: changedIn(environment),
  };
}

function whyNot(cause: unknown): string {
  const { status, signal, code } = cause as {
    status?: number | null;
    signal?: string | null;
    code?: string;
  };
  if (code === 'ETIMEDOUT') return `it gave no answer in ${MOST_MS / 1000} s`;
  if (typeof code === 'string') return `it cannot be started (${code})`;
  if (typeof signal === 'string') return `it was ended by ${signal}`;
  return `it ended with exit code ${status}`;
}

/** What a shell sets by itself. */
const ofShells = new Set(['_', 'PWD', 'OLDPWD', 'SHLVL']);

/** The variables that are other than this process has them. */
function changedIn(environment: string): Record<string, string> {
  let found: unknown;
  try {
    found = jsonOf(environment);
  } catch {
    return {};
  }
  return Object.fromEntries(
    Object.entries(found as Record<string, string>).filter(
      ([name, value]) => !ofShells.has(name) && process.env[name] !== value && isText(value),
    ),
  );
}

/** Bytes that are no text come as halves of characters, which are not passed on. */
const isText = (value: unknown): boolean =>
  typeof value === 'string' && Buffer.from(value, 'utf8').toString('utf8') === value;
