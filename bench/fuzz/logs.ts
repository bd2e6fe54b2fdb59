/** Logs of every kind through finding, reading and judging; and the files that lie beside them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { KeelError } from '../../src/base/errors.ts';
import { toCanonical } from '../../src/doctor/dialects/translate.ts';
import { judged } from '../../src/doctor/doctor.ts';
import type { RawRun } from '../../src/doctor/raw-run.ts';
import { type Candidate, formatOf, type Source } from '../../src/doctor/readers/candidate.ts';
import { findRuns } from '../../src/doctor/readers/find.ts';
import { readRun } from '../../src/doctor/readers/read.ts';
import {
  evaluationsFile,
  notebookFile,
  sb3Table,
  streamOutput,
  tableOutput,
  tarFile,
  zipFile,
} from '../../test/doctor/support/archives.ts';
import { bytesField, varintField } from '../../test/doctor/support/proto.ts';
import {
  hparamsValue,
  packedFloats,
  scalarFile,
  sessionEvent,
  simpleValue,
  summaryEvent,
  tensorValue,
  textValue,
} from '../../test/doctor/support/tensorboard-file.ts';
import {
  configRecord,
  exitRecord,
  historyRecord,
  runRecord,
  wandbFile,
} from '../../test/doctor/support/wandb-file.ts';
import { type FuzzedReader, insist } from './reader.ts';

const rows = Array.from({ length: 12 }, (_, i) => i + 1);

/** A sound log of each kind that a file can be. */
export const logSamples: Readonly<Record<string, Buffer>> = {
  tensorboard: Buffer.concat([
    scalarFile(
      rows.map(step => ({ step, values: { 'train/approx_kl': step / 100, 'losses/value_loss': 1 / step } })),
    ),
    summaryEvent(
      { step: 13, wallTime: 1 },
      tensorValue('tensor', 'scalars', varintField(1, 1), packedFloats(5, 0.5)),
    ),
    summaryEvent(
      { step: 13, wallTime: 1 },
      tensorValue('content', undefined, varintField(1, 2), bytesField(4, Buffer.alloc(8))),
    ),
    summaryEvent(
      { step: 14 },
      textValue('hyperparameters/text_summary', '|param|value|\n|-|-|\n|lr|0.1|\n|seed|1|'),
    ),
    summaryEvent({ step: 14 }, hparamsValue({ lr: 0.5, name: 'x', on: true })),
    sessionEvent({ step: 8, wallTime: 9 }, 1),
    summaryEvent({ step: 9 }, simpleValue('train/approx_kl', 3)),
  ]),
  wandb: wandbFile([
    runRecord('id', 'project', [[['lr'], '0.1']]),
    configRecord([[['model', 'dim'], '{"a": [1, 2], "b": null}']]),
    ...rows.map(step =>
      historyRecord(step, [
        [['train', 'kl'], `${step / 10}`],
        ['_timestamp', '1700000000'],
        ['h', '{"_type":"histogram"}'],
      ]),
    ),
    exitRecord(1),
  ]),
  csv: Buffer.from(
    `time/total_timesteps,train/approx_kl,"name, quoted",config/lr\n${rows.map(i => `${i * 100},${i / 7},"text ""${i}""",0.1`).join('\n')}\n`,
  ),
  monitor: Buffer.from(
    `#{"t_start": 1700000000.5, "env_id": "CartPole-v1"}\nr,l,t\n${rows.map(i => `${i}.0,${i},${i}.5`).join('\n')}\n`,
  ),
  jsonl: Buffer.from(
    `${rows.map(i => JSON.stringify({ step: i, loss: 1 / i, info: { learner: { kl: i, n: null } }, config: { lr: 1 }, s: 'NaN' })).join('\n')}\n`,
  ),
  'json-list': Buffer.from(
    JSON.stringify(
      rows.map(i => ({ step: i, loss: 1 / i, a: { b: [i] } })),
      undefined,
      1,
    ),
  ),
  'trainer-state': Buffer.from(
    JSON.stringify(
      {
        epoch: 1,
        global_step: 12,
        log_history: rows.map(i => ({ step: i, loss: 1 / i, kl: 0 })),
        max_steps: 99,
      },
      undefined,
      2,
    ),
  ),
  'verl-console': Buffer.from(
    rows
      .map(
        i =>
          `\x1b[36m(TaskRunner pid=4${i})\x1b[0m step:${i} - actor/ppo_kl:np.float64(${i / 9}) - critic/score/mean:${i}\n`,
      )
      .join(''),
  ),
  console: Buffer.from(
    `${rows.map(i => `--------------------\n| train/ |      |\n|    kl | 0.0${i} |\n|    loss | ${i} |\n--------------------\n`).join('')}{'loss': 0.5, 'kl': np.float64(0.1), 'epoch': 1}\nTraceback (most recent call last):\nValueError: x\n`,
  ),
  scalars: Buffer.from(
    `Wall time,Step,Value\n${rows.map(i => `170000000${i % 10}.5,${i},${i / 3}`).join('\n')}\n`,
  ),
  'json-document': Buffer.from(
    JSON.stringify(
      { config: { lr: 0.1 }, metrics: { reward: rows, kl: rows.map(i => i / 100), loss: rows } },
      undefined,
      1,
    ),
  ),
};

const printedRows = rows
  .map(i => sb3Table({ 'rollout/ep_rew_mean': i, 'time/iterations': i, 'time/total_timesteps': 100 * i }))
  .join('');
const store = (name: string): Buffer =>
  readFileSync(new URL(`../../test/doctor/fixtures/stores/${name}`, import.meta.url));

/** Sound files of kinds that hold several runs, or other files. */
const severalSamples: Readonly<Record<string, Buffer>> = {
  zip: zipFile([
    { name: 'a/progress.csv', content: logSamples.csv },
    { name: 'b/args.json', content: '{"lr": 0.1}' },
    { name: 'b/log.ipynb', content: notebookFile([[streamOutput(printedRows)]]) },
  ]),
  tar: tarFile([
    { name: 'a/progress.csv', content: logSamples.csv },
    { name: 'b/x.jsonl', content: logSamples.jsonl },
  ]),
  'tar.gz': gzipSync(tarFile([{ name: 'a/progress.csv', content: logSamples.csv }])),
  notebook: Buffer.from(
    notebookFile([
      [streamOutput(printedRows + printedRows)],
      [
        tableOutput(
          ['Step', 'Training Loss', 'reward'],
          rows.map(i => [i, 1 / i, i]),
        ),
      ],
      [{ output_type: 'error', ename: 'E', evalue: 'x' }],
    ]),
  ),
  docker: Buffer.from(
    printedRows
      .split(/(?<=\n)/)
      .map(log => `${JSON.stringify({ log, stream: 'stdout', time: 't' })}\n`)
      .join(''),
  ),
  npz: evaluationsFile(12, 3),
  mlflow: store('mlflow.db'),
  trackio: store('trackio.db'),
  'long-table': Buffer.from(
    `run,time,step,metric,value\n${rows.map(i => `a,1700000000,${i},kl,0.${i}\nb,,${i},"reward",${i}`).join('\n')}\n`,
  ),
  charts: Buffer.from(
    `"Step","a - kl","a - kl__MIN","b - kl","b - kl__MAX"\n${rows.map(i => `${i},0.${i},0,${i},1`).join('\n')}\n`,
  ),
  printed: Buffer.from(
    [
      '[INFO] Hyperparameters for behavior name A: \n\thyperparameters:\t\n\t  batch_size:\t64\n',
      ...rows.map(
        i =>
          `[INFO] A. Step: ${i}000. Time Elapsed: ${i}.0 s. Mean Reward: ${i}.5. Std of Reward: 1.0. Training.\n[INFO] B. Step: ${i}000. Time Elapsed: 1.0 s. Mean Reward: 1.0. Std of Reward: 1.0. Training.\n`,
      ),
    ].join(''),
  ),
  deepspeed: Buffer.from(
    rows
      .map(
        i =>
          `Epoch: 0 | Step: ${i} | PPO Epoch: 1 | Actor Loss: 0.${i} | Critic Loss: 1.${i} | Unsupervised Loss: 0.0\nAverage reward score: ${i}.5\n`,
      )
      .join(''),
  ),
  frame: Buffer.from(`   step  reward  loss\n${rows.map(i => `${i}  ${i}00  ${i}.5  0.${i}`).join('\n')}\n`),
  blocks: Buffer.from(rows.map(i => `== Episode ${i} ==\n reward: ${i}.5\n loss: 0.${i}\n\n`).join('')),
  prefixed: Buffer.from(printedRows.replace(/^/gm, 'trainer-1  | ')),
};

/** What holds of every run that was read. */
function check(run: RawRun): void {
  insist(run.series.size > 0, () => 'a run without series');
  for (const [name, series] of run.series) {
    const { length, count, x, values, min, max, broken, wallTime } = series;
    insist(typeof name === 'string', () => `a name that is a ${typeof name}`);
    for (const array of [x, values, min, max, broken, wallTime])
      insist(array.length === length, () => `${name}: ${array.length} of ${length} values`);
    insist(length > 0, () => `${name} is empty`);
    insist(count >= length, () => `${name}: ${length} points of ${count} values`);
    for (let i = 0; i < length; i++) {
      if (i > 0 && !(x[i] >= x[i - 1])) throw new Error(`${name}: x falls from ${x[i - 1]} to ${x[i]}`);
      if (Number.isFinite(values[i]) !== broken[i] < (count === length ? 1 : count)) {
        throw new Error(`${name}: ${values[i]} with ${broken[i]} broken`);
      }
    }
  }
  for (const value of run.config.values()) {
    if (value !== null && !['string', 'number', 'boolean'].includes(typeof value))
      throw new Error(`setting ${typeof value}`);
  }
  for (const note of run.notes) insist(!note.includes('\n'), () => `a note of several lines: ${note}`);
}

/** Judges what was read: a verdict of numbers, or a sentence why there is none. */
async function judge(candidate: Candidate): Promise<void> {
  const run = await readRun(candidate);
  check(run);
  const { verdict, confidence, findings } = judged(toCanonical(run));
  insist(['healthy', 'watch', 'sick', 'cannot-tell'].includes(verdict), () => `a verdict that is ${verdict}`);
  insist(confidence >= 0 && confidence <= 1, () => `a confidence of ${confidence}`);
  for (const { code, from, to } of findings)
    insist(Number.isFinite(from) && Number.isFinite(to), () => `${code} from ${from} to ${to}`);
}

/** As it would be read were it taken for one. */
function forced(kind: string, file: string): Candidate {
  const source = (
    kind === 'tensorboard'
      ? { kind, groups: [{ files: [file] }] }
      : kind === 'monitor'
        ? { kind, monitors: [file, file] }
        : kind === 'scalars'
          ? { kind, scalars: [file] }
          : { kind, file }
  ) as Source;
  const directory = dirname(file);
  return { path: file, format: formatOf(source), files: [file], source, directory, notes: [] };
}

const logs = Object.entries(logSamples).map(
  ([kind, sample]): FuzzedReader => ({
    name: kind,
    open: directory => ({
      samples: [sample],
      async read(bytes) {
        // One series of TensorBoard is named after its file.
        const file = join(directory, 'run-a-tag-train_approx_kl.csv');
        writeFileSync(file, bytes);
        try {
          await judge(forced(kind, file));
        } catch (error) {
          if (!(error instanceof KeelError)) throw error;
        }
        for (const candidate of (await findRuns(file)).candidates) await judge(candidate);
      },
    }),
  }),
);

/** Files of a tree with a run of each kind that is a directory. Those of one line are settings. */
const tree: Readonly<Record<string, string>> = {
  'mlflow/meta.yaml': "run_name: x\nstatus: 'RUNNING'\n",
  'mlflow/metrics/loss': rows.map(step => `170000000${step}000 0.${step} ${step}\n`).join(''),
  'mlflow/params/lr': '0.1',
  'keel/manifest.json': '{"kind": "keel-run", "schema": 1, "config": {"lr": 1}}',
  'keel/metrics.jsonl': rows
    .map(n => `{"train/iteration":${n},"train/step":${n},"kl/step":"NaN"}\n`)
    .join(''),
  'keel/events.jsonl':
    '{"type":"note","iteration":1,"step":1,"message":"m","text":"t"}\n{"type":"resumed","iteration":1,"step":1,"message":"m","pid":1,"checkpoint":3,"droppedRows":0,"droppedEvents":0}\n',
  'plain/params.json': '{"lr": 0.1, "model": {"a": [1, 2, {"b": null}]}}',
  'plain/config.yaml': 'lr: 0.1\nmodel: &m\n  a: [1, 2]\nother: *m\n',
  'plain/hparams.yaml': 'lr: 0.1\nepochs: 10\nclip: {range: 0.2}\n',
  'plain/params/agent.yaml': 'seed: 1\nalgorithm:\n  class_name: PPO\n  learning_rate: 0.001\n',
  'wandb/files/config.yaml': 'lr:\n  value: 0.1\nx:\n  value: {a: 1}\n',
  'wandb/files/output.log': 'Traceback (most recent call last):\nValueError: x\n',
};

const directories: FuzzedReader = {
  name: 'directories',
  open(directory) {
    const put = (name: string, content: string | Buffer): void => {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), content);
    };
    for (const [name, text] of Object.entries(tree)) put(name, text);
    put('plain/log.csv', logSamples.csv);
    put('wandb/run-x.wandb', logSamples.wandb);
    const names = Object.keys(tree);
    return {
      samples: Object.values(tree).map(text => Buffer.from(text)),
      async read(bytes, sample) {
        const name = names[sample];
        put(name, bytes);
        try {
          let refused: unknown;
          const { candidates } = await findRuns(join(directory, name.split('/')[0]));
          for (const candidate of candidates)
            await judge(candidate).catch(error => {
              if (!(error instanceof KeelError)) throw error;
              refused = error;
            });
          if (refused !== undefined) throw refused;
        } finally {
          put(name, tree[name]);
        }
      },
    };
  },
};

/** Files that are found before they are read: that tells how many runs are in them. */
const several = Object.entries(severalSamples).map(
  ([kind, sample]): FuzzedReader => ({
    name: kind,
    open: directory => ({
      samples: [sample],
      async read(bytes) {
        const file = join(directory, 'x.log');
        writeFileSync(file, bytes);
        if (kind === 'trackio') writeFileSync(`${file}-wal`, store('trackio.db-wal'));
        for (const candidate of (await findRuns(file)).candidates) await judge(candidate);
      },
    }),
  }),
);

export const logReaders: readonly FuzzedReader[] = [...logs, ...several, directories];
