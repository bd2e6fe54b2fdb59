import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { train } from '../../src/algos/runs.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { machine, median, report, round } from '../measure.ts';

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const rounds = 5;

export async function run(): Promise<void> {
  report({ bench: 'python', ...machine() });
  const python = process.env.KEEL_SB3_PYTHON ?? '';
  await roundTrips(python);
  if (python !== '') for (const one of cases) await inTurns(python, one);
}

/** Of a batch of so many environments that do nothing. */
async function roundTrips(python: string): Promise<void> {
  for (const envCount of [1, 16]) {
    const envs = await makeVectorEnv(`${file('echo_env.py')}:Echo`, { envCount, options: { python } });
    await envs.reset({ seed: 1 });
    const actions = new Float32Array(envCount);
    const times: number[] = [];
    for (let i = 0; i < 22_000; i++) {
      const start = performance.now();
      const pending = envs.step(actions);
      if (pending) await pending;
      if (i >= 2000) times.push(1000 * (performance.now() - start));
    }
    await envs.close();
    report({
      what: 'a step of the vector, environments that do nothing',
      environments: envCount,
      us: round(median(times), 1),
    });
  }
}

interface Case {
  readonly env: string;
  readonly config: Record<'envs' | 'stepsPerRollout' | 'minibatchSize' | 'epochs', number>;
}

const cases: readonly Case[] = [
  { env: 'CartPole-v1', config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 10 } },
  { env: 'Pendulum-v1', config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 10 } },
];
const iterations = 12;

async function inTurns(python: string, one: Case): Promise<void> {
  const found: { keel: number; sb3: number; of: Record<string, unknown> }[] = [];
  for (let i = 0; i < rounds; i++) {
    const of = sb3Once(python, one);
    found.push({ keel: await keelOnce(python, one), sb3: of.steps_per_second as number, of });
  }
  report({
    what: "PPO on the same environments of Gymnasium's, in turns",
    env: one.env,
    ...one.config,
    keel_steps_per_second: Math.round(median(found.map(({ keel }) => keel))),
    sb3_steps_per_second: Math.round(median(found.map(({ sb3 }) => sb3))),
    ratio: round(median(found.map(({ keel, sb3 }) => keel / sb3)), 1),
    ratios: found.map(({ keel, sb3 }) => round(keel / sb3, 1)),
    sb3: found[0].of.sb3,
    torch: found[0].of.torch,
  });
}

async function keelOnce(python: string, { env, config }: Case): Promise<number> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    const samples = config.envs * config.stepsPerRollout;
    const rows: Readonly<Record<string, number>>[] = [];
    await train({
      env: `gym:${env}`,
      envOptions: { python },
      config: { ...config, steps: samples * iterations, record: false },
      preset: {},
      root,
      onRow: row => rows.push(row),
    });
    const seconds = rows
      .slice(iterations / 3)
      .map(row =>
        ['collect', 'update', 'guard', 'log'].reduce((sum, part) => sum + (row[`time/${part}_s`] ?? 0), 0),
      );
    return samples / median(seconds);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function sb3Once(python: string, { env, config }: Case): Record<string, unknown> {
  const { envs, stepsPerRollout, minibatchSize, epochs } = config;
  const numbers = [envs, stepsPerRollout, minibatchSize, epochs, envs * stepsPerRollout * 6].map(String);
  const printed = execFileSync(python, [file('../ppo-sb3.py'), env, ...numbers], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
}
