/** Which Python runs environments: the one that the user names, else that of a virtual environment, else the system's. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { findProgram } from '../../base/programs.ts';
import { EnvError, fail, messageOf, show } from '../errors.ts';

/** The oldest that is tried in the tests. */
const oldest = [3, 9] as const;

const known = new Map<string, string>();

/** The program, asked once in each thread. `named` is the user's own choice, empty for none. */
export function findPython(named: string): string {
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
  const executable = known.get(program) ?? executableOf(program);
  known.set(program, executable);
  return executable;
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

/** The interpreter itself: what is found first may be a script that looks for it each time, as pyenv's is. */
function executableOf(program: string): string {
  let lines: string[];
  try {
    const printed = execFileSync(
      program,
      ['-S', '-c', 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable, sep="\\n")'],
      { encoding: 'utf8', timeout: 20_000, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    lines = printed.trim().split('\n');
  } catch (cause) {
    throw new EnvError('python-missing', `${program} is no Python: ${messageOf(cause).split('\n')[0]}`, {
      cause,
    });
  }
  const [version = '', executable = ''] = lines;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (!(major > oldest[0] || (major === oldest[0] && minor >= oldest[1])))
    fail(
      'python-missing',
      `${program} is Python ${show(version)}, environments need ${oldest.join('.')} or newer: name another with --python`,
    );
  return executable.startsWith('/') ? executable : program;
}
