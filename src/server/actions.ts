/** Everything behind the buttons: changes to a live run, a new run from a checkpoint, evaluation, the policy as a file. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod/mini';
import { tableOf } from '../algos/settings.ts';
import { KeelError } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { typed } from '../base/typed.ts';
import { listCheckpoints } from '../runs/checkpoint.ts';
import { askRun } from '../runs/inbox.ts';
import { newRunId, runPaths } from '../runs/layout.ts';
import { lockHolder } from '../runs/lock.ts';
import { referenceTo } from '../runs/reference.ts';
import { untrustedCode, whatWouldRun } from '../runs/trust.ts';
import type { ActionAnswer, EvaluationAnswer } from './api.ts';
import { complaint, runKeel } from './children.ts';
import { anewWords } from './doctor/remedy.ts';
import { Problem } from './problem.ts';
import type { KeelRun } from './runs/keel-run.ts';
import type { NotesStore } from './runs/notes.ts';
import { idOf } from './runs/places.ts';
import type { RunIndex } from './runs/run-index.ts';
import { runOfProcess, startRun } from './start-run.ts';

export interface Actions {
  /** Settings that the run would take now, with their values. */
  adjustable(run: KeelRun): Readonly<Record<string, number | null>>;
  act(run: KeelRun, body: unknown): Promise<ActionAnswer>;
  evaluate(run: KeelRun, step: number): Promise<EvaluationAnswer>;
  /** The run's deployable policy, or that of one checkpoint. */
  policy(run: KeelRun, step: number | undefined): Promise<Buffer>;
  close(): Promise<void>;
}

export interface ActionsOptions {
  readonly index: RunIndex;
  readonly notes: NotesStore;
  readonly evaluationMs?: number;
  readonly episodes?: number;
}

const answerMs = 30_000;
const exportMs = 60_000;
const mostPolicyBytes = 2 ** 30;

const key = z.string().check(z.regex(/^[A-Za-z][A-Za-z0-9]{0,60}$/));
const actionSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('set'), key, value: z.number() }),
  z.strictObject({ type: z.literal('stop') }),
  z.strictObject({
    type: z.literal('restart'),
    checkpoint: z.int().check(z.nonnegative()),
    set: z.record(key, z.number()),
  }),
  z.strictObject({ type: z.literal('anew'), set: z.record(key, z.number()) }),
]);

/** What `keel eval --json` says that is shown: of episodes at its top, of completions under their reward. */
interface Told extends Worth {
  readonly episodes?: number;
  readonly completions?: number;
  readonly reward?: Worth;
  readonly sampled?: boolean;
  readonly differ?: boolean;
  readonly other?: Told;
}
interface Worth {
  readonly mean?: number;
  readonly std?: number;
  readonly standardError?: number | null;
}
const worthOf = (told: Told): Worth => told.reward ?? told;

export function createActions({
  index,
  notes,
  evaluationMs = 300_000,
  episodes = 20,
}: ActionsOptions): Actions {
  const stop = new AbortController();
  /** What runs in a child, so that a second click does not start it again. */
  let busy: string | undefined;

  async function alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (busy !== undefined)
      throw new Problem(409, 'busy', `${busy} is under way: wait until it is done, then try again`);
    busy = what;
    try {
      return await work();
    } finally {
      busy = undefined;
    }
  }

  function requireLive(run: KeelRun): void {
    if (lockHolder(run.path) === undefined)
      throw new Problem(409, 'not-running', 'the run is not being trained now: nothing can be changed in it');
  }

  function requireCheckpoint(run: KeelRun, step: number): void {
    const found = listCheckpoints(run.path).find(info => info.step === step);
    if (found === undefined)
      throw new Problem(
        404,
        'no-such-checkpoint',
        `there is no checkpoint ${step}: it may have been replaced by a newer one`,
      );
    if (found.problem !== undefined)
      throw new Problem(409, 'damaged-checkpoint', `checkpoint ${step} cannot be used: it is damaged`);
    if (!index.mayRead([found.dir]))
      throw new Problem(
        403,
        'outside',
        `checkpoint ${step} is a link that leads out of the watched directories`,
      );
  }

  /** The commands that are started would refuse, too; here it is known why, and nothing is stopped or made before. */
  function requireTrusted({ path, manifest }: KeelRun, command: string, step?: number): void {
    let untrusted: ReturnType<typeof untrustedCode>;
    try {
      untrusted = manifest && untrustedCode({ dir: path, manifest });
    } catch (error) {
      if (!(error instanceof KeelError)) throw error;
      throw new Problem(409, 'no-code', error.message); // what it names is not here
    }
    if (untrusted === undefined) return;
    const what = whatWouldRun(untrusted);
    throw new Problem(
      403,
      'untrusted',
      `${what}: if you know what it does, type ${typed(command, referenceTo(path), ...(step === undefined ? [] : ['--checkpoint', String(step)]), '--trust')} once`,
    );
  }

  /** Longer than a few of its iterations, which may be long. */
  function patienceOf(run: KeelRun): number {
    const { axes } = run.table;
    const [last, before] = [axes.time[axes.length - 1], axes.time[axes.length - 4]];
    const iterationMs = last !== undefined && before !== undefined ? (last - before) / 3 : 0;
    return Math.min(600_000, Math.max(answerMs, Number.isFinite(iterationMs) ? 4 * iterationMs : 0));
  }

  const ask = (run: KeelRun, request: Parameters<typeof askRun>[1]) =>
    askRun(run.path, request, { timeoutMs: patienceOf(run), signal: stop.signal });

  async function stopRun(run: KeelRun): Promise<ActionAnswer> {
    const { done, message } = await ask(run, { type: 'stop', by: 'page' });
    await index.refresh();
    return { done, message, newRun: null };
  }

  async function restart(
    run: KeelRun,
    wanted: number,
    set: Readonly<Record<string, number>>,
  ): Promise<ActionAnswer> {
    let checkpoint = wanted;
    requireCheckpoint(run, checkpoint);
    const { manifest } = run;
    if (manifest === undefined) throw new Problem(409, 'unreadable', 'the run cannot be read');
    requireTrusted(run, 'fork', checkpoint);
    if (lockHolder(run.path) !== undefined) {
      const stopped = await stopRun(run);
      if (!stopped.done) return stopped;
      // Its last checkpoint may have replaced the one that was wanted: then the one before it is as healthy.
      checkpoint =
        listCheckpoints(run.path).findLast(({ step, problem }) => step <= checkpoint && problem === undefined)
          ?.step ?? checkpoint;
      requireCheckpoint(run, checkpoint);
    }
    const root = dirname(run.path);
    const id = newRunId(manifest.environment.id, manifest.seed, new Date());
    await startRun(
      ['fork', run.path, '--checkpoint', String(checkpoint), '--id', id, '--run-dir', root, ...setsOf(set)],
      { root, find: () => join(root, id) },
    );
    await index.refresh();
    return {
      done: true,
      message: `${id} was started from checkpoint ${checkpoint}${withThese(set)}`,
      newRun: idOf(join(root, id)),
    };
  }

  async function beginAnew(run: KeelRun, set: Readonly<Record<string, number>>): Promise<ActionAnswer> {
    const words = anewWords(run, set);
    if (words === null) throw new Problem(409, 'unreadable', 'the run cannot be read');
    // What its manifest names is named by the command, which asks nobody.
    requireTrusted(run, 'resume');
    if (lockHolder(run.path) !== undefined) {
      const stopped = await stopRun(run);
      if (!stopped.done) return stopped;
    }
    const root = dirname(run.path);
    const dir = await startRun([...words, '--run-dir', root], { root, find: pid => runOfProcess(root, pid) });
    // It is no child of that run's policy, but of what was wrong with it: the page shows both beside each other.
    notes.set({ kind: 'keel', path: dir }, { insteadOf: basename(run.path) });
    await index.refresh();
    return {
      done: true,
      message: `${basename(dir)} was begun anew${withThese(set)}`,
      newRun: idOf(dir),
    };
  }

  return {
    adjustable(run) {
      if (run.state !== 'running') return {};
      const { keys = {} } = tableOf(run.manifest?.algorithm ?? '') ?? {};
      const out: Record<string, number | null> = {};
      // Another trainer says itself what it takes.
      for (const name of run.manifest?.controls ?? []) {
        const value = run.settings[name];
        if (typeof value === 'number' || value === null) out[name] = value;
      }
      // The trainer has the last word.
      for (const [name, { change, offered }] of Object.entries(keys)) {
        const value = run.settings[name];
        if (change !== 'live' || offered === undefined || (typeof value !== 'number' && value !== null))
          continue;
        if (offered === 'always' || value) out[name] = value;
      }
      return out;
    },

    async act(run, body) {
      const parsed = z.safeParse(actionSchema, body);
      if (!parsed.success) {
        throw new Problem(
          422,
          'invalid-action',
          'an action is {"type":"set","key":…,"value":…}, {"type":"stop"}, {"type":"restart","checkpoint":…,"set":{…}} or {"type":"anew","set":{…}}, with numbers for values',
        );
      }
      const action = parsed.data;
      switch (action.type) {
        case 'set': {
          requireLive(run);
          const { done, message } = await ask(run, {
            type: 'set',
            key: action.key,
            value: action.value,
            by: 'page',
          });
          if (!done) throw new Problem(422, 'refused', message);
          await index.refresh();
          return { done, message, newRun: null };
        }
        case 'stop':
          requireLive(run);
          return stopRun(run);
        case 'anew':
          return alone('another restart', () => beginAnew(run, action.set));
        case 'restart':
          return alone('another restart', () => restart(run, action.checkpoint, action.set));
        default:
          return action satisfies never;
      }
    },

    async evaluate(run, step) {
      requireCheckpoint(run, step);
      requireTrusted(run, 'eval', step);
      return alone('another evaluation', async () => {
        const args = [
          'eval',
          run.path,
          '--checkpoint',
          String(step),
          '--episodes',
          String(episodes),
          '--json',
        ];
        const { code, stdout, stderr, timedOut } = await runKeel(args, {
          timeoutMs: evaluationMs,
          signal: stop.signal,
        });
        if (timedOut)
          throw new Problem(
            504,
            'too-long',
            `${episodes} episodes took longer than ${Math.round(evaluationMs / 1000)} seconds: ${typed('eval', referenceTo(run.path), '--checkpoint', String(step))} has no such limit`,
          );
        if (code !== 0) throw new Problem(422, 'not-evaluated', complaint(stderr));
        const told = jsonOf(stdout) as Told;
        const { mean, std, standardError } = worthOf(told);
        const drawn = told.differ && told.other ? worthOf(told.other) : null;
        return {
          step,
          episodes: Number(told.episodes ?? told.completions),
          mean: Number(mean),
          std: Number(std),
          standardError: standardError ?? null,
          deterministic: told.sampled !== true,
          drawn: drawn && { mean: Number(drawn.mean), standardError: drawn.standardError ?? null },
        };
      });
    },

    async policy(run, step) {
      if (step === undefined) {
        const path = runPaths(run.path).onnx;
        if (!existsSync(path))
          throw new Problem(
            404,
            'no-policy',
            'there is no policy yet: it is written with the first checkpoint',
          );
        if (!index.mayRead([path]))
          throw new Problem(
            403,
            'outside',
            'policy.onnx is a link that leads out of the watched directories',
          );
        return readPolicy(path);
      }
      requireCheckpoint(run, step);
      requireTrusted(run, 'export', step);
      return alone('another export', async () => {
        const directory = mkdtempSync(join(tmpdir(), 'keel-policy-'));
        try {
          const file = join(directory, 'policy.onnx');
          const { code, stderr, timedOut } = await runKeel(
            ['export', run.path, '--checkpoint', String(step), '-o', file],
            { timeoutMs: exportMs, signal: stop.signal },
          );
          if (timedOut)
            throw new Problem(
              504,
              'too-long',
              `the export took too long: use ${typed('export', referenceTo(run.path), '--checkpoint', String(step))}`,
            );
          if (code !== 0) throw new Problem(422, 'not-exported', complaint(stderr));
          return readPolicy(file);
        } finally {
          rmSync(directory, { recursive: true, force: true });
        }
      });
    },

    async close() {
      stop.abort();
    },
  };
}

const setsOf = (set: Readonly<Record<string, number>>): string[] =>
  Object.entries(set).flatMap(([name, value]) => ['--set', `${name}=${value}`]);

function withThese(set: Readonly<Record<string, number>>): string {
  const changes = Object.entries(set).map(([name, value]) => `${name} ${value}`);
  return changes.length === 0 ? '' : ` with ${changes.join(', ')}`;
}

function readPolicy(path: string): Buffer {
  const { size } = statSync(path);
  if (size > mostPolicyBytes)
    throw new Problem(413, 'too-long', `the policy has ${size} bytes: copy the file instead`);
  return readFileSync(path);
}
