/**
 * From `keel train cartpole` to the row of its first update, and what that time is spent on.
 *
 * The whole is by the clocks of processes that do nothing else, and so are Node's own start, the sessions of ONNX Runtime and what is
 * compiled to WebAssembly, and what the first row says of its rollout and its update. Modules are timed in processes that load
 * the same ones and do nothing with them. What is left before the first iteration is settings, graphs, weights and the run's files.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startKeel } from '../compiled-keel.ts';
import { median, report, round } from '../measure.ts';

const ROUNDS = 11;
const trainCartPole = (root: string): string[] => [
  ...['train', 'cartpole', '--no-dash', '--json', '--run-dir', root],
];

/** Notes when Node was ready, how long sessions and WebAssembly take to make, and when the first line of each kind is printed. */
const clocks = `
const probe = Object.assign(globalThis.keelProbe, { nodeMs: performance.now(), sessionsMs: 0, webAssemblyMs: 0 });
const timed = (key, work) => {
  const startedAt = performance.now();
  try { return work(); } finally { if (probe.rowMs === undefined) probe[key] += performance.now() - startedAt; }
};
const { dlopen } = process;
process.dlopen = function (module, ...rest) {
  const result = dlopen.call(this, module, ...rest);
  const { InferenceSession } = module.exports;
  if (InferenceSession !== undefined)
    module.exports.InferenceSession = class extends InferenceSession {
      loadModel(...args) { return timed('sessionsMs', () => super.loadModel(...args)); }
    };
  return result;
};
WebAssembly.Module = new Proxy(WebAssembly.Module, {
  construct: (target, args) => timed('webAssemblyMs', () => Reflect.construct(target, args)),
});
const { write } = process.stdout;
process.stdout.write = function (text, ...rest) {
  for (const kind of ['start', 'row'])
    if (String(text).startsWith('{"kind":"' + kind + '"')) probe[kind + 'Ms'] ??= performance.now();
  return write.call(this, text, ...rest);
};`;

interface FirstUpdate {
  /** From the start of the process to the row, as whoever started it sees it. */
  readonly totalMs: number;
  readonly nodeMs: number;
  readonly sessionsMs: number;
  readonly webAssemblyMs: number;
  /** Node's start until the learner is open, and from there to the first rollout. */
  readonly openedMs: number;
  readonly beginMs: number;
  readonly rolloutMs: number;
  readonly updateMs: number;
  readonly peakMegabytes: number;
}

async function firstUpdate(built: string): Promise<FirstUpdate> {
  const root = mkdtempSync(join(tmpdir(), 'keel-startup-'));
  try {
    const startedAt = performance.now();
    let first: { row: Readonly<Record<string, number>>; totalMs: number } | undefined;
    const keel = startKeel(built, trainCartPole(root), {
      before: clocks,
      onLine: (line, child) => {
        if (first !== undefined || !line.startsWith('{"kind":"row"')) return;
        first = { row: JSON.parse(line), totalMs: performance.now() - startedAt };
        child.kill('SIGINT');
      },
    });
    const { noted, peakMegabytes } = await keel.ended(130);
    if (first === undefined) throw new Error('keel train printed no row');
    const { row, totalMs } = first;
    const ms = (part: string): number => 1000 * row[`time/${part}_s`];
    const [rolloutMs, updateMs] = [ms('collect'), ms('update') + ms('guard')];
    const { nodeMs, sessionsMs, webAssemblyMs, rowMs } = noted;
    return {
      ...{ totalMs, nodeMs, sessionsMs, webAssemblyMs },
      openedMs: rowMs - ms('elapsed') - nodeMs,
      beginMs: ms('elapsed') - rolloutMs - updateMs,
      ...{ rolloutMs, updateMs, peakMegabytes },
    };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Appends the address of each module that is loaded to a file. */
const listing = (file: string): string => {
  const hooks = `
    import { appendFileSync } from 'node:fs';
    export async function load(url, context, next) {
      if (!url.startsWith('node:')) appendFileSync(${JSON.stringify(file)}, url + '\\n');
      return next(url, context);
    }`;
  return `
    import { register } from 'node:module';
    register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});`;
};

const runScript = (script: string): string =>
  execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });

/** The modules from which all that the command loads are reached, in its order. */
async function rootModules(built: string): Promise<{ roots: string[]; count: number }> {
  const work = mkdtempSync(join(tmpdir(), 'keel-startup-'));
  try {
    const [loaded, again] = [join(work, 'loaded'), join(work, 'again')];
    const keel = startKeel(built, [...trainCartPole(join(work, 'runs')), '--steps', '1'], {
      before: listing(loaded),
    });
    await keel.ended(0);
    const entry = pathToFileURL(join(built, 'bin/keel.js')).href;
    const urls = readFileSync(loaded, 'utf8')
      .trim()
      .split('\n')
      .filter(url => url !== entry);
    // A root is one that loads something which those before it have not.
    const roots = runScript(`
      ${listing(again)}
      import { existsSync, statSync } from 'node:fs';
      const size = () => existsSync(${JSON.stringify(again)}) ? statSync(${JSON.stringify(again)}).size : 0;
      const roots = [];
      for (const url of ${JSON.stringify(urls)}) {
        const before = size();
        await import(url);
        if (size() > before) roots.push(url);
      }
      process.stdout.write(JSON.stringify(roots));`);
    return { roots: JSON.parse(roots) as string[], count: urls.length };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

interface Loading {
  readonly modulesMs: number;
  readonly environmentsMs: number;
}

/** Loads them and no more; then makes eight environments. */
const loading = (built: string, roots: readonly string[]): Loading =>
  JSON.parse(
    runScript(`
      const startedAt = performance.now();
      for (const url of ${JSON.stringify(roots)}) await import(url);
      const loadedAt = performance.now();
      const { makeEnv, prepareEnv } = await import(${JSON.stringify(pathToFileURL(join(built, 'dist/envs/registry.js')).href)});
      await prepareEnv('cartpole');
      for (let i = 0; i < 8; i++) makeEnv('cartpole');
      process.stdout.write(JSON.stringify({ modulesMs: loadedAt - startedAt, environmentsMs: performance.now() - loadedAt }));`),
  ) as Loading;

/** Medians, the two kinds of process in turns. */
export async function reportFirstUpdate(built: string): Promise<void> {
  const { roots, count } = await rootModules(built);
  const [starts, loads]: [FirstUpdate[], Loading[]] = [[], []];
  for (let i = -1; i < ROUNDS; i++) {
    const [start, load] = [await firstUpdate(built), loading(built, roots)];
    if (i < 0) continue;
    starts.push(start);
    loads.push(load);
  }
  const of = (key: keyof FirstUpdate): number => median(starts.map(start => start[key]));
  const [modules, environments] = (['modulesMs', 'environmentsMs'] as const).map(key =>
    median(loads.map(load => load[key])),
  );
  const [sessions, webAssembly] = [of('sessionsMs'), of('webAssemblyMs')];
  report({
    command: 'keel train cartpole, to the row of its first update',
    rounds: ROUNDS,
    total_ms: round(of('totalMs'), 0),
    node_ms: round(of('nodeMs'), 0),
    modules_ms: round(modules, 0),
    modules: count,
    environments_ms: round(environments, 1),
    sessions_ms: round(sessions, 1),
    web_assembly_ms: round(webAssembly, 1),
    graphs_settings_and_files_ms: round(of('openedMs') - modules - environments - sessions - webAssembly, 0),
    begin_ms: round(of('beginMs'), 1),
    first_rollout_ms: round(of('rolloutMs'), 1),
    first_update_ms: round(of('updateMs'), 1),
    peak_megabytes: round(of('peakMegabytes'), 0),
  });
}
