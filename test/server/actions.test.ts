/** Everything behind the buttons, on a run that the real command line trains. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Diagnosis } from '../../src/doctor/findings.ts';
import { firstHarm } from '../../src/doctor/first-harm.ts';
import { type Fix, fixOf } from '../../src/doctor/fixes.ts';
import { diagnoseSeries } from '../../src/doctor/in-memory.ts';
import { openRun, readEvents, readRows, writeAdjustments } from '../../src/runs/index.ts';
import { checkWebhook, createAlerts, type VerdictChange, wordsOf } from '../../src/server/alerts.ts';
import type {
  ActionAnswer,
  CheckpointSummary,
  CheckpointsAnswer,
  EvaluationAnswer,
  RunDetail,
  RunList,
  RunSummary,
  StreamMessage,
} from '../../src/server/api.ts';
import { lastHealthy } from '../../src/server/checkpoints.ts';
import { complaint } from '../../src/server/children.ts';
import { judgedRun } from '../../src/server/doctor/judged-run.ts';
import { proposals, settingsIn } from '../../src/server/doctor/proposals.ts';
import { remedyOf } from '../../src/server/doctor/remedy.ts';
import { createJudging, neverJudged } from '../../src/server/runs/judging.ts';
import { KeelRun } from '../../src/server/runs/keel-run.ts';
import { rootOf } from '../../src/server/runs/places.ts';
import { startKeel } from '../cli/support/keel.ts';
import { ask, start, until } from './support/client.ts';
import { makeRun, scratch } from './support/make-run.ts';

const settings = [
  ...['envs=2', 'stepsPerRollout=64', 'minibatchSize=64', 'epochs=2', 'hidden=[8]'],
  ...[
    'checkpointEvery=20',
    'keepEvery=20',
    'steps=2000000',
    'learningRate=0.003',
    'learningRateSchedule=constant',
  ],
].flatMap(pair => ['--set', pair]);

describe('a live run', () => {
  test('set, evaluate, export, restart with a fix', async () => {
    const root = scratch();
    const training = startKeel([
      'train',
      'cartpole',
      '--no-preset',
      '--run-dir',
      root,
      '--no-dash',
      ...settings,
    ]);
    const { get, send, port } = await start({ roots: [root], foreign: false });
    const runs = async (): Promise<readonly RunSummary[]> => (await get('/api/runs')).json<RunList>().runs;
    await until(
      async () => (await runs()).some(run => run.state === 'running' && run.step > 128 * 25),
      'it trains',
    );
    const [{ id, name }] = (await runs()) as [RunSummary];
    const at = (rest: string): string => `/api/runs/${id}${rest}`;
    const detail = async (): Promise<RunDetail> => (await get(at(''))).json<RunDetail>();
    expect((await detail()).adjustable).toMatchObject({
      learningRate: 0.003,
      targetKl: null,
      guard: 0.05,
      clipRange: 0.2,
    });

    const done = await send('POST', at('/actions'), { type: 'set', key: 'learningRate', value: 0.001 });
    expect(done.json<ActionAnswer>()).toMatchObject({
      done: true,
      newRun: null,
      message: expect.stringContaining('learningRate is 0.001 from iteration'),
    });
    await until(async () => (await detail()).adjustable.learningRate === 0.001, 'the page knows');
    expect((await detail()).config.learningRate).toBe(0.001);
    const dir = join(root, name);
    const act = readEvents(dir).items.find(({ type }) => type === 'act')!;
    expect(act).toMatchObject({ by: 'page', what: 'learningRate 0.003 to 0.001' });
    const rows = readRows(dir).items;
    expect(rows.at(-1)!['train/lr']).toBe(0.001);
    expect(rows[act.iteration - 2]['train/lr']).toBe(0.003);
    const refused = await send('POST', at('/actions'), { type: 'set', key: 'hidden', value: 3 });
    expect(refused.status).toBe(422);
    expect(refused.text).toContain('hidden cannot change');

    const { checkpoints } = (await get(at('/checkpoints'))).json<CheckpointsAnswer>();
    const { step } = checkpoints[0];
    const [first, second] = await Promise.all([
      send('POST', at(`/checkpoints/${step}/evaluate`), {}),
      send('POST', at(`/checkpoints/${step}/evaluate`), {}),
    ]);
    expect([first.status, second.status].sort()).toEqual([200, 409]);
    const evaluated = (first.status === 200 ? first : second).json<EvaluationAnswer>();
    expect(evaluated).toMatchObject({ step, episodes: 20, deterministic: true });
    expect(evaluated.mean).toBeGreaterThan(5);
    const policy = await get(at(`/policy.onnx?checkpoint=${step}`));
    expect(policy.status).toBe(200);
    expect(policy.bytes.length).toBeGreaterThan(500);
    const own = await get(at('/policy.onnx'));
    expect(own.bytes.equals(policy.bytes)).toBe(false);

    // Stops this run, starts the other, and says which it is.
    const restarted = await send('POST', at('/actions'), {
      type: 'restart',
      checkpoint: step,
      set: { learningRate: 0.0005, targetKl: 0.02 },
    });
    expect(restarted.status, restarted.text).toBe(200);
    const answer = restarted.json<ActionAnswer>();
    expect((await training.done).code).toBe(0);
    expect(openRun(dir).manifest).toMatchObject({ status: 'stopped', reason: 'stopped from the page' });
    await until(async () => (await runs()).some(run => run.id === answer.newRun), 'the new run is listed');
    const fresh = (await runs()).find(run => run.id === answer.newRun)!;
    expect(fresh.parent).toBe(name);
    const newDir = join(root, fresh.name);
    expect(openRun(newDir).manifest).toMatchObject({
      parent: { id: name, step },
      config: { learningRate: 0.0005, targetKl: 0.02 },
    });
    expect(existsSync(join(newDir, 'process.log'))).toBe(true);
    expect(readdirSync(root).filter(entry => entry.startsWith('.'))).toEqual([]);
    await until(async () => (await runs()).find(run => run.id === answer.newRun)!.step > step, 'it trains');
    const stopped = await ask(port, {
      method: 'POST',
      path: `/api/runs/${answer.newRun}/actions`,
      headers: { 'content-type': 'application/json' },
      body: '{"type":"stop"}',
    });
    expect(stopped.json<ActionAnswer>()).toEqual({
      done: true,
      message: 'the run has stopped, with a checkpoint',
      newRun: null,
    });
    await until(
      async () => (await runs()).find(run => run.id === answer.newRun)!.state === 'stopped',
      'it is over',
    );

    // Settings that cannot be: nothing is left behind.
    const before = readdirSync(root);
    const wrong = await send('POST', at('/actions'), {
      type: 'restart',
      checkpoint: step,
      set: { learningRat: 1 },
    });
    expect(wrong.status).toBe(422);
    const { error } = wrong.json<{ error: { message: string } }>();
    expect(error.message).toMatch(/^the new run did not start: [^{]*learningRat\b.*learningRate/);
    expect(readdirSync(root)).toEqual(before);
  });
});

test('what a child says was wrong is data; one that ends without a word of ours is known by its last line', () => {
  expect(complaint('note: x\n{"problems":["a is 1: use 2","b is 3"]}\nlater\n')).toBe(
    'a is 1: use 2; b is 3',
  );
  expect(complaint('FATAL ERROR\nout of memory\n\n')).toBe('out of memory');
  expect(complaint('{"problems":7}')).toBe('{"problems":7}');
  expect(complaint(' \n')).toBe('it gave no reason');
});

describe('what is proposed', () => {
  test('settings in a fix', () => {
    expect(
      settingsIn([
        fixOf({ code: 'keel train cartpole --set learningRate=3e-05 --set targetKl=0.02' }, [
          { setting: 'learningRate', name: 'learningRate', from: null, value: 3e-5 },
          { setting: 'targetKl', name: 'targetKl', from: null, value: 0.02 },
        ]),
        fixOf('or --set learningRate=1', [
          { setting: 'learningRate', name: 'learningRate', from: null, value: 1 },
          { setting: 'refCoef', name: 'reference', from: null, value: 'frozen' },
          { setting: 'rewardScale', name: 'normaliseRewards', from: null, value: true },
        ]),
        // What is only said is no setting.
        fixOf({ code: '--set gamma=0.9' }),
        fixOf('lower it, or --set epochs=1'),
      ]),
    ).toEqual([
      ['learningRate', 3e-5],
      ['targetKl', 0.02],
    ]);
    expect(settingsIn([])).toEqual([]);
  });

  test('is what the doctor of a run of Keel says, as data', () => {
    const rows = Array.from({ length: 60 }, (_, i) => i);
    const diagnosis = diagnoseSeries(
      {
        'kl/step': rows.map(i => 0.2 + 0.05 * Math.sin(i)),
        'episode/return': rows.map(i => 320 - Math.abs(30 - i) * 10 + 3 * Math.sin(1.7 * i)),
      },
      { trainer: 'keel', config: { learningRate: 0.03, 'environment/id': 'cartpole' } },
    );
    const [first] = diagnosis.findings;
    expect(first.fixes[0]).toEqual({
      kind: 'setting',
      changes: [{ setting: 'learningRate', name: 'learningRate', from: 0.03, value: 1e-3 }],
      code: 'keel train cartpole --set learningRate=0.001',
      text: 'keel train cartpole --set learningRate=0.001',
    });
    const { actions } = proposals(byHand, diagnosis, [], { learningRate: 0.03, targetKl: null });
    expect(actions.map(({ action }) => action)).toEqual([
      { type: 'set', key: 'learningRate', value: 1e-3 },
      { type: 'set', key: 'targetKl', value: 0.015 },
      { type: 'anew', set: { learningRate: 1e-3, targetKl: 0.015 } },
      { type: 'stop' },
    ]);
  });

  const sick = (fixes: readonly Fix[]): Diagnosis => ({
    path: 'x',
    trainer: 'keel',
    steps: 900,
    verdict: 'sick',
    rootCause: 'learning-rate-too-high',
    confidence: 0.9,
    summary: 'The steps are too large.',
    findings: [
      {
        code: 'kl-spikes',
        severity: 'critical',
        title: 'KL jumps',
        from: 500,
        to: 900,
        firstSeen: 500,
        evidence: [],
        cites: [],
        facts: [],
        cause: 'learning-rate-too-high',
        confidence: 0.9,
        fix: fixes.map(({ text }) => text),
        fixes,
        marks: [],
      },
    ],
    understood: { columns: [], settings: [], rows: 0, from: 0, to: 900, notUnderstood: [], absent: [] },
    basis: [],
    checked: [],
    notes: [],
  });
  const checkpoint = (step: number): CheckpointSummary => ({
    step,
    iteration: step / 100,
    savedAt: null,
    score: null,
    isBest: false,
    isLast: false,
    healthy: step < 500,
    bytes: 1,
  });
  /** As if the rate had been set by hand from the fifth iteration on. */
  const byHand = {
    state: 'running' as const,
    settingsAt: (iteration: number) => ({ learningRate: iteration < 5 ? 0.03 : 1e-4, targetKl: null }),
  };
  const fix = [
    fixOf({ code: '--set learningRate=0.0001 --set targetKl=0.02' }, [
      { setting: 'learningRate', name: 'learningRate', from: null, value: 1e-4 },
      { setting: 'targetKl', name: 'targetKl', from: null, value: 0.02 },
    ]),
  ];

  test('nothing that is set already; a restart sets what its checkpoint has not', () => {
    const { actions, note } = proposals(byHand, sick(fix), [checkpoint(300), checkpoint(800)], {
      learningRate: 1.00000001e-4,
      targetKl: null,
    });
    expect(actions.map(({ action }) => action)).toEqual([
      { type: 'set', key: 'targetKl', value: 0.02 },
      { type: 'restart', checkpoint: 300, set: { learningRate: 1e-4, targetKl: 0.02 } },
      { type: 'stop' },
    ]);
    expect(note).toBeNull();
  });

  test('no checkpoint from before: it is said, with what to begin anew with', () => {
    const { actions, note } = proposals(byHand, sick(fix), [checkpoint(800)], {});
    expect(actions.map(({ action }) => action)).toEqual([
      { type: 'anew', set: { learningRate: 1e-4, targetKl: 0.02 } },
      { type: 'stop' },
    ]);
    expect(note).toMatch(/no checkpoint from before .* with learningRate 0\.0001, targetKl 0\.02\.$/);
    expect(actions[1].why).toContain(note);
    const dead = proposals({ ...byHand, state: 'killed' }, sick(fix), [], {});
    expect(dead.note).toBe(note);
    expect(dead.actions.map(({ label }) => label)).toEqual([
      'Begin anew with learningRate 0.0001, targetKl 0.02',
    ]);
  });

  test('one command has all changes, with what the run was begun with; one goes on from before the fault', () => {
    const made = makeRun(scratch(), 'long', 3, { steps: 3_000_000, hidden: [8], reward: { scale: 2 } });
    const run = new KeelRun(made.dir, rootOf(scratch()));
    const { seed } = run.manifest!;
    const remedy = remedyOf(run, sick(fix), [checkpoint(800)])!;
    expect(remedy.fork).toBeNull();
    expect(remedy.anew).toMatch(
      new RegExp(`train CartPole-v1 --no-preset --steps 3000000 --seed ${seed} .*--set 'hidden=\\[8\\]'`),
    );
    expect(remedy.anew!.match(/--set learningRate=0\.0001/g)).toHaveLength(1);
    expect(remedy.anew).toContain('--set targetKl=0.02');
    const from = remedyOf(run, sick(fix), [checkpoint(300), checkpoint(800)])!.fork!;
    expect(from.checkpoint).toBe(300);
    expect(from.command).toMatch(
      /fork \S*long --checkpoint 300 --set learningRate=0\.0001 --set targetKl=0\.02$/,
    );
    expect(remedyOf(run, sick([]), [])).toBeNull();
  });

  test('the doctor is given the settings as they are now', async () => {
    const root = scratch();
    const made = makeRun(root, 'changed', 6, { learningRate: 0.03 });
    const run = new KeelRun(made.dir, rootOf(root));
    writeAdjustments(made.dir, [{ iteration: 5, key: 'learningRate', value: 1e-4, by: 'page' }]);
    run.look(0);
    await run.read(new AbortController().signal);
    expect(judgedRun(run)!.config).toMatchObject({ learningRate: 1e-4, clipRange: 0.2 });
    expect(run.settingsAt(4).learningRate).toBe(0.03);
    expect(run.settingsAt(5).learningRate).toBe(1e-4);
  });

  test('a judgement is told whenever it says something else; an alert is only about the verdict', () => {
    const told: StreamMessage[] = [];
    const alerted: unknown[] = [];
    const judging = createJudging({
      hub: { publish: (message: StreamMessage) => told.push(message) } as never,
      doctor: undefined as never,
      alerts: { tell: (change: unknown) => alerted.push(change) } as never,
      nameOf: () => 'x',
      onChange: () => {},
      signal: new AbortController().signal,
    });
    const judged = neverJudged();
    const tell = (diagnosis: Diagnosis): [number, number] => {
      judging.tellJudgement(
        { id: 'x', path: 'x', state: 'running', diagnosis: { diagnosis, reason: null } } as never,
        judged,
      );
      return [told.length, alerted.length];
    };
    const first = sick(fix);
    expect(tell(first)).toEqual([1, 1]);
    expect(tell({ ...first, steps: 1000 })).toEqual([1, 1]);
    expect(tell({ ...first, confidence: 0.5 })).toEqual([2, 1]);
    expect(tell({ ...first, summary: 'Otherwise.' })).toEqual([3, 1]);
    expect(tell({ ...first, findings: [{ ...first.findings[0], to: 950 }] })).toEqual([4, 1]);
    expect(tell({ ...first, rootCause: null })).toEqual([5, 1]);
    expect(tell({ ...first, rootCause: null, verdict: 'watch' })).toEqual([6, 2]);
    expect(told[4]).toEqual({ type: 'diagnosis', run: 'x', verdict: 'sick', rootCause: null });
  });

  test('a finding keeps the step at which it was first seen, until the log is another', () => {
    const judging = createJudging({
      hub: { publish: () => {} } as never,
      doctor: undefined as never,
      alerts: undefined,
      nameOf: () => 'x',
      onChange: () => {},
      signal: new AbortController().signal,
    });
    const judged = neverJudged();
    const seenAt = (firstSeen: number, generation = 0): number => {
      const diagnosis = sick(fix);
      const findings = diagnosis.findings.map(one => ({ ...one, from: firstSeen, firstSeen }));
      const run = { id: 'x', generation, diagnosis: { diagnosis: { ...diagnosis, findings }, reason: null } };
      judging.tellJudgement(run as never, judged);
      return run.diagnosis.diagnosis.findings[0].firstSeen;
    };
    expect([500, 900, 300, 700].map(step => seenAt(step))).toEqual([500, 500, 300, 300]);
    expect(seenAt(800, 1)).toBe(800);
  });

  test('the last healthy checkpoint is the newest before the first critical finding', () => {
    const finding = (severity: 'warning' | 'critical', firstSeen: number) =>
      ({ severity, from: firstSeen + 1000, firstSeen }) as never;
    const diagnosis = {
      findings: [finding('critical', 500), finding('warning', 100), finding('critical', 300)],
    } as never;
    expect(firstHarm(diagnosis)).toBe(300);
    expect(firstHarm(null)).toBe(Number.POSITIVE_INFINITY);
    const checkpoints = [100, 200, 300, 400].map(step => ({ step, healthy: step < 300 })) as never;
    expect(lastHealthy(checkpoints)?.step).toBe(200);
    expect(lastHealthy([])).toBeUndefined();
  });
});

describe('alerts', () => {
  const change: VerdictChange = {
    run: 'a; rm -rf /',
    path: '/x/a',
    before: 'healthy',
    verdict: 'sick',
    rootCause: 'learning-rate-too-high',
    step: 1000,
    summary: 'KL of 3 $(touch pwned)',
    fix: ['lower it'],
  };

  /** A server that keeps what it is sent. */
  async function hook(
    answer: (request: IncomingMessage) => [status: number, headers: Record<string, string>],
  ) {
    const got: { url: string | undefined; body: string; type: string | undefined }[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', part => {
        body += part;
      });
      request.on('end', () => {
        got.push({ url: request.url, body, type: request.headers['content-type'] });
        const [status, headers] = answer(request);
        response.writeHead(status, headers).end();
      });
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    return { got, url: `http://127.0.0.1:${port}/hook`, close: () => server.close() };
  }

  test('a run that falls ill tells webhook and command, once', async () => {
    const root = scratch();
    const made = makeRun(root, 'falls-ill', 30);
    const { got, url, close } = await hook(() => [200, {}]);
    const log = join(scratch(), 'told.jsonl');
    const script = join(scratch(), 'told.mjs');
    writeFileSync(
      script,
      `import { appendFileSync } from 'node:fs'; let text = ''; for await (const part of process.stdin) text += part;
       const { KEEL_RUN, KEEL_VERDICT, KEEL_VERDICT_BEFORE, KEEL_STEP } = process.env;
       appendFileSync(process.argv[2], JSON.stringify({ KEEL_RUN, KEEL_VERDICT, KEEL_VERDICT_BEFORE, KEEL_STEP, body: JSON.parse(text) }) + '\\n');`,
    );
    const { get } = await start({
      roots: [root],
      webhook: url,
      onVerdict: `"${process.execPath}" "${script}" "${log}"`,
    });
    const verdict = async (): Promise<string | null> =>
      (await get('/api/runs')).json<RunList>().runs[0].verdict;
    await until(async () => (await verdict()) !== null, 'the first verdict');
    const first = await verdict();
    for (let i = 0; i < 40; i++)
      made.row({ 'kl/step': Number.NaN, 'loss/value': Number.NaN, 'grad/norm': Number.NaN });
    await until(async () => (await verdict()) === 'sick', 'it is sick');
    await until(() => got.some(({ body }) => body.includes('"sick"')), 'the webhook is told');
    await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('"sick"'), 'the command is told');
    await new Promise(resolve => setTimeout(resolve, 1500));
    const sick = got.filter(({ body }) => (JSON.parse(body) as VerdictChange).verdict === 'sick');
    expect(sick).toHaveLength(1);
    expect(sick[0].type).toContain('application/json');
    expect(JSON.parse(sick[0].body)).toMatchObject({
      run: 'falls-ill',
      before: first,
      verdict: 'sick',
      rootCause: 'non-finite',
    });
    const told = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>);
    expect(told.at(-1)).toMatchObject({
      KEEL_RUN: 'falls-ill',
      KEEL_VERDICT: 'sick',
      KEEL_VERDICT_BEFORE: first,
      body: { verdict: 'sick' },
    });
    close();
  });

  test('what was over before the server came is no news', async () => {
    const root = scratch();
    const made = makeRun(root, 'long-dead', 10);
    for (let i = 0; i < 40; i++) made.row({ 'kl/step': Number.NaN, 'loss/value': Number.NaN });
    made.writer.end('failed', 'NaN');
    const { got, url, close } = await hook(() => [200, {}]);
    const { get } = await start({ roots: [root], webhook: url });
    await until(
      async () => (await get('/api/runs')).json<RunList>().runs[0].verdict === 'sick',
      'it is judged',
    );
    await new Promise(resolve => setTimeout(resolve, 500));
    expect(got).toEqual([]);
    close();
  });

  test('a command is a program with words, not a line for a shell', async () => {
    expect(wordsOf(`notify-send "high KL" '; rm x' plain`)).toEqual([
      'notify-send',
      'high KL',
      '; rm x',
      'plain',
    ]);
    expect(() => wordsOf('  ')).toThrow(/empty/);
    const cwd = scratch();
    const out = join(cwd, 'argv.json');
    const script = join(cwd, 'argv.mjs');
    writeFileSync(
      script,
      `import { writeFileSync } from 'node:fs'; writeFileSync(process.argv[2], JSON.stringify(process.argv.slice(3)));`,
    );
    const alerts = createAlerts({
      command: `"${process.execPath}" ${script} ${out} $(touch pwned) ; touch pwned`,
    });
    alerts.tell(change);
    await until(() => existsSync(out), 'it ran');
    expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual(['$(touch', 'pwned)', ';', 'touch', 'pwned']);
    expect(existsSync('pwned')).toBe(false);
    alerts.close();
  });

  test('a webhook that fails, is gone or leads elsewhere is noted, not followed', async () => {
    const problems: string[] = [];
    const elsewhere = await hook(() => [200, {}]);
    const redirecting = await hook(() => [302, { location: elsewhere.url }]);
    const failing = await hook(() => [500, {}]);
    for (const webhook of [redirecting.url, failing.url, 'http://127.0.0.1:1/x']) {
      const alerts = createAlerts({ webhook, onProblem: sentence => problems.push(sentence) });
      alerts.tell(change);
    }
    await until(() => problems.length === 3, 'all are noted');
    expect(elsewhere.got).toEqual([]);
    expect(problems.join('\n')).toMatch(/answered 500/);
    expect(problems.filter(text => text.includes('could not be reached'))).toHaveLength(2);
    for (const { close } of [elsewhere, redirecting, failing]) close();
  });

  test.each(['file:///etc/passwd', 'ftp://x', 'javascript:1', 'nonsense', ''])(
    '%s is no webhook',
    address => {
      expect(() => checkWebhook(address)).toThrow(/webhook/);
    },
  );

  test('a command that cannot be started is noted', async () => {
    const problems: string[] = [];
    createAlerts({ command: '/no/such/program', onProblem: sentence => problems.push(sentence) }).tell(
      change,
    );
    await until(() => problems.length === 1, 'noted');
    expect(problems[0]).toContain('could not be started');
  });
});
