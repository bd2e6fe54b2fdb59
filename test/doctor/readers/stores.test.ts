import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RunSpec, RunWriter, type WriterOptions } from '../../../src/runs/index.ts';
import { processorMs } from '../../support/processor-time.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';
import { configRecord, exitRecord, historyRecord, runRecord, wandbFile } from '../support/wandb-file.ts';

describe("W&B's log", () => {
  const rows = [
    historyRecord(0, [
      ['train/kl', '0.5'],
      ['_timestamp', '1700000000.5'],
    ]),
    historyRecord(1, [
      [['train/kl'], 'NaN'],
      [['nested', 'value'], '2'],
    ]),
    historyRecord(5, [
      [['train/kl'], '"Infinity"'],
      ['hist', '{"_type":"histogram","values":[1,2]}'],
      ['text', '"hello"'],
      ['deep', '{"a":{"b":7}}'],
    ]),
  ];

  it('has history, config, run and exit', async () => {
    const run = await readContent(
      wandbFile([
        runRecord('abc123', 'project', [[['from_run'], '3']]),
        configRecord([
          [['lr'], '0.001'],
          [['model'], '{"layers":2,"name":"x"}'],
          [['_wandb'], '{"cli_version":"1"}'],
        ]),
        ...rows,
        exitRecord(1),
      ]),
    );
    expect(run.format).toBe('wandb');
    expect(run.axis).toBe('step');
    expect(points(run, 'train/kl')).toEqual([
      [0, 0.5],
      [1, Number.NaN],
      [5, Number.POSITIVE_INFINITY],
    ]);
    expect(points(run, 'nested/value')).toEqual([[1, 2]]);
    expect(points(run, 'deep/a/b')).toEqual([[5, 7]]);
    expect(run.series.has('hist/values')).toBe(false);
    expect(run.series.get('train/kl')!.wallTime[0]).toBe(1_700_000_000.5);
    expect(Object.fromEntries(run.config)).toEqual({
      from_run: 3,
      lr: 0.001,
      'model/layers': 2,
      'model/name': 'x',
    });
    expect(run.texts.get('exit_code')).toBe('1');
    expect(run.texts.get('project')).toBe('project');
    expect(run.unfinished).toBe(false);
  });

  it('has records across blocks, and blocks that end in padding', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: 1, maxLength: 12 }),
        async sizes => {
          const records = sizes.map((size, step) =>
            historyRecord(step, [
              ['v', String(step + 0.5)],
              ['filler', JSON.stringify('x'.repeat(size))],
            ]),
          );
          const run = await readContent(wandbFile(records));
          expect(points(run, 'v')).toEqual(sizes.map((_, step) => [step, step + 0.5]));
          expect(run.unfinished).toBe(false);
          expect(run.notes).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
    // Record lengths that leave 0 to 8 bytes in the first block, one of them each.
    for (let left = 0; left < 9; left++) {
      const empty = historyRecord(0, [
        ['v', '1'],
        ['f', '""'],
      ]).length;
      const filler = 32_768 - 7 - 7 - left - empty - 4;
      const first = historyRecord(0, [
        ['v', '1'],
        ['f', JSON.stringify('x'.repeat(filler))],
      ]);
      const run = await readContent(wandbFile([first, historyRecord(1, [['v', '2']])]));
      expect(values(run, 'v')).toEqual([1, 2]);
    }
  });

  it('cut anywhere gives its whole records', async () => {
    const whole = wandbFile(
      Array.from({ length: 60 }, (_, step) => historyRecord(step, [['v', String(step)]])),
    );
    for (let length = 120; length < whole.length; length += 11) {
      const run = await readContent(whole.subarray(0, length));
      const got = values(run, 'v');
      expect(got).toEqual(got.map((_, i) => i));
      expect(run.notes).toEqual([]);
    }
  });

  it('loses a damaged record only, and says so', async () => {
    const file = wandbFile(
      Array.from({ length: 100 }, (_, step) => historyRecord(step, [['v', `${step}.125`]])),
    );
    const at = file.indexOf('50.125');
    file[at] = file[at] ^ 1;
    const run = await readContent(file);
    expect(run.series.get('v')!.length).toBe(99);
    expect(run.notes.join()).toMatch(/1 damaged/);
  });

  it('is found in its directory, with its config and the end of its output', async () => {
    const root = writeTree(temporaryDirectory(), {
      'wandb/offline-run-1/run-abc.wandb': wandbFile(rows),
      'wandb/offline-run-1/files/config.yaml':
        'wandb_version: 1\n_wandb:\n  value: {}\nlr:\n  desc: null\n  value: 0.5\nnet:\n  value:\n    size: 64\n',
      'wandb/offline-run-1/files/output.log':
        'x\nTraceback (most recent call last):\n  File "a"\nRuntimeError: boom\n',
      'wandb/offline-run-1/files/wandb-summary.json': '{"_step": 5, "train/kl": 1}',
    });
    const run = await readOnly(root);
    expect(run.path).toBe(join(root, 'wandb/offline-run-1'));
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.5, 'net/size': 64 });
    expect(run.texts.get('error')).toBe('RuntimeError: boom');
  });
});

describe("Hugging Face's trainer_state.json", () => {
  const state = {
    best_metric: null,
    epoch: 0.5,
    global_step: 4,
    log_history: [
      { step: 1, loss: 0.5, kl: 0, 'rewards/x/mean': 1 },
      { step: 2, loss: 0.4, kl: Number.NaN, text: 'a "quoted ] } brace" \\' },
      { step: 2, eval_loss: 0.7 },
      { step: 4, loss: 0.3, kl: 0.2, nested: { deep: 1 } },
    ],
    max_steps: 250,
    is_world_process_zero: true,
  };
  // Python writes NaN bare.
  const write = (indent?: number): string =>
    JSON.stringify(state, (_, value) => (Number.isNaN(value) ? '@nan' : value), indent).replaceAll(
      '"@nan"',
      'NaN',
    );

  it.each([
    ['indented', write(2)],
    ['on one line', write()],
    ['with BOM and CRLF', `\ufeff${write(1).replaceAll('\n', '\r\n')}`],
    ['packed', gzipSync(write(2))],
  ])('%s: rows that lack a key miss it', async (_, text) => {
    const run = await readContent(text);
    expect(run.format).toBe('trainer-state');
    expect(points(run, 'loss')).toEqual([
      [1, 0.5],
      [2, 0.4],
      [4, 0.3],
    ]);
    expect(points(run, 'kl')).toEqual([
      [1, 0],
      [2, Number.NaN],
      [4, 0.2],
    ]);
    expect(points(run, 'eval_loss')).toEqual([[3, 0.7]]);
    expect(values(run, 'step')).toEqual([1, 2, 2, 4]);
    expect(run.config.get('max_steps')).toBe(250);
    expect(run.config.get('global_step')).toBe(4);
    expect(run.restarts).toEqual([]);
    expect(run.unfinished).toBe(false);
  });

  it('cut anywhere gives its whole rows and is unfinished', async () => {
    const text = write(2);
    const end = text.indexOf('"max_steps"');
    for (let length = text.indexOf('"rewards/x'); length < end - 10; length += 5) {
      const run = await readContent(text.slice(0, length)).catch(() => undefined);
      if (run === undefined) continue;
      expect(run.unfinished).toBe(true);
      expect([0.5, 0.4, 0.3].slice(0, values(run, 'loss').length)).toEqual(values(run, 'loss'));
    }
  });

  it('of several checkpoints only the newest is read', async () => {
    const at = (step: number): string =>
      JSON.stringify({
        global_step: step,
        log_history: Array.from({ length: step }, (_, i) => ({ step: i + 1, loss: i })),
      });
    const root = writeTree(temporaryDirectory(), {
      'out/checkpoint-5/trainer_state.json': at(5),
      'out/checkpoint-20/trainer_state.json': at(20),
      'out/checkpoint-100/trainer_state.json': at(100),
      'out/checkpoint-100/vocab.json': '{"a":1,"b":2}',
      'out/runs/Nov16_host/events.out.tfevents.1': Buffer.alloc(0),
    });
    const run = await readOnly(root);
    expect(run.path).toBe(join(root, 'out'));
    expect(run.series.get('loss')!.length).toBe(100);
    expect(run.notes.join()).toMatch(/3 files trainer_state.json/);
  });

  it('the final state in the output goes before older checkpoints', async () => {
    const at = (step: number): string =>
      JSON.stringify({ global_step: step, log_history: [{ step, loss: step }] });
    const root = writeTree(temporaryDirectory(), {
      'out/trainer_state.json': at(30),
      'out/checkpoint-20/trainer_state.json': at(20),
    });
    expect(values(await readOnly(root), 'loss')).toEqual([30]);
  });
});

describe("MLflow's file store", () => {
  it('has metrics with steps and times, params and a name', async () => {
    const root = writeTree(temporaryDirectory(), {
      'mlruns/0/meta.yaml': 'artifact_location: x\n',
      'mlruns/0/abc/meta.yaml': "run_name: 'my run'\nstatus: 3\n",
      'mlruns/0/abc/metrics/loss': '1700000000000 0.5 0\n1700000001000 nan 10\n1700000002000 0.25 20\n',
      'mlruns/0/abc/metrics/train/kl': '1700000000000 0.1 0\n1700000001000 0.2 0\n',
      'mlruns/0/abc/metrics/half': '1700000000000 1 0\n17000000',
      'mlruns/0/abc/params/lr': '0.001',
      'mlruns/0/abc/params/env': 'CartPole-v1',
    });
    const run = await readOnly(root);
    expect(run.format).toBe('mlflow');
    expect(run.path).toBe(join(root, 'mlruns/0/abc'));
    expect(points(run, 'loss')).toEqual([
      [0, 0.5],
      [10, Number.NaN],
      [20, 0.25],
    ]);
    expect([...run.series.get('loss')!.wallTime]).toEqual([1_700_000_000, 1_700_000_001, 1_700_000_002]);
    // Without steps they are counted.
    expect(points(run, 'train/kl')).toEqual([
      [1, 0.1],
      [2, 0.2],
    ]);
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.001, env: 'CartPole-v1' });
    expect(run.texts.get('run_name')).toBe('my run');
    expect(run.unfinished).toBe(true);
  });
});

describe("Keel's own runs", () => {
  const spec: RunSpec = {
    algorithm: 'ppo',
    environment: { id: 'CartPole-v1', version: '1', options: {}, reward: { scale: 2 } },
    config: { lr: 0.001, net: { hidden: [64, 64] } },
    seed: 7,
    versions: { keel: '0.1.0' },
  };

  function write(root: string): RunWriter {
    const writer = RunWriter.create(spec, { root, id: 'one' }, {
      csv: true,
      tensorboard: true,
    } as WriterOptions);
    for (let i = 1; i <= 3; i++) {
      writer.row({ 'train/iteration': i, 'train/step': i * 100, 'kl/step': i === 2 ? Number.NaN : i / 10 });
    }
    return writer;
  }

  it('have rows, settings and events, and are one run whatever lies in them', async () => {
    const root = temporaryDirectory();
    const writer = write(root);
    writer.event({ type: 'note', iteration: 3, step: 300, message: 'a note', text: 'a note' });
    writer.end('failed', 'the loss was NaN');
    writeTree(root, { 'one/checkpoints/9/stray.csv': 'a,b\n1,2\n' });
    const run = await readOnly(root);
    expect(run.format).toBe('keel');
    expect(run.path).toBe(join(root, 'one'));
    expect(points(run, 'kl/step')).toEqual([
      [1, 0.1],
      [2, Number.NaN],
      [3, 0.3],
    ]);
    expect(values(run, 'train/step')).toEqual([100, 200, 300]);
    expect(run.series.get('kl/step')!.wallTime[0]).toBeGreaterThan(1e9);
    expect(run.config.get('lr')).toBe(0.001);
    expect(run.config.get('net/hidden')).toBe('[64,64]');
    expect(run.config.get('environment/id')).toBe('CartPole-v1');
    expect(run.config.get('environment/reward/scale')).toBe(2);
    expect(run.config.get('status')).toBe('failed');
    expect(run.texts.get('error')).toBe('the loss was NaN');
    expect(run.texts.get('events/note')).toBe('once at step 300: a note');
  });

  it('that are being written are unfinished, and are found by any of their files', async () => {
    const root = temporaryDirectory();
    const writer = write(root);
    appendFileSync(join(root, 'one/metrics.jsonl'), '{"train/iteration":4,"tr');
    const run = await readOnly(join(root, 'one/metrics.jsonl'));
    expect(run.format).toBe('keel');
    expect(run.unfinished).toBe(true);
    expect(values(run, 'train/step')).toEqual([100, 200, 300]);
    writer.end('stopped', 'enough');
  });

  it('that were resumed say where', async () => {
    const root = temporaryDirectory();
    const writer = write(root);
    await writer.checkpoint({
      iteration: 3,
      step: 300,
      files: { 'policy.safetensors': Buffer.from('x') },
      state: {},
    });
    writer.row({ 'train/iteration': 4, 'train/step': 400, 'kl/step': 0.4 });
    writer.end('stopped', 'enough');
    const { writer: again } = RunWriter.resume(join(root, 'one'));
    again.row({ 'train/iteration': 4, 'train/step': 400, 'kl/step': 0.5 });
    again.end('finished');
    const run = await readOnly(root);
    expect(values(run, 'kl/step')).toEqual([0.1, Number.NaN, 0.3, 0.5]);
    expect(run.restarts).toEqual([4]);
  });

  it('with a damaged manifest still give their rows', async () => {
    const root = temporaryDirectory();
    write(root).end('finished');
    writeTree(root, { 'one/manifest.json': '{"kind": "keel-run", "schema": 1}' });
    const run = await readOnly(root);
    expect(run.series.get('train/step')!.length).toBe(3);
    expect(run.notes.join()).toMatch(/settings cannot be read/);
  });
});

describe('settings beside a log', () => {
  it.each(['config.yaml', 'hparams.yaml', 'params/agent.yaml'])(
    'that would keep the parser busy for minutes cost nothing but themselves: %s',
    async name => {
      const log = 'step,kl\n1,0.5\n2,0.25\n';
      const root = writeTree(temporaryDirectory(), {
        'progress.csv': log,
        [name]: '{'.repeat(1000),
        'args.json': '{"lr": 0.5}',
      });
      const before = processorMs();
      const run = await readOnly(root);
      expect(processorMs() - before).toBeLessThan(5000);
      expect(values(run, 'kl')).toEqual([0.5, 0.25]);
      expect(Object.fromEntries(run.config)).toEqual({ lr: 0.5 });
    },
  );
});
