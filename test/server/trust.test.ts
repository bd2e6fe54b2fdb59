/** The page starts no code that a run of somebody else's names. */
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CheckpointsAnswer, EvaluationAnswer, RunList } from '../../src/server/api.ts';
import { compiled } from '../support/compiled.ts';
import { hostileRuns } from '../support/hostile-run.ts';
import { type Answer, start, until } from './support/client.ts';
import { scratch } from './support/make-run.ts';

const trust = await compiled<typeof import('../../src/runs/trust.ts')>('runs/trust');
const store = await compiled<typeof import('../../src/runs/store.ts')>('runs/store');

test('buttons that would run it refuse, and say which command would; those of a trusted run work', async () => {
  const root = scratch();
  const { envFile, make, ran } = hostileRuns(root);
  const { dir, code } = make('hostile', envFile('hostile.mjs'));
  const roots = [join(root, 'runs')];
  const { get, send } = await start({ roots, foreign: false });
  const runs = async () => (await get('/api/runs')).json<RunList>().runs;
  await until(async () => (await runs()).length === 1, 'the run is found');
  const at = `/api/runs/${(await runs())[0].id}`;
  const { checkpoints } = (await get(`${at}/checkpoints`)).json<CheckpointsAnswer>();
  const { step } = checkpoints.at(-1)!;
  const evaluate = (): Promise<Answer> => send('POST', `${at}/checkpoints/${step}/evaluate`, {});
  const restart = { type: 'restart', checkpoint: step, set: {} };
  for (const [ask, command] of [
    [evaluate, 'eval'],
    [() => send('POST', `${at}/actions`, restart), 'fork'],
    [() => get(`${at}/policy.onnx?checkpoint=${step}`), 'export'],
  ] as const) {
    const answer = await ask();
    expect(answer.status).toBe(403);
    const { error } = answer.json<{ error: { code: string; message: string } }>();
    expect(error.code).toBe('untrusted');
    expect(error.message).toContain(`${code} would run`);
    expect(error.message).toContain(` ${command} ${dir} --checkpoint ${step} --trust`);
  }
  expect(ran()).toBe(false);
  expect(readdirSync(roots[0])).toEqual(['hostile']);

  renameSync(code, `${code}.away`);
  const gone = await evaluate();
  expect([gone.status, gone.text]).toEqual([409, expect.stringContaining(`${code} is no file here`)]);
  renameSync(`${code}.away`, code);

  trust.trustOwnRun(store.openRun(dir));
  const answer = await evaluate();
  expect(answer.status, answer.text).toBe(200);
  expect(answer.json<EvaluationAnswer>().step).toBe(step);
  expect(ran()).toBe(true);
});
