/** `verifyRun`: a good run of each algorithm is whole, and every kind of damage is found, where it is and as what it is. */
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { clone, fork, resume, train } from '../../src/algos/runs.ts';
import { type CheckpointInput, loadCheckpoint, saveCheckpoint } from '../../src/runs/checkpoint.ts';
import { askRun } from '../../src/runs/inbox.ts';
import { checkpointDir, runPaths } from '../../src/runs/layout.ts';
import { updateManifest } from '../../src/runs/manifest.ts';
import { verifyRun } from '../../src/runs/verify.ts';
import { echoFile } from '../algos/grpo/support.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('verify');
const task = join(root, 'echo.ts');
writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));
const model = { layers: 1, width: 16, heads: 2, threads: 1, checkpointEvery: 1 };

/** A guard that has to act, a checkpoint after each second of six iterations, some of them pruned. */
const config = {
  ...{ envs: 2, stepsPerRollout: 16, minibatchSize: 16, epochs: 2, hidden: [4], steps: 6 * 32 },
  ...{ guard: 0.001, learningRate: 0.05, checkpointEvery: 2, keepEvery: 2, seed: 1, record: false },
};
let good: string;
beforeAll(async () => {
  good = (await train({ env: 'cartpole', preset: {}, config, root })).dir;
});

const texts = (dir: string): string[] => verifyRun(dir).problems.map(({ text }) => text);

describe('a run is whole', () => {
  test('of PPO', () => {
    expect(verifyRun(good)).toMatchObject({ status: 'finished', rows: 6, checkpoints: 3, problems: [] });
    expect(readFileSync(runPaths(good).events, 'utf8')).toContain('"type":"guard"');
  });

  test('of GRPO', async () => {
    const settings = {
      promptsPerIteration: 4,
      groupSize: 4,
      microbatchSize: 16,
      minibatchSize: 8,
      steps: 32,
    };
    const { dir } = await train({ task, preset: {}, config: { ...model, ...settings }, root });
    expect(texts(dir)).toEqual([]);
  });

  test('of cloned policies, of cloned models and of forks', async () => {
    const policy = await clone({
      ...{ env: 'cluster', envOptions: { replicas: 'h100,a40', requests: 64 }, preset: {}, root },
      config: { steps: 64, epochs: 2, batchSize: 32, envs: 2, hidden: [4], network: 'mlp' },
    });
    const cloned = { ...model, steps: 48, batchSize: 8, batchesPerIteration: 3 };
    const text = await clone({ task, preset: {}, config: cloned, root });
    const child = await fork(good, { from: 128, config: { steps: 256 } });
    for (const { dir } of [policy, text, child]) expect(texts(dir)).toEqual([]);
  });

  test('whose bound was changed by hand and for a resume: in each row the one that held counts', async () => {
    let asked: Promise<unknown> | undefined;
    const { dir } = await train({
      ...{ env: 'cartpole', preset: {}, config: { ...config, guard: 0.002, checkpointEvery: 1 }, root },
      // Between two iterations, so that it is taken before the next.
      onRow(row, progress) {
        if (row['train/iteration'] !== 2) return;
        const request = { type: 'set', key: 'guard', value: 0.0005, by: 'a test' } as const;
        asked = askRun(progress.dir, request, { timeoutMs: 60_000 });
      },
    });
    await asked;
    expect(readFileSync(runPaths(dir).events, 'utf8')).toContain('"key":"guard","value":0.0005');
    await resume(dir, { config: { steps: 8 * 32, guard: 0.004 } });
    expect(texts(dir)).toEqual([]);
    const { metrics } = runPaths(dir);
    const lines = readFileSync(metrics, 'utf8').split('\n');
    const withKl = (line: string, kl: number): string => line.replace(/"kl\/step":[^,]+/, `"kl/step":${kl}`);
    // The first row may have what none after the change by hand may, and the last what only the resume allows.
    const rows = { 0: 0.0019, 5: 0.0019, 7: 0.0039 };
    writeFileSync(
      metrics,
      lines.map((line, i) => (i in rows ? withKl(line, rows[i as 0]) : line)).join('\n'),
    );
    const bounds = texts(dir).filter(text => text.includes('at most the bound'));
    expect(bounds).toEqual([
      'metrics.jsonl, line 6: kl/step is 0.0019, expected at most the bound of 0.0005 (guard)',
    ]);
  });

  test('that was killed in the middle of a row', () => {
    const dir = damaged('killed', copy => {
      updateManifest(copy, { status: 'running', endedAt: null });
      const { metrics, csv, events } = runPaths(copy);
      const without = (path: string, lines: number): void =>
        writeFileSync(
          path,
          `${readFileSync(path, 'utf8').trimEnd().split('\n').slice(0, -lines).join('\n')}\n`,
        );
      without(csv, 1);
      without(events, 1);
      appendFileSync(metrics, '{"train/iter');
      rmSync(runPaths(copy).last);
    });
    expect(verifyRun(dir)).toMatchObject({ status: 'killed', problems: [] });
  });
});

test('killed before it could say that it started, it is whole', () => {
  const dir = damaged('begun-again', copy => {
    edit(runPaths(copy).events, text =>
      text.replace(
        '"type":"started"',
        '"type":"resumed","checkpoint":null,"droppedRows":0,"droppedEvents":0',
      ),
    );
    updateManifest(copy, { resumes: 1 });
  });
  expect(texts(dir)).toEqual([]);
});

function damaged(name: string, damage: (dir: string) => void): string {
  const dir = join(root, name);
  cpSync(good, dir, { recursive: true });
  damage(dir);
  return dir;
}

/** Changes the text of a file, which must then be another. */
function edit(path: string, change: (text: string) => string): void {
  const before = readFileSync(path, 'latin1');
  const after = change(before);
  if (after === before) throw new Error(`${path} was not changed`);
  writeFileSync(path, after, 'latin1');
}
const editLines = (path: string, change: (lines: string[]) => string[]): void =>
  edit(path, text => `${change(text.trimEnd().split('\n')).join('\n')}\n`);
const flip = (path: string, at: (length: number) => number): void =>
  edit(path, text => {
    const bytes = Buffer.from(text, 'latin1');
    bytes[at(bytes.length)] ^= 1;
    return bytes.toString('latin1');
  });
const last = 6 * 32;
const tensorboard = (dir: string): string =>
  join(dir, readdirSync(dir).find(name => name.includes('tfevents'))!);
/** A checkpoint that is whole, with its sums, and says something else. */
async function resave(
  dir: string,
  change: (input: CheckpointInput) => Partial<CheckpointInput>,
): Promise<void> {
  const { files, state, index } = loadCheckpoint(dir)!;
  const { step, iteration, score, keep, environment } = index;
  const input: CheckpointInput = {
    ...{ step, iteration, keep, state, files: Object.fromEntries(files) },
    ...{ score: score ?? undefined, environment: environment ?? undefined },
  };
  await saveCheckpoint(dir, { ...input, ...change(input) });
}

const damages: Record<string, [(dir: string) => void | Promise<void>, RegExp]> = {
  'a bit of the weights': [
    dir => flip(join(checkpointDir(dir, last), 'policy.safetensors'), length => length - 1),
    /^checkpoints\/192: .*policy\.safetensors is damaged.*checksum/,
  ],
  'weights that were cut off': [
    dir => edit(join(checkpointDir(dir, 128), 'optimizer.safetensors'), text => text.slice(1)),
    /^checkpoints\/128: .*optimizer\.safetensors has \d+ bytes, \d+ were saved/,
  ],
  'a checkpoint without its index': [
    dir => rmSync(join(checkpointDir(dir, 64), 'checkpoint.json')),
    /^checkpoints\/64: .*has no checkpoint\.json/,
  ],
  'a checkpoint that is gone': [
    dir => rmSync(checkpointDir(dir, 128), { recursive: true }),
    /^checkpoints\/128: it is missing, expected: line \d+ of events\.jsonl .* kept for good$/,
  ],
  'a pointer to another checkpoint': [
    dir => writeFileSync(runPaths(dir).last, '64\n'),
    /^checkpoints\/last: "64", expected 192$/,
  ],
  'a pointer that is gone': [
    dir => rmSync(runPaths(dir).best),
    /^checkpoints\/best: it is missing, expected \d+$/,
  ],
  'a row that is gone': [
    dir => editLines(runPaths(dir).metrics, lines => lines.toSpliced(2, 1)),
    /^metrics\.jsonl, line 3: train\/iteration is 4, expected 3$/,
  ],
  'the last row gone': [
    dir => editLines(runPaths(dir).metrics, lines => lines.slice(0, -1)),
    /^manifest\.json, iteration: 6, expected 5, as the last row says$/,
  ],
  'rows in another order': [
    dir => editLines(runPaths(dir).metrics, ([a, b, ...more]) => [b, a, ...more]),
    /^metrics\.jsonl, line 2: train\/step is 32, expected more than 64$/,
  ],
  'a row that is no row': [
    dir => edit(runPaths(dir).metrics, text => text.replace('{', '')),
    /^metrics\.jsonl, line 1: it is damaged: not JSON/,
  ],
  'half a row at the end': [
    dir => appendFileSync(runPaths(dir).metrics, '{"train'),
    /^metrics\.jsonl, byte \d+: 7 bytes without an end of line, expected none$/,
  ],
  'a metric that nobody knows': [
    dir => edit(runPaths(dir).metrics, text => text.replace('"kl/step":', '"kl/stop":')),
    /^metrics\.jsonl, line 1: kl\/stop is not in the registry/,
  ],
  'a KL above the bound': [
    dir => edit(runPaths(dir).metrics, text => text.replace(/"kl\/step":[^,]+/, '"kl/step":0.00101')),
    /^metrics\.jsonl, line 1: kl\/step is 0\.00101, expected at most the bound of 0\.001 \(guard\)$/,
  ],
  'a state above its bound': [
    dir => {
      edit(runPaths(dir).manifest, text => text.replace('"guardMax": null', '"guardMax": 0.5'));
      edit(runPaths(dir).metrics, text => text.replace(/"kl\/step_max":[^,]+/, '"kl/step_max":0.51'));
    },
    /^metrics\.jsonl, line 1: kl\/step_max is 0\.51, expected at most the bound of 0\.5 \(guardMax\)$/,
  ],
  'a KL that is no number': [
    dir => edit(runPaths(dir).metrics, text => text.replace(/"kl\/step":[^,]+/, '"kl/step":"NaN"')),
    /^metrics\.jsonl, line 1: kl\/step is NaN, expected at most/,
  ],
  'no rows at all': [dir => rmSync(runPaths(dir).metrics), /^metrics\.jsonl: it is missing$/],
  'a cell of the CSV': [
    dir =>
      editLines(runPaths(dir).csv, lines =>
        lines.map((line, i) => (i === 2 ? line.replace(/^2,64,/, '2,65,') : line)),
      ),
    /^metrics\.csv, line 3, train\/step: "65", expected "64", as metrics\.jsonl has it$/,
  ],
  'a line of the CSV that is gone': [
    dir => editLines(runPaths(dir).csv, lines => lines.slice(0, -1)),
    /^metrics\.csv: 5 rows, expected 6/,
  ],
  'no CSV': [dir => rmSync(runPaths(dir).csv), /^metrics\.csv: it is missing$/],
  'a bit of the event file for TensorBoard': [
    dir => flip(tensorboard(dir), length => length - 20),
    /tfevents\.\d+\.keel, the row of iteration 6: its scalars are others/,
  ],
  'an event file that was cut off': [
    dir => edit(tensorboard(dir), text => text.slice(0, -10)),
    /tfevents\.\d+\.keel: 5 rows, expected 6/,
  ],
  'the event of a guard that is gone': [
    dir => editLines(runPaths(dir).events, lines => lines.toSpliced(lines.findIndex(isGuard), 1)),
    /^events\.jsonl, iteration \d: no guard event, expected one: the row has guard\/backtracks/,
  ],
  'the event of a guard that says something else': [
    dir => edit(runPaths(dir).events, text => text.replace(/"backtracks":\d+/, '"backtracks":77')),
    /^events\.jsonl, line \d+: backtracks of the guard is 77, expected \d+, as the row of iteration \d has it$/,
  ],
  'the event of a checkpoint that is gone': [
    dir => editLines(runPaths(dir).events, lines => lines.filter(line => !line.includes('"checkpoint":128'))),
    /^events\.jsonl: no event of checkpoint 128, expected one: it is there$/,
  ],
  'events in another order': [
    dir =>
      editLines(runPaths(dir).events, ([first, ...more]) => [
        first,
        ...more.slice(0, -1).reverse(),
        more.at(-1)!,
      ]),
    /^events\.jsonl, line 3: \S+ of iteration \d, expected \d or later$/,
  ],
  'no event of its start': [
    dir => editLines(runPaths(dir).events, lines => lines.slice(1)),
    /^events\.jsonl, line \d+: finished after nothing, expected started$/,
  ],
  'a start after another': [
    dir => editLines(runPaths(dir).events, ([first, ...more]) => [first, first, ...more]),
    /^events\.jsonl, line 2: started after started, expected resumed, finished, stopped or failed$/,
  ],
  'a resume from a checkpoint before any start': [
    dir =>
      edit(runPaths(dir).events, text =>
        text.replace(
          '"type":"started"',
          '"type":"resumed","checkpoint":64,"droppedRows":0,"droppedEvents":0',
        ),
      ),
    /^events\.jsonl, line 1: resumed after nothing, expected started$/,
  ],
  'no event of its end': [
    dir => editLines(runPaths(dir).events, lines => lines.slice(0, -1)),
    /^events\.jsonl: the last process event is started, expected finished, as the manifest says$/,
  ],
  'an event that is no event': [
    dir => edit(runPaths(dir).events, text => text.replace('"type":"started"', '"type":7')),
    /^events\.jsonl, line 1: it is damaged/,
  ],
  'a state of another iteration': [
    dir =>
      resave(dir, ({ state }) => ({
        state: { ...state, counters: { ...(state.counters as object), iteration: 5 } },
      })),
    /^checkpoints\/192\/state\.json, counters\.iteration: 5, expected 6, as the log says$/,
  ],
  'a checkpoint of another iteration': [
    dir => resave(dir, () => ({ iteration: 5 })),
    /^checkpoints\/192\/checkpoint\.json, iteration: 5, expected 6, as its event says$/,
  ],
  'a checkpoint of another score': [
    dir => resave(dir, () => ({ score: 1e6 })),
    /^checkpoints\/192\/checkpoint\.json, score: 1000000, expected /,
  ],
  'no policy.onnx': [dir => rmSync(runPaths(dir).onnx), /^policy\.onnx: it is missing/],
  'a policy.onnx of other weights': [
    dir =>
      edit(runPaths(dir).onnx, text => {
        const weights = readFileSync(join(checkpointDir(dir, last), 'policy.safetensors'), 'latin1');
        const header = 8 + Buffer.from(weights, 'latin1').readUInt32LE(0);
        const at = text.indexOf(weights.slice(header, header + 8));
        return `${text.slice(0, at)}\u0000\u0000${text.slice(at + 2)}`;
      }),
    /^policy\.onnx: it does not hold \S+ of checkpoint 192/,
  ],
};
const isGuard = (line: string): boolean => line.includes('"type":"guard"');

describe('damage is found', () => {
  test.each(Object.entries(damages))('%s', async (name, [damage, message]) => {
    const dir = join(root, `damaged ${name}`.replaceAll(/\W+/g, '-'));
    cpSync(good, dir, { recursive: true });
    await damage(dir);
    const found = texts(dir);
    expect(
      found.filter(text => message.test(text)),
      found.join('\n'),
    ).toHaveLength(1);
    for (const text of found) expect(text).not.toContain('\n');
  });

  test('what is not a run is refused', () => {
    expect(() => verifyRun(join(root, 'nowhere'))).toThrow(/does not exist/);
  });
});
