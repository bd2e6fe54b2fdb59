/**
 * Old runs live on: what version 0.1.0 wrote is resumed to pinned bits (where the arithmetic is the same still, those that it would
 * have come to), evaluated, forked, exported, begun from and shown, as by that version. By the command line and the server alone.
 */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { keel as endingKeel, scratch, startKeel } from '../cli/support/keel.ts';
import { bitsArePinned } from '../support/processors.ts';
import {
  type Expected,
  expectedFile,
  type Learnt,
  learnt,
  limited,
  type Outcome,
  oldRuns,
  processor,
  type Results,
  resultsOf,
  sha256,
  shown,
  unpackRuns,
} from './support/old-runs.ts';

const expected = JSON.parse(readFileSync(expectedFile, 'utf8')) as Expected;
/** On other processors the bits are others: there, numbers must be near those of the first that was recorded. */
const bitsAreKnown = processor() in expected.results || bitsArePinned;
const wanted = expected.results[processor()] ?? Object.values(expected.results)[0];

const root = scratch();
const pristine = join(root, 'pristine');
beforeAll(() => unpackRuns(pristine));
/** That version remembered no trust, and two of its runs name a file. */
const opening = ['eval', 'export', 'fork', 'resume'];
const keel = limited(args => endingKeel(opening.includes(args[0]) ? [...args, '--trust'] : args), 2);

/** A directory of runs with a copy of an old one, to change. */
function copied(name: string, place: string): string {
  const own = join(root, place, name);
  cpSync(join(pristine, name), join(own, name), { recursive: true });
  return own;
}

/** Where two values differ by more than this; words and whole structures must be the same. */
function differences(got: unknown, want: unknown, tolerance: number, path = ''): string[] {
  if (typeof got === 'number' && typeof want === 'number')
    return Math.abs(got - want) <= tolerance * Math.max(1, Math.abs(want))
      ? []
      : [`${path}: ${got}, not ${want}`];
  if (typeof got !== 'object' || typeof want !== 'object' || got === null || want === null)
    return Object.is(got, want) ? [] : [`${path}: ${got}, not ${want}`];
  const keys = new Set([...Object.keys(got), ...Object.keys(want)]);
  const at = (value: object, key: string): unknown => (value as Record<string, unknown>)[key];
  return [...keys].flatMap(key => differences(at(got, key), at(want, key), tolerance, `${path}/${key}`));
}

/** What an evaluation told then: what it tells besides, by now, is nothing that it could be compared with. */
function toldThen(evaluated: unknown): unknown {
  const { other: _, differ: __, standardError: ___, reward, ...rest } = evaluated as Record<string, unknown>;
  if (reward === undefined) return rest;
  const { standardError: ____, ...then } = reward as Record<string, unknown>;
  return { ...rest, reward: then };
}

function expectSame(got: unknown, want: unknown): void {
  if (bitsAreKnown) expect(got).toEqual(want);
  else expect(differences(got, want, 1e-3)).toEqual([]);
}

/**
 * What PPO's runs come to was recorded again when its two networks became programs with a clipping each (docs/decisions/0010), and grpo's
 * with the rule of docs/decisions/0002. Of all others the bits are those that version 0.1.0 would have come to.
 */
function expectLearnt(got: Learnt | undefined, want: Learnt): void {
  const { bits, ...learnt } = withColumnsOf(got!, want);
  const { bits: wantedBits, ...wantedLearnt } = want;
  expectSame(learnt, wantedLearnt);
  // What state.json holds shows in all that follows from it; the order of its keys is no contract.
  const { 'state.json': _, ...weights } = bits;
  const { 'state.json': __, ...wantedWeights } = wantedBits;
  if (bitsAreKnown) expect(weights).toEqual(wantedWeights);
  else expect(Object.keys(bits)).toEqual(Object.keys(wantedBits));
}

/** Without metrics that the version that was asked did not log. */
const withColumnsOf = (got: Learnt, { rows }: Learnt): Learnt => ({
  ...got,
  rows: Object.fromEntries(Object.entries(got.rows).filter(([name]) => Object.hasOwn(rows, name))),
});

test('each kind of run is there', () => {
  expect(Object.keys(wanted)).toEqual(oldRuns.map(({ name }) => name));
  expect(Object.keys(expected.shown)).toEqual(oldRuns.map(({ name }) => name));
});

// Processes of several runs at once, each of which does little.
describe.concurrent('a run of version 0.1.0', { timeout: 300_000 }, () => {
  test.each(oldRuns)('$name', async run => {
    const got: Results = await resultsOf(keel, run, pristine, join(root, run.name));
    const want = wanted[run.name];
    expect(Object.keys(got).sort()).toEqual(Object.keys(want).sort());
    // A network of then is another program now, which rounds otherwise: continuous actions differ in their last digits.
    if (run.text) expectSame(toldThen(got.evaluated), want.evaluated);
    else if (!run.otherNumbers)
      expect(differences(toldThen(got.evaluated), want.evaluated, 1e-4)).toEqual([]);
    expectSame(got.asModel && toldThen(got.asModel), want.asModel);
    // The graph may be another one, which rounds otherwise.
    expect(differences(got.exported, want.exported, bitsAreKnown ? 1e-6 : 1e-3)).toEqual([]);
    for (const what of ['resumed', 'forked', 'trainedFrom'] as const)
      if (want[what] && run.otherNumbers)
        expect(got[what]).toMatchObject(
          Object.fromEntries(
            (['status', 'step', 'checkpoints'] as const).map(key => [key, want[what]![key]]),
          ),
        );
      else if (want[what]) expectLearnt(got[what], want[what]);
  });

  // What that version could not do, so that there are no bits of it to compare with.
  test.each(oldRuns.filter(run => run.fork === undefined))('$name is forked', async ({ name, longer }) => {
    const own = copied(name, 'forks');
    const id = `${name}-fork`;
    const flags = [...longer!, '--id', id, '--run-dir', own, '--json'];
    const { code, stderr } = await keel(['fork', name, '--checkpoint', 'last', ...flags]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [before, forked] = [name, id].map(run => learnt(join(own, run)));
    expect(forked).toMatchObject({ status: 'finished', parent: { id: name, step: before.step } });
    expect(forked.step).toBeGreaterThan(before.step);
    // Iterations begin at 1, steps go on.
    const { 'train/iteration': iterations, 'train/step': steps } = forked.rows;
    expect(iterations[0]).toBe(1);
    expect(steps[0]).toBeGreaterThan(before.step);
    expect(forked.checkpoints).toEqual(expect.arrayContaining([String(before.step), String(forked.step)]));
    // The other run stays as it is.
    expect(before).toEqual(learnt(join(pristine, name)));
  });

  test.each(oldRuns.filter(run => run.text))('$name is exported as a model', async ({ name }) => {
    const model = join(root, `${name}-model`);
    const { code, stderr } = await keel([
      ...['export', join(pristine, name), '--checkpoint', 'last', '-o', model],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(sha256(join(model, 'model.safetensors'))).toBe(
      learnt(join(pristine, name)).bits['model.safetensors'],
    );
  });

  test('a clone of an environment that has finished goes on when it is told to', async () => {
    const own = copied('clone-policy', 'longer');
    const resume = (...flags: string[]): Promise<Outcome> =>
      keel(['resume', 'clone-policy', '--run-dir', own, ...flags]);
    const done = await resume();
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(/clone-policy has done its 3 epochs: keel resume .* --set epochs=6 goes on/);
    expect(await resume('--set', 'epochs=5')).toMatchObject({ code: 0, stderr: '' });
    const { status, step, rows } = learnt(join(own, 'clone-policy'));
    expect({ status, step }).toEqual({ status: 'finished', step: 3000 });
    expect(rows['train/iteration']).toEqual([1, 2, 3, 4, 5]);
  });

  test('keel runs and the page show all of them', async () => {
    const { child, done, output } = startKeel(['dash', pristine, '--port', '0', '--read-only', '--no-token']);
    const address = (): string | undefined => /http:\/\/[^/\s]+/.exec(output.stdout)?.[0];
    while (address() === undefined) {
      if (child.exitCode !== null) throw new Error(`keel dash ended: ${output.stderr}`);
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    const get = async (path: string): Promise<Record<string, unknown>> =>
      (await fetch(`${address()}${path}`)).json() as Promise<Record<string, unknown>>;
    expect(await shown(keel, pristine, get)).toEqual(expected.shown);
    child.kill('SIGINT');
    expect((await done).code).toBe(0);
  });
});
