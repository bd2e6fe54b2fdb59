/** What a run depends on: seeds, states, limits, and processes that die. */
import { afterEach, describe, expect, it } from 'vitest';
import {
  type AnyMakeOptions,
  checkEnv,
  loadEnvFile,
  makeEnv,
  makeVectorEnv,
  type VectorEnv,
} from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/rng.ts';
import { testEnv } from '../support/contract.ts';
import { python, pythonFile } from './support/files.ts';
import { servers } from './support/servers.ts';

const walker = pythonFile('walker.py');
const opened: VectorEnv[] = [];
afterEach(async () => {
  for (const envs of opened.splice(0)) await envs.close();
});

async function open(
  name: string,
  how: { envCount?: number; workers?: number; options?: AnyMakeOptions } = {},
) {
  const { envCount = 4, workers = 0, options } = how;
  const envs = await makeVectorEnv(`${walker}:${name}`, {
    envCount,
    workers,
    options: { python, ...options },
  });
  opened.push(envs);
  return envs;
}

await loadEnvFile(`${walker}:Walker`);
testEnv('py:walker.Walker-v0', options => makeEnv('py:walker.Walker-v0', { python, ...options }), {
  slow: true,
});

/** All that a vector gives in so many steps, to the bit. */
async function play(envs: VectorEnv, steps: number, rng: Rng, each: (step: number) => void = () => {}) {
  const lines: string[] = [];
  const actions = new Float32Array(envs.envCount * envs.actionSize);
  for (let i = 0; i < steps; i++) {
    each(i);
    for (let n = 0; n < envs.envCount; n++) envs.actionSpace.sample(rng, actions, n);
    await envs.step(actions);
    const { observations, rewards, terminated, truncated, finalObservations, episodeReturns } = envs;
    // Those of other steps are of older episodes.
    const ended = envs.endedCount > 0 ? [...finalObservations, ...episodeReturns] : [];
    lines.push([...observations, ...rewards, ...terminated, ...truncated, ...ended].join());
  }
  return lines;
}

describe.runIf(process.platform === 'linux')('processes that are killed', () => {
  it.each([0, 2])('leave no trace in what is collected, with %i workers', async workers => {
    const calm = await open('Walker');
    await calm.reset({ seed: 9 });
    const expected = await play(calm, 200, new Rng(1));
    const options = { stepSeconds: 59 - workers }; // a process of their own
    const before = new Set(servers());
    const struck = await open('Walker', { workers, options });
    await struck.reset({ seed: 9 });
    const kills = new Rng(2);
    let killed = 0;
    const found = await play(struck, 200, new Rng(1), step => {
      if (step % 40 !== 20) return;
      const own = servers().filter(pid => !before.has(pid));
      expect(own.length).toBe(Math.max(1, workers));
      process.kill(own[kills.integer(own.length)], 'SIGKILL');
      killed++;
    });
    expect(found).toEqual(expected);
    const notices = struck.takeNotices!();
    expect(notices.length).toBe(killed);
    expect(notices[0]).toMatch(/was started again: it was ended by SIGKILL; all go on where they were$/);
    await struck.close();
  });

  it('are an error where they die more often than is allowed', async () => {
    const envs = await open('Walker', { options: { restarts: 1 } });
    await envs.reset({ seed: 1 });
    await expect(
      play(envs, 10, new Rng(1), () => {
        for (const pid of servers()) process.kill(pid, 'SIGKILL');
      }),
    ).rejects.toThrow(/has died 2 times, 1 are allowed in 10000 steps \(envOptions\.restarts\)/);
  });

  it('an environment that cannot be repeated is cut, and that is said', async () => {
    const envs = await open('Forgets', { envCount: 1 });
    await envs.reset({ seed: 1 });
    await envs.step(new Float32Array(1));
    const last = [...envs.observations];
    for (const pid of servers()) process.kill(pid, 'SIGKILL');
    await envs.step(new Float32Array(1));
    expect([...envs.truncated]).toEqual([1]);
    expect([...envs.finalObservations]).toEqual(last);
    expect([...envs.rewards]).toEqual([0]);
    expect(envs.takeNotices!()[0]).toMatch(/1 cannot go on .* their episodes are cut/);
  });
});

describe('a saved state', () => {
  it.each(['Walker', 'Remembers', 'Old'])('of %s goes on to the bit', async name => {
    const envs = await open(name);
    await envs.reset({ seed: 4 });
    await play(envs, 63, new Rng(1));
    const saved = JSON.parse(JSON.stringify(await envs.state()));
    const expected = await play(envs, 90, new Rng(2));
    const other = await open(name);
    await other.restore(saved);
    expect(await play(other, 90, new Rng(2))).toEqual(expected);
    expect(other.takeNotices!()).toEqual([]);
  });

  it('of one that gives its own has that and no actions', async () => {
    const texts = await Promise.all(
      ['Walker', 'Remembers'].map(async name => {
        const envs = await open(name, { envCount: 1 });
        await envs.reset({ seed: 4 });
        await play(envs, 30, new Rng(1));
        return JSON.stringify(await envs.state());
      }),
    );
    expect(texts[0]).toContain('"steps":30');
    expect(texts[1]).toMatch(/"base":"\{.*random/);
  });

  it('of one that is never twice the same begins another episode, and that is said', async () => {
    const envs = await open('Forgets', { envCount: 2 });
    await envs.reset({ seed: 4 });
    await play(envs, 20, new Rng(1));
    const saved = JSON.parse(JSON.stringify(await envs.state()));
    const other = await open('Forgets', { envCount: 2 });
    await other.restore(saved);
    expect(other.takeNotices!()).toEqual([
      expect.stringMatching(/could not go on .* began another: with get_state and set_state it could/),
      expect.any(String),
    ]);
    // Whole new ones: their time is 0, and their returns begin there.
    expect([other.observations[1], other.observations[4]]).toEqual([0, 0]);
    await play(other, 50, new Rng(1));
    expect([...other.episodeLengths]).toEqual([50, 50]);
  });
});

it('flags and limits are as the environment has them, in the old API too', async () => {
  const envs = await open('Old', { envCount: 1, options: { args: '{"fault": "cut", "at": 7}' } });
  await envs.reset({ seed: 1 });
  await play(envs, 7, new Rng(1));
  expect([envs.truncated[0], envs.terminated[0], envs.episodeLengths[0]]).toEqual([1, 0, 7]);
});

it("Gymnasium's limit is Keel's, and a limit of one's own goes before it", async () => {
  await loadEnvFile(`${walker}:limited`);
  const env = makeEnv('py:walker.limited-v0', { python });
  expect(env.spec.maxEpisodeSteps).toBe(12);
  const longer = makeEnv('py:walker.limited-v0', { python, maxEpisodeSteps: 20 });
  const obs = new Float32Array(3);
  longer.reset({ seed: 1 }, obs);
  let steps = 0;
  while (!longer.step(new Float32Array(1), obs).truncated) steps++;
  expect(steps + 1).toBe(20);
  for (const one of [env, longer]) one.close?.();
});

it('numbers of info are measured: means over the steps that have them', async () => {
  const envs = await open('Walker', { envCount: 1, options: { info: 'x, place.t,is_success' } });
  expect(envs.measures).toEqual(['x', 'place.t', 'is_success']);
  await envs.reset({ seed: 1 });
  const seen: number[] = [];
  for (let i = 0; i < 50; i++) {
    await envs.step(new Float32Array(1));
    seen.push(i < 49 ? envs.observations[0] : envs.finalObservations[0]);
  }
  const [x, t, success] = [...envs.episodeMeasures].map(sum => sum / 50);
  expect(x).toBeCloseTo(seen.reduce((a, b) => a + b) / 50, 6);
  expect(t).toBeCloseTo(25.5, 9);
  expect(success).toBeCloseTo(Math.abs(seen.at(-1)!) < 1 ? 1 : 0, 9);
});

it('the checker passes one that keeps the contract, and names one that does not; what makes a slow one faster', async () => {
  const report = async (name: string) => {
    await loadEnvFile(`${walker}:${name}`);
    return checkEnv(() => makeEnv(`py:walker.${name}-v0`, { python }), { steps: 200, maxMs: 300 });
  };
  expect((await report('Walker')).findings.filter(({ level }) => level === 'error')).toEqual([]);
  expect((await report('Forgets')).findings.map(({ code }) => code)).toContain('seed-ignored');
  const speed = (await report('Wide')).findings.find(({ code }) => code === 'speed');
  expect(speed?.message).toMatch(/one process: training has as many as there are cores \(workers\)$/);
});

it('shows itself in pictures where it was made for it', () => {
  const env = makeEnv('py:walker.Walker-v0', { python, render: true });
  env.reset({ seed: 1 }, new Float32Array(3));
  const { width, height, rgb, stepSeconds } = env.outside!.picture!();
  expect([width, height, rgb.length, stepSeconds]).toEqual([32, 24, 3 * 32 * 24, 0.1]);
  expect(rgb.filter(byte => byte === 255).length).toBe(24);
  env.close?.();
});
