/**
 * Every command that takes settings refuses what is not one of them, what is wrong and what would do nothing, with exit
 * code 2 and the name of the key: for every key of every table. Each case is one command line with all keys in it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clonePolicySettings } from '../../src/algos/clone/policy/settings.ts';
import { cloneTextSettings } from '../../src/algos/clone/text/settings.ts';
import { grpoSettings } from '../../src/algos/grpo/settings.ts';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import { clone, train } from '../../src/algos/runs.ts';
import { settingTables } from '../../src/algos/settings.ts';
import { reportError } from '../../src/cli/errors.ts';
import { entries, makeProgram } from '../../src/cli/program.ts';
import type { SettingTable } from '../../src/settings/spec.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-every-key-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const runs: Record<string, string> = {};

beforeAll(async () => {
  const stopped = () => {
    const controller = new AbortController();
    return { root, signal: controller.signal, onRow: () => controller.abort() };
  };
  const small = { layers: 1, width: 16, heads: 2, tensorboard: false, csv: false };
  const envs = { envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 1, hidden: [4] };
  runs.ppo = (await train({ env: 'cartpole', config: envs, ...stopped() })).dir;
  runs.grpo = (await train({ task: 'arithmetic', config: small, preset: {}, ...stopped() })).dir;
  runs['clone-text'] = (await clone({ task: 'arithmetic', config: small, preset: {}, ...stopped() })).dir;
  const cloned = { steps: 64, envs: 2, hidden: [4], demonstrators: ['least-finish'] };
  runs.clone = (await clone({ env: 'cluster', config: cloned, preset: {}, ...stopped() })).dir;
});

/** What the command line answers, in this process: each case ends before anything is started. */
async function keel(
  words: readonly string[],
  sets: Readonly<Record<string, unknown>>,
): Promise<{ code: number; said: string[] }> {
  const pairs = Object.entries(sets).flatMap(([key, value]) => ['--set', `${key}=${JSON.stringify(value)}`]);
  let text = '';
  try {
    await (await makeProgram(words)).parseAsync([...words, ...pairs], { from: 'user' });
    return { code: 0, said: [] };
  } catch (error) {
    const code = reportError(error, part => {
      text += part;
    });
    return { code, said: text.trimEnd().split('\n') };
  }
}

/** Command lines that take settings of a table; `<run>` is one of its runs. */
const lines: readonly (readonly [line: string, table: SettingTable])[] = [
  ['train pendulum --no-preset', ppoSettings],
  ['train arithmetic --no-preset', grpoSettings],
  ['clone cluster --no-preset', clonePolicySettings],
  ['clone arithmetic --no-preset', cloneTextSettings],
  ...settingTables.flatMap(table => [['resume <run>', table] as const, ['fork <run>', table] as const]),
  ['config', ppoSettings],
  ['config pendulum --no-preset', ppoSettings],
  ['config arithmetic --no-preset', grpoSettings],
  ['config --clone', clonePolicySettings],
  ['config cluster --clone --no-preset', clonePolicySettings],
  ['config arithmetic --clone --no-preset', cloneTextSettings],
  ['preflight pendulum --no-preset', ppoSettings],
  ['preflight arithmetic --no-preset', grpoSettings],
];
const words = (line: string, { name }: SettingTable): string[] =>
  line.split(' ').map(word => (word === '<run>' ? runs[name] : word));

/** Each key in a line of its own, and nothing else. */
const namesEach = (
  { code, said }: { code: number; said: readonly string[] },
  keys: readonly string[],
): void => {
  const named = said.map(line => /^keel: --set (\w+)/.exec(line)?.[1] ?? line);
  expect(named.toSorted()).toEqual(keys.toSorted());
  expect(code).toBe(2);
};

test('every command that takes settings is here', async () => {
  const whole = await Promise.all(
    entries.map(async ({ name }) => (await makeProgram([name])).commands.find(one => one.name() === name)!),
  );
  const taking = whole
    .filter(({ options }) => options.some(({ long }) => long === '--set'))
    .map(command => command.name());
  // check-env takes options of the environment there, which are findings of its report; import settings of another trainer's run.
  expect(new Set(taking)).toEqual(
    new Set([...lines.map(([line]) => line.split(' ')[0]), 'eval', 'check-env', 'import']),
  );
});

describe.each(lines.map(([line, table]) => [line, table.name, table] as const))(
  'keel %s (%s)',
  (line, _, table) => {
    const entries = Object.entries(table.keys);

    test('a key that there is not', async () => {
      namesEach(await keel(words(line, table), { nosuchkey: 1, lerningRate: 1 }), [
        'nosuchkey',
        'lerningRate',
      ]);
    });

    test('keys of the other algorithms', async () => {
      const others = settingTables.flatMap(({ defaults }) => Object.entries(defaults));
      const foreign = Object.fromEntries(others.filter(([key]) => !Object.hasOwn(table.keys, key)));
      expect(Object.keys(foreign).length).toBeGreaterThan(20);
      namesEach(await keel(words(line, table), foreign), Object.keys(foreign));
    });

    test('a wrong value of every key', async () => {
      const wrong = Object.fromEntries(entries.map(([key]) => [key, { no: 'value' }]));
      namesEach(await keel(words(line, table), wrong), Object.keys(wrong));
    });

    test('every key that does nothing without another', async () => {
      const dependent = entries.filter(([, { needs }]) => needs !== undefined);
      expect(dependent.length).toBeGreaterThan(0);
      const unmet = dependent.map(([, { needs }]) => [
        needs!.key,
        needs!.not === undefined ? otherThan(table, needs!.key, needs!.is) : needs!.not,
      ]);
      const inert = dependent.map(([key, { fallback, needs }]) => [
        key,
        fallback === needs!.off ? 1 : fallback,
      ]);
      const keys = Object.fromEntries([
        ...inert,
        ...unmet.filter(([key]) => !inert.some(([own]) => own === key)),
      ]);
      namesEach(
        await keel(words(line, table), keys),
        inert.map(([key]) => String(key)),
      );
    });
  },
);

/** Another value of a choice. */
function otherThan({ defaults }: SettingTable, key: string, value: unknown): unknown {
  if (defaults[key] !== value) return defaults[key];
  const others: Readonly<Record<string, unknown>> = { advantage: 'mean' };
  expect(others, 'another value of each key that others need at its default').toHaveProperty(key);
  return others[key];
}

describe('what the actions make of a key', () => {
  const forContinuous = {
    noiseCorrelation: 0.5,
    logStdInitial: -1,
    logStdMin: -3,
    logStdMax: 1,
    logStdEnd: -2,
  };
  const clonesHave = ({ noiseCorrelation: _, logStdEnd: __, ...keys }: Partial<typeof forContinuous>) => keys;
  test.each(['train cartpole', 'preflight cartpole', 'config cartpole'])('keel %s', async line => {
    namesEach(await keel(words(line, ppoSettings), forContinuous), Object.keys(forContinuous));
  });
  test.each(['clone cluster --run-dir', 'config cluster --clone'])('keel %s', async line => {
    const cloned = clonesHave(forContinuous);
    const place = line.endsWith('--run-dir') ? [root] : [];
    namesEach(await keel([...words(line, clonePolicySettings), ...place], cloned), Object.keys(cloned));
  });
  test.each(['resume <run>', 'fork <run>'])('keel %s', async line => {
    // What a network began with cannot change anyway.
    const { logStdInitial: _, ...changes } = forContinuous;
    namesEach(await keel(words(line, ppoSettings), changes), Object.keys(changes));
    const cloned = clonesHave(changes);
    namesEach(await keel(words(line, clonePolicySettings), cloned), Object.keys(cloned));
  });
});

test.each(
  settingTables.flatMap(table => [
    ['resume', table.name, table] as const,
    ['fork', table.name, table] as const,
  ]),
)(
  'keel %s (%s) refuses each key that is part of the shape of a run',
  async (command, _, table: SettingTable) => {
    const other: Readonly<Record<string, unknown>> = {
      hidden: [8],
      activation: 'relu',
      network: 'set',
      reference: 'averaged',
      heads: 4,
      demonstrators: ['least-requests'],
      gamma: 0.5,
      logStdInitial: -1,
    };
    const shape = Object.entries(table.keys).filter(([, { change }]) => change === 'never');
    expect(shape.length).toBeGreaterThan(4);
    for (const [key, { fallback }] of shape) {
      const value = other[key] ?? (typeof fallback === 'boolean' ? !fallback : Number(fallback ?? 0) + 32);
      namesEach(await keel([command, runs[table.name]], { [key]: value }), [key]);
    }
  },
);

test('eval takes options of a task alone', async () => {
  for (const [key, { fallback }] of Object.entries(grpoSettings.keys)) {
    const { code, said } = await keel(['eval', 'arithmetic', '--from', runs.grpo], { [key]: fallback });
    expect(said).toEqual([
      `keel: --set ${key} has no effect on eval: only options of the environment or the task do, envOptions.… or taskOptions.…`,
    ]);
    expect(code).toBe(2);
  }
});
