/**
 * PPO end to end, with its log on disk: environment steps a second, and where the time goes.
 *
 * With `KEEL_SB3_PYTHON`, a Python that has Stable-Baselines3, the two are timed in turns, so that a slow moment of the
 * machine hits both; without it, the ratio is to what Stable-Baselines3 did on such a machine another day.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { train } from '../src/algos/runs.ts';
import { machine, median, report, round } from './measure.ts';

interface Case {
  readonly name: string;
  readonly env: string;
  readonly config: Record<'envs' | 'stepsPerRollout' | 'minibatchSize' | 'epochs' | 'steps', number>;
  readonly sb3: readonly [number, number];
}

/** What Stable-Baselines3 does in the same settings on a machine of this kind (torch 1.13, one thread). */
const cases: Case[] = [
  {
    name: 'CartPole, 8 envs x 256 steps, batch 256, 10 epochs, 64-64',
    env: 'CartPole-v1',
    config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 10, steps: 2048 * 60 },
    sb3: [3600, 4700],
  },
  {
    name: 'Pendulum, 1 env x 2048 steps, batch 64, 10 epochs, 64-64',
    env: 'Pendulum-v1',
    config: { envs: 1, stepsPerRollout: 2048, minibatchSize: 64, epochs: 10, steps: 2048 * 40 },
    sb3: [900, 1200],
  },
];

/** Where the time of an iteration goes, in seconds, and the whole run's. */
interface Timing {
  readonly collect: number;
  readonly update: number;
  readonly guard: number;
  readonly log: number;
  readonly run: number;
}

const rounds = 5;

export async function run(): Promise<void> {
  report({ bench: 'ppo', ...machine() });
  const python = process.env.KEEL_SB3_PYTHON;
  for (const one of cases) {
    const { name, config, sb3 } = one;
    const turns: { timing: Timing; perSecond: number; other: Sb3 | undefined }[] = [];
    for (let i = 0; i < (python ? rounds : 1); i++) {
      const timing = await trainOnce(one);
      const { collect, update, guard, log } = timing;
      const perSecond = (config.envs * config.stepsPerRollout) / (collect + update + guard + log);
      turns.push({ timing, perSecond, other: python ? sb3Once(python, one) : undefined });
    }
    const mid = (key: keyof Timing): number => median(turns.map(({ timing }) => timing[key]));
    const iteration = mid('collect') + mid('update') + mid('guard') + mid('log');
    const perSecond = median(turns.map(turn => turn.perSecond));
    const others = turns.flatMap(({ other }) => other ?? []);
    const ratios = turns.flatMap(turn => (turn.other ? turn.perSecond / turn.other.steps_per_second : []));
    report({
      name,
      steps_per_second: Math.round(perSecond),
      ...(others.length > 0
        ? {
            sb3_steps_per_second: median(others.map(each => each.steps_per_second)),
            ratio_to_sb3: round(median(ratios), 1),
            ratios: ratios.map(ratio => round(ratio, 1)),
            sb3: others[0].sb3,
            torch: others[0].torch,
          }
        : { ratio_to_sb3_then: [round(perSecond / sb3[1], 1), round(perSecond / sb3[0], 1)] }),
      collect_ms: round(mid('collect') * 1000, 1),
      update_ms: round(mid('update') * 1000, 1),
      guard_ms: round(mid('guard') * 1000, 2),
      log_ms: round(mid('log') * 1000, 2),
      guard_share: round(mid('guard') / iteration, 4),
      target_guard_share: 0.05,
      whole_run_steps_per_second: Math.round(config.steps / mid('run')),
    });
  }
}

async function trainOnce({ env, config }: Case): Promise<Timing> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    const rows: Readonly<Record<string, number>>[] = [];
    const start = performance.now();
    await train({ env, config, preset: {}, root, onRow: row => rows.push(row) });
    const seconds = (performance.now() - start) / 1000;
    // The first iterations warm up.
    const steady = rows.slice(5);
    const mid = (part: string): number => median(steady.map(row => row[`time/${part}_s`] ?? 0));
    return {
      collect: mid('collect'),
      update: mid('update'),
      guard: mid('guard'),
      log: mid('log'),
      run: seconds,
    };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

interface Sb3 {
  readonly steps_per_second: number;
  readonly sb3: string;
  readonly torch: string;
}

function sb3Once(python: string, { env, config }: Case): Sb3 {
  const { envs, stepsPerRollout, minibatchSize, epochs } = config;
  const script = fileURLToPath(new URL('ppo-sb3.py', import.meta.url));
  const numbers = [envs, stepsPerRollout, minibatchSize, epochs, 2048 * 6].map(String);
  const printed = execFileSync(python, [script, env, ...numbers], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as Sb3;
}
