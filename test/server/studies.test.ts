/** Studies under the roots: found, listed, read, told of when they change, and their runs among the others. */
import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RunError } from '../../src/base/errors.ts';
import type { RunList, StudyAnswer, StudyList, StudyOverview } from '../../src/server/api.ts';
import { idOf } from '../../src/server/runs/places.ts';
import { createHub } from '../../src/server/stream.ts';
import { createStudyIndex, type FoundStudy, type StudySource } from '../../src/server/studies.ts';
import type { StudyReading } from '../../src/server/study-source.ts';
import type { Study, Trial } from '../../src/studies/schema.ts';
import { writeWorkers } from '../../src/studies/workers.ts';
import { fakeStudy, fakeTrial, fakeTrials, fakeWorkers } from '../studies/support/fake-study.ts';
import { listen, start, until } from './support/client.ts';
import { makeRun, scratch } from './support/make-run.ts';

/** Studies by directory, in place of journals; reading one of which nothing is known is an error. */
const kept = new Map<string, { study: Study; trials: Trial[] }>();
const reading: StudyReading = {
  open: dir => ({
    read: () => {
      const found = kept.get(dir);
      if (found === undefined) throw new RunError(`${dir}/journal.log is damaged at line 3: delete it`);
      return found;
    },
  }),
  importance: (_, trials) => ({
    axes: trials.length < 5 ? [] : [{ key: 'learningRate', share: 1 }],
    trials: trials.length,
    needed: 5,
  }),
  runIdOf: (_, { number }, seed) => `t${String(number).padStart(4, '0')}-s${seed}`,
};

const root = scratch();
function makeStudy(dir: string, study: Study = fakeStudy, trials = fakeTrials(12)): string {
  mkdirSync(join(dir, 'runs'), { recursive: true });
  writeFileSync(join(dir, 'study.json'), JSON.stringify(study));
  writeFileSync(join(dir, 'journal.log'), '{"op_code":0}\n');
  kept.set(dir, { study, trials });
  return dir;
}
const dir = makeStudy(join(root, 'hopper-rates'));
const run = makeRun(join(dir, 'runs'), 't0000-s0', 3);
run.writer.end('finished');
const outside = makeStudy(join(scratch(), 'elsewhere'));
symlinkSync(outside, join(root, 'link'));
const alone = makeStudy(join(scratch(), 'alone'), { ...fakeStudy, name: 'alone' });
const { server, get, port } = await start({ roots: [root, alone], studies: reading });

const list = async (): Promise<readonly StudyOverview[]> =>
  (await get('/api/studies')).json<StudyList>().studies;
const named = async (name: string): Promise<StudyOverview> => {
  const found = (await list()).find(study => study.name === name);
  if (found === undefined) throw new Error(`no study ${name}`);
  return found;
};

describe('studies on the disk', () => {
  test('a root that is a study, and those in a root; a link that leads out is not followed', async () => {
    expect((await list()).map(({ name }) => name).sort()).toEqual(['alone', 'hopper-rates']);
  });

  test('the line of one', async () => {
    expect(await named('hopper-rates')).toMatchObject({
      root,
      state: 'running',
      subject: 'hopper.ts',
      method: 'tpe',
      counts: { waiting: 0, running: 2, complete: 8, pruned: 1, failed: 1 },
      trials: 60,
      steps: 3 * (8 * 200_000 + 22_000 + 9000),
      budgetSteps: 20_000_000,
      problem: null,
      workersAt: null,
      startedAt: Date.parse(fakeStudy.createdAt),
    });
  });

  test('all of one: axes, trials with KL and verdicts, importance; what is known is not sent again', async () => {
    const { id, version } = await named('hopper-rates');
    const answer = (await get(`/api/studies/${id}`)).json<StudyAnswer>();
    expect(answer.space).toEqual(fakeStudy.space);
    expect(answer.trials).toHaveLength(12);
    expect(answer.trials![3]).toMatchObject({
      number: 3,
      state: 'complete',
      violations: ['seed 0 is sick: learning rate too high', 'KL 0.083 is above the bound of 0.05'],
      runs: [{ run: 't0003-s0', seed: 0, verdict: 'sick', klLargest: 0.083 }, { seed: 1 }, { seed: 2 }],
    });
    expect(answer.trials![3]).not.toHaveProperty('outcomes');
    // A trial that runs names the runs that are to come, under the ids that they will have.
    const [first, last] = [answer.trials![0], answer.trials!.at(-1)!];
    expect([first.coming, last.runs, last.coming.map(({ seed }) => seed)]).toEqual([[], [], [0, 1, 2]]);
    expect(last.coming[1].id).toBe(idOf(join(dir, 'runs', 't0011-s1')));
    expect(answer.importance).toEqual({ axes: [{ key: 'learningRate', share: 1 }], trials: 12, needed: 5 });
    const again = (await get(`/api/studies/${id}?version=${version}`)).json<StudyAnswer>();
    expect([again.trials, again.importance, again.overview.id]).toEqual([null, null, id]);
    expect([answer.confirmation, again.confirmation]).toEqual([null, null]);
    const other = (await get(`/api/studies/${id}?version=another`)).json<StudyAnswer>();
    expect(other.trials).toHaveLength(12);
    // Neither the path of the environment's file nor of the study is told.
    expect(JSON.stringify(answer.overview)).not.toContain('/home/someone');
  });

  test('its runs are runs as all others, under the id that its trial names', async () => {
    const { id } = await named('hopper-rates');
    const answer = (await get(`/api/studies/${id}`)).json<StudyAnswer>();
    const wanted = answer.trials![0].runs[0];
    expect(wanted.run).toBe('t0000-s0');
    await until(async () => {
      const { runs } = (await get('/api/runs')).json<RunList>();
      return runs.some(one => one.id === wanted.id);
    }, 'the run of the study is listed');
    // Other trainers' logs were looked for as well, and the files of a study are nobody's.
    expect(await server.index.searched(60_000)).toBe(true);
    const { runs } = (await get('/api/runs')).json<RunList>();
    expect(runs.map(({ name }) => name)).toEqual(['hopper-rates/runs/t0000-s0']);
    expect((await get(`/api/runs/${wanted.id}`)).status).toBe(200);
  });

  test('what changes is told on the stream: the journal, who works, a study that comes, one that goes', async () => {
    const { told, close } = await listen(port);
    const news = () => told.flatMap(({ message }) => (message.type === 'studies' ? [message] : []));
    const { version } = await named('hopper-rates');
    kept.set(dir, { study: fakeStudy, trials: [...fakeTrials(12), fakeTrial(12, 'waiting')] });
    appendFileSync(join(dir, 'journal.log'), '{"op_code":4}\n');
    await until(() => news().some(({ changed }) => changed[0]?.counts.waiting === 1), 'the trial is told');
    const now = await named('hopper-rates');
    expect(now.version).not.toBe(version);
    const answer = (await get(`/api/studies/${now.id}?version=${version}`)).json<StudyAnswer>();
    expect(answer.trials).toHaveLength(13);

    writeWorkers(dir, fakeWorkers(Date.now()));
    await until(() => news().some(({ changed }) => changed[0]?.workersAt !== null), 'the workers are told');
    const { workers, trials } = (
      await get(`/api/studies/${now.id}?version=${now.version}`)
    ).json<StudyAnswer>();
    expect(workers).toMatchObject({ queue: { waiting: 7 }, workers: [{ name: 'box-1/4121' }, {}, {}] });
    expect(trials).toBeNull();

    const fresh = makeStudy(join(root, 'fresh'));
    await until(() => news().some(({ changed }) => changed.some(({ name }) => name === 'fresh')), 'it came');
    const { id } = await named('fresh');
    rmSync(fresh, { recursive: true });
    await until(() => news().some(({ removed }) => removed.includes(id)), 'it went');
    expect((await get(`/api/studies/${id}`)).status).toBe(404);
    close();
  });

  test('one that cannot be read says why, without where it is', async () => {
    const damaged = makeStudy(join(root, 'damaged'));
    kept.delete(damaged);
    await until(async () => (await list()).length === 3, 'it is listed');
    const study = await named('damaged');
    expect(study).toMatchObject({ state: 'unreadable', best: null });
    expect(study.problem).toMatch(/journal\.log is damaged at line 3: delete it$/);
    const { overview, trials } = (await get(`/api/studies/${study.id}`)).json<StudyAnswer>();
    expect([overview.state, trials]).toEqual(['unreadable', []]);
    rmSync(damaged, { recursive: true });
  });

  test('a study that is not there is a sentence', async () => {
    const answer = await get('/api/studies/nothing');
    expect(answer.status).toBe(404);
    expect(answer.json()).toMatchObject({ error: { code: 'no-such-study' } });
  });
});

describe('in what state a study is, and who is best', () => {
  const overviewOf = (study: Study, trials: Trial[], place: Partial<FoundStudy> = {}): StudyOverview => {
    const source: StudySource = {
      list: () => [
        { id: 'a', name: 'a', root: 'studies', version: '1', updatedAt: 1000, workersAt: null, ...place },
      ],
      open: () => ({ study, trials }),
      workers: () => undefined,
      importance: reading.importance,
      runId: (_, name) => name,
      runName: reading.runIdOf,
    };
    const index = createStudyIndex({ source, hub: createHub(), now: () => 100_000 });
    index.start();
    index.close();
    return index.list().studies[0];
  };
  const over = (count: number): Trial[] => Array.from({ length: count }, (_, i) => fakeTrial(i, 'complete'));

  test('finished with the last trial, or when the budget is used; quiet when nobody writes', () => {
    const small = { ...fakeStudy, trials: 4 };
    expect(overviewOf(small, over(4)).state).toBe('finished');
    expect(overviewOf(small, over(3)).state).toBe('quiet');
    expect(overviewOf(small, over(3), { updatedAt: 50_000 }).state).toBe('running');
    expect(overviewOf(small, over(3), { workersAt: 50_000 }).state).toBe('running');
    expect(overviewOf(small, [...over(3), fakeTrial(3, 'running')]).state).toBe('quiet');
    // Its trials are done, but its winner is still being confirmed.
    const confirming: Trial = { ...fakeTrial(4, 'running'), purpose: 'confirm-winner' };
    expect(overviewOf(small, [...over(4), confirming], { updatedAt: 50_000 }).state).toBe('running');
    expect(overviewOf({ ...fakeStudy, budgetSteps: 600_000 * 3 }, over(3)).state).toBe('finished');
    expect(overviewOf({ ...fakeStudy, budgetSteps: 600_000 * 3 + 1 }, over(3)).state).toBe('quiet');
  });

  test('a trial that violates a constraint does not win, nor one that was pruned or only confirms', () => {
    const value = (trial: Trial, number: number, v: number): Trial => ({ ...trial, number, value: v });
    const trials = [
      value(fakeTrial(0, 'complete'), 0, 5),
      value(fakeTrial(1, 'complete'), 1, 7),
      { ...value(fakeTrial(2, 'complete'), 2, 90), violations: ['sick'] },
      value(fakeTrial(6, 'pruned'), 3, 80),
      { ...value(fakeTrial(4, 'complete'), 4, 70), purpose: 'confirm-winner' as const },
    ];
    expect(overviewOf(fakeStudy, trials).best).toEqual({ trial: 1, value: 7 });
    const down: Study = { ...fakeStudy, objective: { ...fakeStudy.objective, direction: 'minimize' } };
    expect(overviewOf(down, trials).best).toEqual({ trial: 0, value: 5 });
    expect(overviewOf(fakeStudy, []).best).toBeNull();
  });
});
