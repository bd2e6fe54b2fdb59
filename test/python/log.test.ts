/** A training in Python that writes our log: our own reader, doctor and server see it as it grows, and can change it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import {
  fittingCut,
  isWorthAnotherAttempt,
  regainedFactor,
  slowerFactor,
} from '../../src/kl/controllers/guarded-rate.ts';
import { bernoulli, categorical, composite, gaussian, guardSearch } from '../../src/kl/index.ts';
import { findMetric } from '../../src/metrics/registry.ts';
import { openRun, readAdjustments, readEvents, readRows, verifyRun } from '../../src/runs/index.ts';
import type { ActionAnswer, RunDetail, RunList } from '../../src/server/api.ts';
import { startKeel } from '../cli/support/keel.ts';
import { python } from '../envs/python/support/files.ts';
import { start, until } from '../server/support/client.ts';
import { scratch } from '../server/support/make-run.ts';

const packages = fileURLToPath(new URL('../../python', import.meta.url));
const env = { ...process.env, PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: '1' };

const loop = `
import sys, time, keel
rate = [0.001]
def set_rate(value): rate[0] = value
run = keel.start("CartPole-v1", root=sys.argv[1], seed=5, config={"learningRate": 0.001, "targetKl": None},
                 controls={"learningRate": set_rate, "targetKl": lambda value: None})
step = 0
while not run.stopping and step < 100_000:
    step += 64
    keel.log(step, {"charts/episodic_return": 20 + step / 1e3, "losses/approx_kl": 0.004, "train/lr": rate[0], "mine": float("nan")})
    time.sleep(0.02)
run.close()
`;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

test('is followed live by its exact names, changed, paused and stopped from the page', async () => {
  const root = scratch();
  const child = spawn(python || 'python3', ['-c', loop, root], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  children.push(child);
  await until(() => readdirSync(root).length === 1, 'it begins');
  const dir = join(root, readdirSync(root)[0]);
  await until(() => readRows(dir).items.length > 3, 'rows come while it runs');
  const { items, broken } = readRows(dir);
  expect(broken).toEqual([]);
  const names = Object.keys(items[1]);
  expect(names).toEqual([
    ...['train/iteration', 'train/step', 'episode/return', 'kl/step_k3', 'own/mine', 'train/lr'],
    ...['time/elapsed_s', 'time/steps_per_second', 'time/unix_s'],
  ]);
  expect(names.filter(name => findMetric(name) === undefined)).toEqual(['own/mine']);
  expect(items[1]).toMatchObject({ 'train/iteration': 2, 'train/step': 128, 'own/mine': Number.NaN });
  expect(openRun(dir)).toMatchObject({
    status: 'running',
    manifest: { algorithm: 'python', seed: 5, controls: ['learningRate', 'targetKl', 'paused'] },
  });

  const { get, send } = await start({ roots: [root], foreign: false });
  await until(
    async () => (await get('/api/runs')).json<RunList>().runs[0]?.state === 'running',
    'the page sees it',
  );
  const { id } = (await get('/api/runs')).json<RunList>().runs[0];
  const detail = async () => (await get(`/api/runs/${id}`)).json<RunDetail>();
  expect((await detail()).adjustable).toEqual({ learningRate: 0.001, targetKl: null, paused: 0 });
  const act = async (action: object) => send('POST', `/api/runs/${id}/actions`, action);
  const rate = await act({ type: 'set', key: 'learningRate', value: 0.0005 });
  expect(rate.json<ActionAnswer>().message).toMatch(/^learningRate is 0\.0005 from iteration \d+ on$/);
  await until(() => readRows(dir).items.at(-1)?.['train/lr'] === 0.0005, 'the loop has it');
  await until(async () => (await detail()).adjustable.learningRate === 0.0005, 'the page knows');
  expect((await act({ type: 'set', key: 'gamma', value: 0.9 })).status).toBe(422);

  expect((await act({ type: 'set', key: 'paused', value: 1 })).status).toBe(200);
  const waiting = readRows(dir).items.length;
  expect((await act({ type: 'set', key: 'targetKl', value: 0.02 })).status).toBe(200); // it answers while it waits
  expect(readRows(dir).items.length).toBe(waiting);
  await until(async () => (await detail()).adjustable.paused === 1, 'the page knows that it waits');
  expect((await act({ type: 'set', key: 'paused', value: 0 })).status).toBe(200);
  await until(() => readRows(dir).items.length > waiting + 2, 'it goes on');

  const gone = once(child, 'exit');
  expect((await act({ type: 'stop' })).status).toBe(200);
  expect(await gone).toEqual([0, null]);
  expect(openRun(dir)).toMatchObject({ status: 'stopped', manifest: { reason: 'stopped by page' } });
  expect(readAdjustments(dir).map(({ key, value }) => [key, value])).toEqual([
    ['learningRate', 0.0005],
    ['paused', 1],
    ['targetKl', 0.02],
    ['paused', 0],
  ]);
  const { items: events, broken: damaged } = readEvents(dir);
  expect(damaged).toEqual([]);
  expect(verifyRun(dir).problems).toEqual([]);
  expect(events.map(({ type }) => type)).toEqual(['started', 'act', 'act', 'act', 'act', 'stopped']);
});

test('one that is killed is known to be', async () => {
  const root = scratch();
  const child = spawn(python || 'python3', ['-c', loop, root], { env, stdio: 'ignore' });
  children.push(child);
  await until(() => readdirSync(root).length === 1, 'it begins');
  const dir = join(root, readdirSync(root)[0]);
  await until(() => readRows(dir).items.length > 1, 'it logs');
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  expect(openRun(dir).status).toBe('killed');
});

test('keel doctor --follow tells what it sees of it', async () => {
  const root = scratch();
  const program = `
import sys, time, keel
run = keel.start("CartPole-v1", root=sys.argv[1])
for i in range(1, 41):
    keel.log(i * 2048, {"charts/episodic_return": 20 + i, "losses/approx_kl": 0.5, "losses/value_loss": float("nan")})
print("ready", flush=True)
time.sleep(60)
`;
  const training = spawn(python || 'python3', ['-c', program, root], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(training);
  await once(training.stdout, 'data');
  const doctor = startKeel(['doctor', join(root, readdirSync(root)[0]), '--follow', '--interval', '0.2']);
  await until(() => /sick/.test(doctor.output.stdout), 'it says sick');
  doctor.child.kill('SIGINT');
  expect((await doctor.done).code).toBe(2);
});

const measured = `
import json, sys
from keel._search import search
data = json.load(sys.stdin)
out = {"found": [list(search(raw, bound, lambda share: raw * share ** power)) for raw, bound, power in data["searches"]]}
try:
    import torch
    from torch import distributions as td
    from keel import _kl
except ImportError:
    out["kl"] = None
else:
    make = {
        "gaussian": lambda p: td.Normal(p[:, : p.shape[1] // 2], p[:, p.shape[1] // 2 :].exp()),
        "categorical": lambda p: td.Categorical(logits=p),
        "bernoulli": lambda p: td.Bernoulli(logits=p),
        "hybrid": lambda p: (td.Normal(p[:, :2], p[:, 2:4].exp()), td.Categorical(logits=p[:, 4:])),
    }
    rows = lambda values: torch.tensor(values, dtype=torch.float64)
    out["kl"] = [_kl.kl(_kl.numbers(make[kind](rows(p))), _kl.numbers(make[kind](rows(q)))).tolist() for kind, p, q in data["kls"]]
from keel import _guarded_rate as rates
out["rates"] = [[rates.fitting_cut(kl, bound), rates.is_worth_another_attempt(rates.fitting_cut(kl, bound)),
    rates.slower_factor(factor, rates.fitting_cut(kl, bound)), rates.regained_factor(factor, kl, bound)] for kl, bound, factor in data["rates"]]
json.dump(out, sys.stdout)
`;

test("the guard for torch finds what Keel's own finds, and has its KLs", async context => {
  const kinds = {
    gaussian: gaussian(2),
    categorical: categorical(5),
    bernoulli: bernoulli(3),
    hybrid: composite([gaussian(2), categorical(4)]),
  };
  // Any numbers will do, near and far: a fixed sequence.
  let state = 12345;
  const next = (): number => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state / 2 ** 30 - 1;
  };
  const searches = [1e-3, 0.0101, 0.2, 3, 1e4].flatMap(raw =>
    [0.01, 0.05].flatMap(bound => [1, 2, 4].map(power => [raw, bound, power] as const)),
  );
  const kls = Object.entries(kinds).map(([kind, { paramSize }]) => {
    const p = Array.from({ length: 40 }, () => Array.from({ length: paramSize }, () => 2 * next()));
    const q = p.map((row, i) => row.map(value => value + next() * 10 ** -(i % 8)));
    return [kind as keyof typeof kinds, p, q] as const;
  });
  const rates = [0.001, 0.0149, 0.0151, 0.0501, 0.09, 0.1, 1, 4.7, 4.8, 40].flatMap(kl =>
    [1, 0.5, 2e-4].map(factor => [kl, 0.05, factor] as const),
  );
  const { stdout, stderr, status } = spawnSync(python || 'python3', ['-c', measured], {
    env,
    input: JSON.stringify({ searches, kls, rates }),
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  const theirs = JSON.parse(stdout) as {
    found: number[][];
    kl: number[][] | null;
    rates: (number | boolean)[][];
  };
  for (const [i, [raw, bound, power]] of searches.entries()) {
    const { scale, kl, backtracks } = await guardSearch(raw, bound, async share => raw * share ** power);
    const [theirScale, theirKl, theirRaw, looks] = theirs.found[i];
    expect([theirRaw, looks]).toEqual([raw, backtracks]);
    expect(theirScale).toBeCloseTo(scale, 12);
    expect(theirKl).toBeCloseTo(kl, 12);
  }
  for (const [i, [kl, bound, factor]] of rates.entries()) {
    const cut = fittingCut({ kl, klBegun: 0, shareWithin: 1 }, bound);
    const [theirCut, again, slower, regained] = theirs.rates[i];
    expect([theirCut, again, slower]).toEqual([cut, isWorthAnotherAttempt(cut), slowerFactor(factor, cut)]);
    expect(regained).toBe(regainedFactor(factor, { kl, klBegun: 0 }, bound));
  }
  if (theirs.kl === null) return context.skip('torch is not installed: its KLs are not compared');
  for (const [i, [kind, p, q]] of kls.entries()) {
    for (const [j, kl] of theirs.kl[i].entries()) {
      const ours = kinds[kind].kl(Float64Array.from(p[j]), Float64Array.from(q[j]));
      expect(Math.abs(kl - ours), `${kind} ${j}: ${kl}, ${ours}`).toBeLessThanOrEqual(1e-9 * ours + 1e-18);
    }
  }
});
