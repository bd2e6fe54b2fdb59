/** Optuna itself opens our journal, and we open one that Optuna wrote: Debian's python3-optuna. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it } from 'vitest';
import { JournalWriter, readJournal } from '../../src/studies/journal.ts';
import { fromPythonJson } from '../../src/studies/optuna-format.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { newDirectory, outcome, study } from './support/studies.ts';

const root = temporaryRoot('optuna');
const python = '/usr/bin/python3';
const finds = "import importlib.util as u, sys; sys.exit(u.find_spec('optuna') is None)";
const hasOptuna = spawnSync(python, ['-c', finds]).status === 0;
if (!hasOptuna)
  console.warn(`${python} has no optuna (Debian's python3-optuna): what Optuna sees is not tested`);

/** One process for all programs: to load Optuna takes a second. It answers each line with one. */
const loop = `
import contextlib, io, json, sys, traceback, warnings
warnings.simplefilter('ignore')
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from optuna.storages import JournalStorage, JournalFileStorage
for line in sys.stdin:
  asked = json.loads(line)
  storage = JournalStorage(JournalFileStorage(asked['journal']))
  def study(name='tune'): return optuna.load_study(study_name=name, storage=storage)
  printed, failed = io.StringIO(), None
  try:
    with contextlib.redirect_stdout(printed):
      exec(asked['program'], {'json': json, 'optuna': optuna, 'storage': storage, 'study': study})
  except BaseException: failed = traceback.format_exc()
  print(json.dumps({'printed': printed.getvalue(), 'failed': failed}), flush=True)
`;
const child = hasOptuna
  ? spawn(python, ['-c', loop], { stdio: ['pipe', 'pipe', 'inherit'], cwd: root })
  : undefined;
afterAll(() => void child?.kill());
const answers = child && createInterface({ input: child.stdout })[Symbol.asyncIterator]();

/** What a program prints as JSON. `study(name)` opens the journal. */
async function optuna(journal: string, program: string): Promise<unknown> {
  child!.stdin.write(`${JSON.stringify({ journal, program })}\n`);
  const { value, done } = await answers!.next();
  if (done) throw new Error('Python ended: what it said is above');
  const { printed, failed } = JSON.parse(value) as { printed: string; failed: string | null };
  if (failed !== null) throw new Error(failed);
  return printed.trim() === '' ? undefined : fromPythonJson(printed);
}

const tell = `
s = study()
print(json.dumps({
  'direction': s.direction.name,
  'best': s.best_trial.number,
  'bestValue': s.best_value,
  'trials': [{
    'number': t.number, 'state': t.state.name, 'params': t.params, 'value': t.value,
    'rungs': t.intermediate_values, 'seeds': t.user_attrs.get('keel:seeds'),
    'outcomes': sum(k.startswith('keel:outcome:') for k in t.user_attrs),
    'constraints': t.system_attrs.get('constraints'),
    'seconds': t.duration.total_seconds() if t.duration else None,
    'names': {k: type(d).__name__ for k, d in t.distributions.items()},
  } for t in s.trials]}))
`;

describe.skipIf(!hasOptuna)('Optuna', () => {
  it('opens our journal: trials, parameters, values, states, rungs, constraints, the best', async () => {
    const path = join(newDirectory(root), 'journal.log');
    let now = Date.parse('2026-03-04T05:06:07.089Z');
    const writer = new JournalWriter(path, study(), () => now);
    writer.createTrial({ params: { learningRate: 1e-3, epochs: 7, hidden: [64, 64] }, seeds: [0, 1] });
    writer.createTrial({ params: { learningRate: 0.01, hidden: null, adaptiveRate: false }, seeds: [0, 1] });
    writer.createTrial({ params: { clipRange: 0.2, hidden: '[32]' }, seeds: [0] });
    writer.createTrial({ params: { hidden: 0.5 }, seeds: [0] });
    writer.createTrial({ params: { hidden: true }, seeds: [0], state: 'waiting' });
    writer.setOutcome(0, outcome());
    writer.setOutcome(0, outcome({ seed: 1, klLargest: Number.POSITIVE_INFINITY, value: Number.NaN }));
    writer.setRung(0, 1000, 1.5);
    writer.setRung(2, 1000, Number.NEGATIVE_INFINITY);
    now += 2500;
    writer.endTrial(0, { state: 'complete', value: 412.5, violations: [] });
    writer.endTrial(1, { state: 'complete', value: 13, violations: ['seed 0 is sick'] });
    writer.endTrial(2, { state: 'pruned', value: null, violations: [] });
    writer.endTrial(3, { state: 'failed', value: null, violations: [] });
    writer.close();
    const seen = (await optuna(path, tell)) as { trials: Record<string, unknown>[] };
    expect(seen).toMatchObject({ direction: 'MAXIMIZE', best: 0, bestValue: 412.5 });
    expect(seen.trials.map(({ state }) => state)).toEqual([
      'COMPLETE',
      'COMPLETE',
      'PRUNED',
      'FAIL',
      'WAITING',
    ]);
    expect(seen.trials[0]).toMatchObject({
      params: { learningRate: 1e-3, epochs: 7, hidden: '[64,64]' },
      names: {
        learningRate: 'FloatDistribution',
        epochs: 'IntDistribution',
        hidden: 'CategoricalDistribution',
      },
      rungs: { 1000: 1.5 },
      seeds: [0, 1],
      outcomes: 2,
      constraints: [0],
      seconds: 2.5,
    });
    expect(seen.trials[1]).toMatchObject({
      params: { learningRate: 0.01, hidden: null, adaptiveRate: false },
      value: 13,
      constraints: [1],
    });
    expect(seen.trials[2]).toMatchObject({
      params: { clipRange: 0.2, hidden: '[32]' },
      value: null,
      rungs: { 1000: '-Infinity' },
    });
  });

  it('finds the winner as docs/sweeps.md says, and not what only confirms it or may not win', async () => {
    const path = join(newDirectory(root), 'journal.log');
    const writer = new JournalWriter(path, study({ name: 'cartpole' }));
    const ended = [
      ['search', 3, []],
      ['search', 7, []],
      ['search', 8, ['the doctor calls seed 0 sick']],
      ['confirm-default', 9, []],
    ] as const;
    for (const [purpose, value, violations] of ended) {
      const { number } = writer.createTrial({ params: { epochs: value }, seeds: [0], purpose });
      writer.endTrial(number, { state: 'complete', value, violations });
    }
    writer.createTrial({ params: { epochs: 5 }, seeds: [0] });
    writer.close();
    const [, program] = /```python\n(.*?)```/s.exec(
      readFileSync(new URL('../../docs/sweeps.md', import.meta.url), 'utf8'),
    )!;
    expect(program).toContain('"studies/cartpole/journal.log"');
    const printed = program
      .replace('"studies/cartpole/journal.log"', JSON.stringify(path))
      .replace(/^print\((.*)\)$/m, 'print(json.dumps([$1]))');
    expect(await optuna(path, printed)).toEqual([{ epochs: 7 }, 7]);
  });

  it('minimizes where we do', async () => {
    const path = join(newDirectory(root), 'journal.log');
    const writer = new JournalWriter(
      path,
      study({ objective: { metric: 'loss/value', direction: 'minimize', of: 'last', over: 'iqm' } }),
    );
    for (const value of [3, 1, 2]) {
      const { number } = writer.createTrial({ params: {}, seeds: [0] });
      writer.endTrial(number, { state: 'complete', value, violations: [] });
    }
    writer.close();
    expect(await optuna(path, tell)).toMatchObject({ direction: 'MINIMIZE', best: 1 });
  });

  it('goes on with our study, and we with what it added', async () => {
    const path = join(newDirectory(root), 'journal.log');
    const writer = new JournalWriter(path, study());
    writer.createTrial({ params: { epochs: 5, hidden: [32] }, seeds: [0] });
    await optuna(
      path,
      `
def objective(trial):
  trial.suggest_float('learningRate', 1e-5, 1e-2, log=True)
  trial.suggest_int('epochs', 3, 20)
  trial.suggest_float('clipRange', 0.1, 0.4, step=0.1)
  trial.suggest_categorical('hidden', ['[64,64]', '[32]', '[32]', None, True, 1, 0.5, 'tanh'])
  trial.report(float('nan'), 10)
  trial.report(float('inf'), 20)
  trial.set_user_attr('note', 'NaN and "Infinity" \\\\" are words')
  if trial.number == 2: raise optuna.TrialPruned()
  return float('inf') if trial.number == 3 else float(trial.number)
study().optimize(objective, n_trials=3)
study().enqueue_trial({'epochs': 4})
other = optuna.create_study(study_name='other', storage=storage)
other.optimize(lambda trial: trial.suggest_float('x', 0, 1), n_trials=2)
`,
    );
    // The writer, still open, goes on after them.
    writer.endTrial(0, { state: 'complete', value: 9, violations: [] });
    const late = writer.createTrial({ params: { hidden: [64, 64] }, seeds: [0] });
    writer.setRung(late.number, 5, 1);
    writer.close();
    const { trials, problems } = readJournal(path);
    expect(problems).toEqual([]);
    expect(trials.map(({ state }) => state)).toEqual([
      'complete',
      'complete',
      'pruned',
      'complete',
      'waiting',
      'running',
    ]);
    expect(trials[0].params).toEqual({ epochs: 5, hidden: [32] });
    expect(Object.keys(trials[1].params).sort()).toEqual(['clipRange', 'epochs', 'hidden', 'learningRate']);
    expect(trials[1].rungs).toEqual([
      { steps: 10, value: Number.NaN },
      { steps: 20, value: Number.POSITIVE_INFINITY },
    ]);
    expect(trials[1].value).toBe(1);
    expect(trials[3].value).toBe(Number.POSITIVE_INFINITY);
    expect(trials[1].endedAt! - trials[1].startedAt!).toBeGreaterThanOrEqual(0);
    expect(trials[1].purpose).toBe('search');
    expect(late.number).toBe(5);
    expect(trials[5]).toMatchObject({ params: { hidden: [64, 64] }, rungs: [{ steps: 5, value: 1 }] });
    // Trials of the other study have ids, too: Optuna must see the rung at the same trial.
    expect(await optuna(path, 'print(json.dumps(study().trials[5].intermediate_values))')).toEqual({ 5: 1 });
  });

  it('wrote a journal of its own, which we read', async () => {
    const path = join(newDirectory(root), 'journal.log');
    await optuna(
      path,
      `
def objective(trial):
  trial.suggest_categorical('kind', ['a', 'b', None])
  return trial.suggest_int('n', 1, 64, log=True)
sampler = optuna.samplers.TPESampler(seed=1, constraints_func=lambda t: [-1.0, 0.5 if t.number == 1 else 0.0])
s = optuna.create_study(study_name='theirs', storage=storage, direction='maximize', sampler=sampler)
s.optimize(objective, n_trials=3)
s.add_trial(optuna.trial.create_trial(params={'n': 3}, value=-1.5,
  distributions={'n': optuna.distributions.IntDistribution(1, 64, log=True)}, intermediate_values={7: 0.5}))
`,
    );
    const seen = await optuna(
      path,
      "print(json.dumps([{'params': t.params, 'value': t.value} for t in study('theirs').trials]))",
    );
    const { name, trials, problems } = readJournal(path);
    expect(problems).toEqual([]);
    expect(name).toBe('theirs');
    expect(trials.map(({ params, value }) => ({ params, value }))).toEqual(seen);
    expect(trials[3].rungs).toEqual([{ steps: 7, value: 0.5 }]);
    expect(trials.map(({ violations }) => violations.length)).toEqual([0, 1, 0, 0]);
  });
});
