/**
 * PPO end to end, with its log on disk: environment steps a second, and where the time goes.
 *
 * With `KEEL_SB3_PYTHON`, a Python that has Stable-Baselines3, the two are timed in turns, so that a slow moment of the
 * machine hits both; without it, the ratio is to what Stable-Baselines3 did on such a machine another day. With
 * `KEEL_RLTOOLS`, a program that does Pendulum's PPO in the same shape and prints `{"steps_per_second":…}`, so is that.
 *
 * Beside them: the time of the update's bare matrix products in ONNX Runtime, and that of the same products as
 * WebAssembly, on one thread.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { train } from '../src/algos/runs.ts';
import { compile, type Program, sizeOf } from '../src/engine/index.ts';
import { compileWasm } from '../src/engine/wasm/program.ts';
import { Rng } from '../src/random/rng.ts';
import { machine, median, report, round } from './measure.ts';
import { matrixProductsOnly } from './ppo-update.ts';

interface Case {
  readonly name: string;
  readonly env: string;
  readonly config: Record<'envs' | 'stepsPerRollout' | 'minibatchSize' | 'epochs' | 'steps', number>;
  /** Numbers in an observation, and those that a policy's network gives. */
  readonly observation: number;
  readonly action: number;
  readonly sb3: readonly [number, number];
  readonly rival?: string | undefined;
}

/** What Stable-Baselines3 does in the same settings on a machine of this kind (torch 1.13, one thread). */
const cases: Case[] = [
  {
    name: 'CartPole, 8 envs x 256 steps, batch 256, 10 epochs, 64-64',
    env: 'CartPole-v1',
    config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 10, steps: 2048 * 120 },
    observation: 4,
    action: 2,
    sb3: [3600, 4700],
  },
  {
    name: 'Pendulum, 1 env x 2048 steps, batch 64, 10 epochs, 64-64',
    env: 'Pendulum-v1',
    config: { envs: 1, stepsPerRollout: 2048, minibatchSize: 64, epochs: 10, steps: 2048 * 120 },
    observation: 3,
    action: 1,
    sb3: [900, 1200],
    rival: process.env.KEEL_RLTOOLS,
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

const parts = ['collect', 'update', 'guard', 'log'] as const;
const iterationOf = (timing: Timing): number => parts.reduce((sum, part) => sum + timing[part], 0);
const rounds = 5;

export async function run(): Promise<void> {
  report({ bench: 'ppo', ...machine() });
  const python = process.env.KEEL_SB3_PYTHON;
  for (const one of cases) {
    const { config, sb3 } = one;
    const samples = config.envs * config.stepsPerRollout;
    const products = await bareProducts(one);
    const turns: { timings: Timing[]; sb3: Sb3 | undefined; rival: number | undefined; floors: number[] }[] =
      [];
    for (let i = 0; i < (python ? rounds : 2); i++) {
      turns.push({
        timings: [await trainOnce(one, 1), await trainOnce(one, 2)],
        sb3: python ? sb3Once(python, one) : undefined,
        rival: one.rival ? rivalOnce(one.rival) : undefined,
        floors: products.map(time => time()),
      });
    }
    const mid = (of: (turn: (typeof turns)[number]) => number | undefined): number | undefined => {
      const values = turns.flatMap(turn => of(turn) ?? []);
      return values.length > 0 ? median(values) : undefined;
    };
    const ms = (seconds: number | undefined, digits = 1): number => round((seconds ?? 0) * 1000, digits);
    const [ort, wasm] = [0, 1].map(k => mid(turn => turn.floors[k]));
    report({
      name: one.name,
      what: 'bare matrix products of an update, one thread',
      onnxruntime_ms: ms(ort),
      webassembly_ms: ms(wasm),
    });
    for (const [k, threads] of [1, 2].entries()) {
      const perSecond = (turn: (typeof turns)[number]): number => samples / iterationOf(turn.timings[k]);
      const iteration = mid(turn => iterationOf(turn.timings[k]))!;
      const part = (name: keyof Timing): number => mid(turn => turn.timings[k][name])!;
      const ratios = turns.flatMap(turn => (turn.sb3 ? perSecond(turn) / turn.sb3.steps_per_second : []));
      const rivals = turns.flatMap(turn => (turn.rival ? perSecond(turn) / turn.rival : []));
      report({
        name: one.name,
        threads,
        steps_per_second: Math.round(mid(perSecond)!),
        ...(ratios.length > 0
          ? {
              sb3_steps_per_second: mid(turn => turn.sb3?.steps_per_second),
              ratio_to_sb3: round(median(ratios), 1),
              ratios: ratios.map(ratio => round(ratio, 1)),
              sb3: turns[0].sb3?.sb3,
              torch: turns[0].sb3?.torch,
            }
          : { ratio_to_sb3_then: [round(mid(perSecond)! / sb3[1], 1), round(mid(perSecond)! / sb3[0], 1)] }),
        ...(rivals.length > 0
          ? {
              rltools_steps_per_second: Math.round(mid(turn => turn.rival)!),
              ratio_to_rltools: round(median(rivals), 2),
            }
          : {}),
        collect_ms: ms(part('collect')),
        collect_us_a_step: round((part('collect') * 1e6) / samples, 2),
        update_ms: ms(part('update')),
        update_to_products: round(part('update') / ort!, 2),
        guard_ms: ms(part('guard'), 2),
        log_ms: ms(part('log'), 2),
        guard_and_log_share: round((part('guard') + part('log')) / iteration, 4),
        whole_run_steps_per_second: Math.round(config.steps / part('run')),
      });
    }
  }
}

/** Seconds of all matrix products of an update and nothing else: by ONNX Runtime and as WebAssembly. */
async function bareProducts({ config, observation, action }: Case): Promise<(() => number)[]> {
  const graph = matrixProductsOnly({
    samples: config.envs * config.stepsPerRollout,
    batch: config.minibatchSize,
    epochs: config.epochs,
    observation,
    action,
    hidden: 64,
  });
  const programs: Program[] = [await compile(graph, { checkFeeds: false }), compileWasm(graph)];
  const rng = new Rng(1);
  return programs.map(program => {
    const feeds = Object.fromEntries(
      program.inputs.map(({ name, shape }) => [
        name,
        Float32Array.from({ length: sizeOf(shape) }, () => 0.1 * rng.normal()),
      ]),
    );
    return () => {
      const times = Array.from({ length: 7 }, () => {
        const start = performance.now();
        program.run(feeds);
        return (performance.now() - start) / 1000;
      });
      return median(times);
    };
  });
}

function rivalOnce(program: string): number {
  const printed = execFileSync(program, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return (JSON.parse(printed.trim().split('\n').at(-1) ?? '') as { steps_per_second: number })
    .steps_per_second;
}

async function trainOnce({ env, config }: Case, threads: number): Promise<Timing> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    const rows: Readonly<Record<string, number>>[] = [];
    const start = performance.now();
    await train({ env, config: { ...config, threads }, preset: {}, root, onRow: row => rows.push(row) });
    const seconds = (performance.now() - start) / 1000;
    // The first iterations warm up, and the second thread joins when learning has taken half a second.
    const steady = rows.slice(Math.ceil((2 * rows.length) / 3));
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
