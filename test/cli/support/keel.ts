/** The real command line in a process of its own, compiled as it is published. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, inject } from 'vitest';

export const root = fileURLToPath(new URL('../../../', import.meta.url));
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** What a test that timed out leaves behind must not go on. */
const alive = new Set<ChildProcess>();
afterAll(() => {
  for (const child of alive) child.kill('SIGKILL');
});

/**
 * `dist/cli/main.js` of a package in a temporary directory, made by the first test file that asks for it. Types are dropped,
 * not checked, which takes seconds; each of the many processes then starts in a third of the time that tsx would take.
 */
export function mainFile(): string {
  const built = join(inject('sharedScratch'), 'package');
  if (!existsSync(built)) {
    const own = mkdtempSync(join(dirname(built), 'package-'));
    buildPackage(own);
    try {
      renameSync(own, built);
    } catch (error) {
      // Another file's tests made it meanwhile.
      if (!existsSync(built)) throw error;
    }
  }
  return join(built, 'dist/cli/main.js');
}

function buildPackage(built: string): void {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(root, 'tsconfig.build.json'), ts.sys.readFile).config,
    ts.sys,
    root,
  );
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const { outputText } = ts.transpileModule(readFileSync(join(root, 'src', name), 'utf8'), {
      compilerOptions: {
        ...options,
        // NodeNext would ask the package.json beside the file.
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Bundler,
        sourceMap: false,
        declaration: false,
      },
      fileName: name,
    });
    const file = join(built, 'dist', name.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, outputText);
  }
  cpSync(join(root, 'configs'), join(built, 'configs'), { recursive: true });
  cpSync(join(root, 'package.json'), join(built, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'));
}

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KeelOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

/** Starts it; `done` settles when it has ended. */
export function startKeel(args: readonly string[], { cwd = root, env = {} }: KeelOptions = {}) {
  const clean = Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^(NO_COLOR|FORCE_COLOR|KEEL_|VITEST|NODE_OPTIONS)/.test(key),
    ),
  );
  const child: ChildProcess = spawn(process.execPath, [mainFile(), ...args], {
    cwd,
    env: { ...clean, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  alive.add(child);
  child.on('exit', () => alive.delete(child));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const done = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject).on('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return { child, done, output };
}

export function keel(args: readonly string[], options: KeelOptions = {}): Promise<Outcome> {
  return startKeel(args, options).done;
}

/** A directory that is gone after the file's tests. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'keel-cli-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Flags of a run that takes a moment: two iterations of 64 steps. */
export const tiny = (runDir: string, ...more: string[]): string[] => [
  '--no-preset',
  '--run-dir',
  runDir,
  ...[
    'envs=2',
    'stepsPerRollout=32',
    'minibatchSize=32',
    'epochs=1',
    'hidden=[8]',
    'steps=128',
    'checkpointEvery=1',
  ].flatMap(pair => ['--set', pair]),
  ...more,
];
