/** Gymnasium's spaces out of a pickle, by the names of their classes and what their states say. */
import { box, discrete, multiBinary, multiDiscrete, type Space } from '../../envs/spaces.ts';
import { arrayOf, dtypeOf, numberOf } from '../../pickle/numpy.ts';
import { attributesOf, callOf, describe, PickleError, type PickleValue } from '../../pickle/values.ts';

const kinds: Readonly<Record<string, string>> = {
  'box.Box': 'Box',
  'discrete.Discrete': 'Discrete',
  'multi_discrete.MultiDiscrete': 'MultiDiscrete',
  'multi_binary.MultiBinary': 'MultiBinary',
  'dict.Dict': 'Dict',
  'tuple.Tuple': 'Tuple',
};

/** Its name in Gymnasium or gym, and its attributes. */
function partsOf(value: PickleValue | undefined, field: string) {
  const name = callOf(value)?.name ?? '';
  const kind = kinds[/^(?:gymnasium|gym)\.spaces\.(.+)$/.exec(name)?.[1] ?? ''];
  const attributes = attributesOf(value);
  if (kind === undefined || attributes === undefined)
    throw new PickleError(
      `${field} is ${describe(value)}, one of Gymnasium's spaces is needed: name the environment (--env)`,
    );
  return { kind, attributes };
}

/** What an MLP policy sees: numbers as they are. */
export function observationSpaceOf(value: PickleValue | undefined): Space {
  const field = 'observation_space';
  const { kind, attributes } = partsOf(value, field);
  switch (kind) {
    case 'Box': {
      const space = boxOf(attributes, field);
      if (space.shape.length === 3 && dtypeOf(attributes.get('dtype'), field) === 'u1')
        throw new PickleError(
          `${field} is an image (${space.shape.join(' x ')} uint8), which Stable-Baselines3 divides by 255: only vectors of numbers can be taken over`,
        );
      return space;
    }
    case 'MultiBinary':
      return binaryOf(attributes, field);
    // The network sees an index as so many numbers, one of them 1; so does that of an environment in Python here.
    case 'Discrete':
      return multiBinary(numberOf(attributes.get('n'), `${field}.n`));
    case 'MultiDiscrete':
      return multiBinary(countsOf(attributes, field).reduce((sum, n) => sum + n, 0));
    default:
      throw new PickleError(
        `${field} is ${kind}, parts with names or places cannot be taken over: flatten it (FlattenObservation)`,
      );
  }
}

/** What it may do. */
export function actionSpaceOf(value: PickleValue | undefined): Space {
  const field = 'action_space';
  const { kind, attributes } = partsOf(value, field);
  switch (kind) {
    case 'Box':
      return boxOf(attributes, field);
    case 'Discrete':
      return discrete(numberOf(attributes.get('n'), `${field}.n`));
    case 'MultiDiscrete':
      return multiDiscrete(countsOf(attributes, field));
    case 'MultiBinary':
      return binaryOf(attributes, field);
    default:
      throw new PickleError(
        `${field} is ${kind}, which Stable-Baselines3 cannot train either: is the file damaged?`,
      );
  }
}

type Attributes = ReadonlyMap<PickleValue, PickleValue>;

function boxOf(attributes: Attributes, field: string) {
  const low = arrayOf(attributes.get('low'), `${field}.low`);
  const high = arrayOf(attributes.get('high'), `${field}.high`);
  return box({ shape: low.shape, low: low.values, high: high.values });
}

function binaryOf(attributes: Attributes, field: string): Space {
  return multiBinary(numberOf(attributes.get('n'), `${field}.n`));
}

function countsOf(attributes: Attributes, field: string): number[] {
  const { values, shape } = arrayOf(attributes.get('nvec'), `${field}.nvec`);
  if (shape.length > 1)
    throw new PickleError(`${field}.nvec has ${shape.length} axes, one can be taken over`);
  return [...values];
}
