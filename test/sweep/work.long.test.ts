/** One job, done in this process: what comes of it, and what is whose fault. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { verdicts } from '../../src/doctor/findings.ts';
import { listCheckpoints } from '../../src/runs/checkpoint.ts';
import { readRows, readTrajectory } from '../../src/runs/log.ts';
import { openRun } from '../../src/runs/store.ts';
import { ElsewhereError } from '../../src/sweep/elsewhere.ts';
import { parseOutcome } from '../../src/sweep/job.ts';
import { doJob } from '../../src/sweep/work.ts';
import { fixtures } from '../runs/support/old-runs.ts';
import { compiled } from '../support/compiled.ts';
import { iterationSteps, tinyJob } from './support/jobs.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-work-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('a run goes to its end, and its outcome says what is on the disk', async () => {
  const outcome = await doJob(tinyJob('whole'), { root });
  expect(parseOutcome(outcome, 'here')).toEqual(outcome);
  expect(outcome).toMatchObject({ status: 'done', finished: true, step: 256, problem: null, seed: 3 });
  const rows = readRows(join(root, 'whole')).items;
  expect(outcome.klLargest).toBe(Math.max(...rows.map(row => row['kl/step'])));
  expect(outcome.value).toBeGreaterThan(0);
  expect(verdicts).toContain(outcome.verdict);
  const weights = join(listCheckpoints(join(root, 'whole')).at(-1)!.dir, 'policy.safetensors');
  expect(outcome.weights).toBe(createHash('sha256').update(readFileSync(weights)).digest('hex'));
  expect(openRun(join(root, 'whole')).manifest.config).toMatchObject({ workers: 0, threads: 1, seed: 3 });
});

test('in parts it has the same rows and weights, and pauses where it is told', async () => {
  const whole = await doJob(tinyJob('one'), { root });
  const first = await doJob(tinyJob('parts', { until: 100 }), { root });
  expect(first).toMatchObject({ status: 'done', finished: false, step: 2 * iterationSteps });
  expect(openRun(join(root, 'parts')).status).toBe('stopped');
  const again = await doJob(tinyJob('parts', { until: 100 }), { root });
  expect(again).toEqual({ ...first, seconds: again.seconds });
  const rest = await doJob(tinyJob('parts'), { root });
  expect(rest).toMatchObject({ finished: true, weights: whole.weights, value: whole.value });
  expect(readTrajectory(join(root, 'parts')).rows).toEqual(readTrajectory(join(root, 'one')).rows);
  // The first part comes once more when all is done: what it said then, as far as it can still be known.
  const late = await doJob(tinyJob('parts', { until: 100 }), { root });
  expect(late).toMatchObject({
    step: first.step,
    value: first.value,
    klLargest: first.klLargest,
    finished: false,
  });
});

test('what is done is judged and not trained again', async () => {
  await doJob(tinyJob('once'), { root });
  const { resumes, startedAt } = openRun(join(root, 'once')).manifest;
  await doJob(tinyJob('once'), { root });
  expect(openRun(join(root, 'once')).manifest).toMatchObject({ resumes, startedAt });
});

test('a directory in which a process died before there was a run is begun anew', async () => {
  mkdirSync(join(root, 'half'));
  const gone = { pid: 2 ** 22 + 1, start: null, boot: 'another', host: 'x', since: '', token: 't' };
  const { hostname } = await import('node:os');
  writeFileSync(join(root, 'half', 'lock.1'), JSON.stringify({ ...gone, host: hostname() }));
  expect(await doJob(tinyJob('half'), { root })).toMatchObject({ status: 'done', finished: true });
});

test.each([
  ['a setting that cannot be', { config: { steps: 64, learningRate: -1 } }, /learningRate/],
  ['a setting that nobody knows', { config: { steps: 64, env: './evil.ts' } }, /env/],
  [
    'an environment that nobody knows',
    { subject: { ...tinyJob('x').subject, reference: 'carpole' } },
    /carpole/,
  ],
])('%s is an outcome that says so', async (_, changes, says) => {
  const outcome = await doJob(tinyJob('failing', changes), { root });
  expect(outcome).toMatchObject({ status: 'failed', value: null, finished: false });
  expect(outcome.problem).toMatch(says);
  expect(parseOutcome(outcome, 'here')).toEqual(outcome);
});

test('aborted, it leaves a run that goes on to the same bits', async () => {
  const whole = await doJob(tinyJob('straight'), { root });
  const controller = new AbortController();
  const reason = new Error('enough');
  const onStart = (): void => controller.abort(reason);
  const job = tinyJob('aborted');
  await expect(doJob(job, { root, signal: controller.signal, onStart })).rejects.toBe(reason);
  expect(openRun(join(root, 'aborted')).status).toBe('stopped');
  expect(await doJob(job, { root })).toMatchObject({ finished: true, weights: whole.weights });
});

test('a run of that name with another seed is not taken for it', async () => {
  await doJob(tinyJob('taken'), { root });
  await expect(doJob(tinyJob('taken', { seed: 4 }), { root })).rejects.toMatchObject({ code: 'another-run' });
});

test('another version is refused', async () => {
  const error = await doJob(tinyJob('old', { version: '0.0.1' }), { root }).catch(e => e);
  expect(error).toBeInstanceOf(ElsewhereError);
  expect(error).toMatchObject({ code: 'version' });
  expect(error.message).toMatch(/^the job is of Keel 0\.0\.1, this is /);
});

const file = join(fixtures, 'switches.mjs');
const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
/** As on another machine, where the file is elsewhere. */
const subject = { kind: 'env' as const, reference: '/elsewhere/switches.mjs', sha256, options: {} };

test('a file runs where it was named, by its content, also when the run goes on', async () => {
  // The file imports Keel by its name, which only the package has.
  const { doJob } = await compiled<typeof import('../../src/sweep/work.ts')>('sweep/work');
  const refused = await doJob(tinyJob('file', { subject }), { root }).catch(e => e);
  expect(refused).toMatchObject({ name: 'ElsewhereError', code: 'refused' });
  expect(refused.message).toMatch(/--file \/elsewhere\/switches\.mjs allows it/);
  const other = { ...subject, sha256: sha256.replace(/^./, c => (c === '0' ? '1' : '0')) };
  await expect(doJob(tinyJob('file', { subject: other }), { root, files: [file] })).rejects.toThrow(
    'was not named',
  );
  const unknown = { ...subject, reference: file, sha256: null };
  await expect(doJob(tinyJob('file', { subject: unknown }), { root, files: [file] })).rejects.toThrow(
    'without its hash',
  );

  const until = iterationSteps;
  const first = await doJob(tinyJob('file', { subject, until }), { root, files: [file] });
  expect(first).toMatchObject({ status: 'done', problem: null });
  expect(await doJob(tinyJob('file', { subject }), { root, files: [file] })).toMatchObject({
    finished: true,
  });
});

test('an option that names a program needs that named, too', async () => {
  const engine = join(root, 'engine.sh');
  writeFileSync(engine, '#!/bin/sh\n', { mode: 0o755 });
  const chess = { kind: 'task' as const, reference: 'chess', sha256: null, options: { engine } };
  await expect(doJob(tinyJob('chess', { subject: chess }), { root })).rejects.toThrow(
    /the job starts a program, .*\(options\.engine\), which was not named here: --engine/,
  );
  // Named, it gets as far as its settings, which are of PPO.
  expect(await doJob(tinyJob('chess', { subject: chess }), { root, engines: [engine] })).toMatchObject({
    status: 'failed',
  });
});

test('a full disk is not the fault of the run', async context => {
  const disk = join(root, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', disk], { stdio: 'ignore' });
  } catch {
    return context.skip(); // not root, or not Linux
  }
  try {
    const error = await doJob(tinyJob('full'), { root: disk }).catch(e => e);
    expect(error).toBeInstanceOf(ElsewhereError);
    expect(error).toMatchObject({ code: 'ENOSPC' });
  } finally {
    execFileSync('umount', [disk]);
  }
});
