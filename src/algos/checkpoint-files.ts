/** A trainer's snapshot as the files of a checkpoint, and back. Weights go by name, so that other tools can read them. */
import { decodeSafetensors, encodeSafetensors, type Parameters } from '../nn/index.ts';
import { Rng } from '../random/index.ts';
import type { PpoSnapshot } from './ppo-trainer.ts';
import { TrainError } from './train-error.ts';

export const POLICY_FILE = 'policy.safetensors';
export const OPTIMIZER_FILE = 'optimizer.safetensors';

export function filesOf(layout: Parameters, { tensors }: PpoSnapshot): Record<string, Uint8Array> {
  const named = (prefix: string, flat: Float32Array): [string, { shape: number[]; data: Float32Array }][] => {
    const views = layout.views(flat);
    return layout.specs.map(({ name, shape }) => [
      `${prefix}${name}`,
      { shape: [...shape], data: views[name] },
    ]);
  };
  const { params, m, v, reference } = tensors;
  return {
    [POLICY_FILE]: encodeSafetensors(
      Object.fromEntries([...named('', params), ...(reference ? named('reference.', reference) : [])]),
    ),
    [OPTIMIZER_FILE]: encodeSafetensors(Object.fromEntries([...named('m.', m), ...named('v.', v)])),
  };
}

/** What `state.json` holds: all of a snapshot that is not a tensor. */
export function stateOf({
  counters,
  rng,
  observationNormaliser,
  rewardNormaliser,
  actionNoise,
  envs,
}: PpoSnapshot) {
  return { counters, rng, observationNormaliser, rewardNormaliser, actionNoise, envs };
}

/** A snapshot from a checkpoint that was found whole; still checked, because its sizes may be of another network. */
export function snapshotFrom(
  layout: Parameters,
  files: ReadonlyMap<string, Uint8Array>,
  state: Readonly<Record<string, unknown>>,
): PpoSnapshot {
  const file = (name: string): Uint8Array =>
    files.get(name) ?? refuse(`the checkpoint has no ${name}: use another checkpoint`);
  const policy = decodeSafetensors(file(POLICY_FILE), POLICY_FILE);
  const optimizer = decodeSafetensors(file(OPTIMIZER_FILE), OPTIMIZER_FILE);
  const flat = (source: typeof policy, prefix: string): Float32Array => {
    const out = new Float32Array(layout.size);
    const views = layout.views(out);
    for (const { name, shape } of layout.specs) {
      const key = `${prefix}${name}`;
      if (!source.names.includes(key))
        refuse(`the checkpoint has no tensor ${key}: its network is another one`);
      const saved = source.info(key).shape;
      if (saved.join() !== shape.join()) {
        refuse(
          `the checkpoint's ${key} is (${saved.join(', ')}), this network's (${shape.join(', ')}): use the config it was trained with`,
        );
      }
      views[name].set(source.float32(key));
    }
    return out;
  };
  const hasReference = policy.names.some(name => name.startsWith('reference.'));
  const { counters, rng, observationNormaliser, rewardNormaliser, actionNoise, envs } =
    state as unknown as PpoSnapshot;
  for (const [name, value] of Object.entries({ counters, rng, envs })) {
    if (typeof value !== 'object' || value === null)
      refuse(`the checkpoint's state has no ${name}: use another checkpoint`);
  }
  // Refused here rather than in the middle of a run.
  Rng.fromState(rng.act);
  Rng.fromState(rng.order);
  return {
    tensors: {
      params: flat(policy, ''),
      m: flat(optimizer, 'm.'),
      v: flat(optimizer, 'v.'),
      ...(hasReference ? { reference: flat(policy, 'reference.') } : {}),
    },
    counters,
    rng,
    observationNormaliser,
    rewardNormaliser,
    actionNoise,
    envs,
  };
}

function refuse(message: string): never {
  throw new TrainError(message);
}
