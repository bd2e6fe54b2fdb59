/**
 * Models of Stable-Baselines3: a zip archive with `data` (JSON, in which what JSON cannot say is a pickle in base64),
 * `policy.pth` and `policy.optimizer.pth`. Of the pickles only what is needed is looked at: the class of the policy, its
 * arguments and the spaces. PPO and A2C with an MLP policy can be taken over; whatever would act otherwise is refused by name.
 */
import { show } from '../../base/errors.ts';
import { readBounded } from '../../base/files.ts';
import { parseJson } from '../../base/json.ts';
import { readPickle } from '../../pickle/pickle.ts';
import { openTorch, stateDict, type TorchFile, type TorchTensor } from '../../pickle/torch.ts';
import { describe, dictOf, globalName, PickleError, type PickleValue } from '../../pickle/values.ts';
import { openZip, type Zip } from '../../pickle/zip.ts';
import type { Settings } from '../algorithm.ts';
import type { ImportedPolicy } from './imported.ts';
import { NamedTensors, networkSettings, type TorchNetwork } from './network.ts';
import { type ModelData, trainingSettings } from './sb3-settings.ts';
import { actionSpaceOf, observationSpaceOf } from './spaces.ts';

const maxBytes = 2 ** 28;
const maxDataBytes = 2 ** 26;

/** Reads a model; `path` may leave `.zip` out, as `load` of Stable-Baselines3 allows. */
export function readSb3(path: string): ImportedPolicy {
  const zip = openZip(readBounded(path, maxBytes), path);
  const data = dataOf(zip, path);
  const algorithm = algorithmOf(data, path);
  const activation = checkedPolicy(data, path);
  const parameters = openTorch(zip.read('policy.pth'), `policy.pth of ${path}`);
  const tensors = stateDict(parameters, parameters.root, `policy.pth of ${path}`);
  const network = networkOf(tensors, `policy.pth of ${path}`);
  const spaces = {
    observationSpace: observationSpaceOf(data.value('observation_space')),
    actionSpace: actionSpaceOf(data.value('action_space')),
  };
  const { adam, rate, epsilon, note } = optimiserOf(zip, tensors, path);
  const training = trainingSettings(data, { algorithm, rate });
  const version = zip.has('_stable_baselines3_version')
    ? Buffer.from(zip.read('_stable_baselines3_version')).toString('latin1').trim().slice(0, 20)
    : '';
  const settings: Settings = {
    ...training.settings,
    ...(adam && epsilon !== undefined && { adamEpsilon: epsilon }),
    ...networkSettings(network, path),
    activation,
  };
  return {
    from: ['Stable-Baselines3', version, algorithm].filter(Boolean).join(' '),
    source: path,
    network,
    spaces,
    settings,
    isWhole: algorithm === 'PPO',
    steps: training.steps,
    adam,
    notes: [...training.notes, ...(note === undefined ? [] : [note])],
  };
}

/** `data`, whose fields are JSON or, unread, a pickle. */
function dataOf(zip: Zip, path: string): ModelData {
  if (!zip.has('data') || !zip.has('policy.pth'))
    throw new PickleError(
      `${path} has no ${zip.has('data') ? 'policy.pth' : 'data'}: it is no model of Stable-Baselines3`,
    );
  const bytes = zip.read('data');
  if (bytes.length > maxDataBytes)
    throw new PickleError(`data of ${path} has ${bytes.length} bytes, at most ${maxDataBytes} are read`);
  const json = parseJson(bytes, `data of ${path}`);
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new PickleError(
      `data of ${path} is ${show(json)}, fields are needed: it is no model of Stable-Baselines3`,
    );
  const fields = json as Readonly<Record<string, unknown>>;
  const field = (name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined);
  return {
    has: name => Object.hasOwn(fields, name),
    json: field,
    value(name) {
      const found = field(name);
      const packed = (found as { ':serialized:'?: unknown } | null | undefined)?.[':serialized:'];
      if (packed === undefined) return fromJson(found);
      if (typeof packed !== 'string' || !/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(packed))
        throw new PickleError(`${name} of ${path} is no base64: the file is damaged`);
      return readPickle(Buffer.from(packed, 'base64'), `${name} of ${path}`);
    },
  };
}

/** JSON as a pickle would say it; text and numbers are the same in both. */
function fromJson(value: unknown): PickleValue | undefined {
  if (value === undefined || value === null) return value;
  if (Array.isArray(value)) return value.map(item => fromJson(item) ?? null);
  if (typeof value === 'object')
    return new Map(Object.entries(value).map(([key, item]) => [key, fromJson(item) ?? null]));
  return value as boolean | number | string;
}

function algorithmOf(data: ModelData, path: string): 'PPO' | 'A2C' {
  if (!data.has('gae_lambda') || !data.has('n_steps')) {
    const policy = globalName(data.value('policy_class'));
    throw new PickleError(
      `${path} is no PPO or A2C${policy === undefined ? '' : ` (its policy is ${show(policy)})`}: only models of these two can be taken over`,
    );
  }
  return data.has('n_epochs') && data.has('clip_range') ? 'PPO' : 'A2C';
}

const activations: Readonly<Record<string, string>> = {
  'torch.nn.modules.activation.Tanh': 'tanh',
  'torch.nn.modules.activation.ReLU': 'relu',
  'torch.nn.modules.activation.GELU': 'gelu',
};

const policies = ['ActorCriticPolicy', 'MlpPolicy'].map(name => `stable_baselines3.common.policies.${name}`);
const flatten = 'stable_baselines3.common.torch_layers.FlattenExtractor';

/** Refuses a policy that computes something else than layers and activations; gives the activation. */
function checkedPolicy(data: ModelData, path: string): string {
  const refuse = (problem: string): never => {
    throw new PickleError(`${path}: ${problem}`);
  };
  const policyClass = data.value('policy_class');
  const name = globalName(policyClass);
  if (name === undefined || !policies.includes(name))
    refuse(
      `policy_class is ${name === undefined ? describe(policyClass) : show(name)}, only MlpPolicy (ActorCriticPolicy) can be taken over`,
    );
  if (data.json('use_sde') === true)
    refuse('use_sde is true: actions whose noise depends on the state (gSDE) cannot be taken over');
  const given = data.value('policy_kwargs') ?? new Map();
  const options = dictOf(given) ?? refuse(`policy_kwargs is ${describe(given)}, a dict is needed`);
  for (const option of ['squash_output', 'use_sde'])
    if (options.get(option) === true) refuse(`policy_kwargs has ${option}, which cannot be taken over`);
  const extractor = options.get('features_extractor_class');
  if (extractor !== undefined && globalName(extractor) !== flatten)
    refuse(
      `features_extractor_class is ${globalName(extractor) ?? describe(extractor)}, only FlattenExtractor can be taken over`,
    );
  const activation = options.get('activation_fn');
  if (activation === undefined) return 'tanh';
  const known = globalName(activation) ?? '';
  if (!Object.hasOwn(activations, known))
    refuse(
      `activation_fn is ${known || describe(activation)}, Keel has Tanh, ReLU and GELU: train with one of these`,
    );
  return activations[known];
}

/** The layers of `ActorCriticPolicy`; those that versions before 1.8 let both networks share become each one's own. */
function networkOf(tensors: Map<string, TorchTensor>, source: string): TorchNetwork {
  const named = new NamedTensors(tensors, source);
  const shared = named.layers('mlp_extractor.shared_net');
  const logStd = named.has('log_std') ? named.take('log_std') : undefined;
  if (logStd !== undefined && logStd.shape.length > 1)
    throw new PickleError(
      `log_std of ${source} is a matrix, as of gSDE (use_sde), which cannot be taken over`,
    );
  const network = {
    actor: [...shared, ...named.layers('mlp_extractor.policy_net'), named.layer('action_net')],
    critic: [...shared, ...named.layers('mlp_extractor.value_net'), named.layer('value_net')],
    logStd: logStd?.data,
  };
  named.refuseRest('an MLP policy');
  return network;
}

interface Optimiser {
  readonly adam?: ImportedPolicy['adam'];
  /** As it was last. */
  readonly rate?: number | undefined;
  readonly epsilon?: number | undefined;
  /** Why its moments are left behind. */
  readonly note?: string;
}

/** Adam's moments, in the order of the parameters; those of another optimiser begin anew, which is said. */
function optimiserOf(zip: Zip, tensors: Map<string, TorchTensor>, path: string): Optimiser {
  const left = (why: string): string => `the optimiser begins anew: ${why}`;
  if (!zip.has('policy.optimizer.pth')) return { note: left('the model was saved without one') };
  const file = openTorch(zip.read('policy.optimizer.pth'), `policy.optimizer.pth of ${path}`);
  const root = dictOf(file.root);
  const groups = root?.get('param_groups');
  const group = Array.isArray(groups) && groups.length === 1 ? dictOf(groups[0]) : undefined;
  if (group === undefined) return { note: left('its parameters are in groups with rates of their own') };
  const number = (key: string): number | undefined => {
    const value = group.get(key);
    return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
  };
  const [rate, epsilon] = [number('lr'), number('eps')];
  const states = dictOf(root?.get('state'));
  const betas = group.get('betas');
  if (states === undefined || states.size === 0) return { rate, note: left('it had not made a step') };
  if (!Array.isArray(betas)) return { rate, note: left('it was not Adam') };
  if (
    betas[0] !== 0.9 ||
    betas[1] !== 0.999 ||
    group.get('amsgrad') === true ||
    Number(group.get('weight_decay') ?? 0) !== 0
  )
    return { rate, note: left("its betas, decay or amsgrad are not Keel's") };
  const names = [...tensors.keys()];
  const m = new Map<string, TorchTensor>();
  const v = new Map<string, TorchTensor>();
  let steps = 0;
  for (const [i, name] of names.entries()) {
    const state = dictOf(states.get(i));
    const shape = tensors.get(name)!.shape.join();
    const [first, second] = ['exp_avg', 'exp_avg_sq'].map(key => {
      const value = state?.get(key);
      return file.isTensor(value) ? file.tensor(value, `${key} of ${name}`) : undefined;
    });
    if (first?.shape.join() !== shape || second?.shape.join() !== shape)
      return { rate, note: left(`its moments of ${name} have another shape`) };
    m.set(name, first);
    v.set(name, second);
    steps = Math.max(steps, stepOf(file, state?.get('step')));
  }
  if (states.size !== names.length) return { rate, note: left('it has other parameters') };
  const source = `policy.optimizer.pth of ${path}`;
  if ([...v.values()].some(({ data }) => data.some(value => value < 0)))
    throw new PickleError(`${source} has second moments below 0: the file is damaged`);
  return { rate, epsilon, adam: { m: networkOf(m, source), v: networkOf(v, source), steps } };
}

/** A whole number, or a tensor of one. */
function stepOf(file: TorchFile, value: PickleValue | undefined): number {
  const step = file.isTensor(value) ? file.tensor(value, 'step').data[0] : value;
  return typeof step === 'number' && Number.isFinite(step) ? Math.max(0, Math.round(step)) : 0;
}
