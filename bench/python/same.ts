/** One step of Gymnasium's environments through the bridge, from each state that one of ours comes to. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loadEnvFile, makeEnv } from '../../src/envs/index.ts';
import { Episode } from '../../src/envs/python/episode.ts';
import { Rng } from '../../src/random/rng.ts';
import { report } from '../measure.ts';
import { refuse } from '../refuse.ts';

const file = fileURLToPath(new URL('same_env.py', import.meta.url));
const names = { cartpole: 'CartPole-v1', pendulum: 'Pendulum-v1', acrobot: 'Acrobot-v1' } as const;

export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: { steps: { type: 'string', default: '2000' } } });
  const python =
    process.env.KEEL_SB3_PYTHON ?? refuse('python same needs KEEL_SB3_PYTHON, a Python with Gymnasium');
  for (const [name, ours] of Object.entries(names)) await compare(name, ours, python, Number(values.steps));
}

async function compare(name: string, ours: string, python: string, steps: number): Promise<void> {
  const { id } = await loadEnvFile(`${file}:${name}`);
  const [own, theirs] = [makeEnv(ours), makeEnv(id, { python })];
  const sizes = { obsSize: own.observationSpace.flatSize, actionSize: own.actionSpace.flatSize };
  const [seen, other] = [new Float32Array(sizes.obsSize), new Float32Array(sizes.obsSize)];
  const action = new Float32Array(sizes.actionSize);
  const rng = new Rng(3);
  own.reset({ seed: 1 }, seen);
  let [sameObservations, sameRewards, sameEnds, furthest, rewardOff] = [0, 0, 0, 0, 0];
  for (let i = 0; i < steps; i++) {
    const base = JSON.stringify({ state: stateOf(own.state()), generator: null });
    const episode = new Episode(0, base, sizes).toJson();
    theirs.restore({
      id,
      phase: 'running',
      episodeStep: 0,
      env: { rng: rng.state(), episode, measured: { steps: 0, sums: [], counts: [] } },
    });
    own.actionSpace.sample(rng, action);
    const result = own.step(action, seen);
    const { reward, terminated, truncated } = result;
    const found = theirs.step(action, other);
    const off = Math.max(...seen.map((value, k) => Math.abs(value - other[k])));
    furthest = Math.max(furthest, off);
    rewardOff = Math.max(rewardOff, Math.abs(found.reward - reward));
    if (seen.every((value, k) => Object.is(value, other[k]))) sameObservations++;
    if (Object.is(found.reward, reward)) sameRewards++;
    if (found.terminated === terminated) sameEnds++;
    if (terminated || truncated) own.reset({}, seen);
  }
  own.close?.();
  theirs.close?.();
  report({
    bench: 'python same',
    environment: ours,
    steps,
    sameObservations,
    sameRewards,
    sameEnds,
    furthest,
    rewardOff,
  });
}

/** The numbers of the innermost state, in their order. */
function stateOf(json: unknown): number[] {
  const { env, state } = json as { env?: unknown; state?: object };
  return state === undefined ? stateOf(env) : Object.values(state).flat();
}
