/** A space as the Python side describes it (python/keel/_flat.py). */
import { fail, show } from '../errors.ts';
import {
  type BoxDType,
  box,
  dict,
  discrete,
  multiBinary,
  multiDiscrete,
  type Space,
  tuple,
} from '../spaces.ts';

type Limit = number | string;

const limit = (value: Limit): number =>
  value === 'inf'
    ? Number.POSITIVE_INFINITY
    : value === '-inf'
      ? Number.NEGATIVE_INFINITY
      : typeof value === 'number'
        ? value
        : Number.NaN;

const limits = (value: Limit | readonly Limit[]): number | number[] =>
  Array.isArray(value) ? value.map(limit) : limit(value as Limit);

/** Checked by the functions that make spaces. */
export function spaceFromPython(json: unknown): Space {
  const { kind, ...fields } = json as { readonly kind: Space['kind'] } & Readonly<Record<string, unknown>>;
  switch (kind) {
    case 'box':
      return box({
        shape: fields.shape as number[],
        dtype: fields.dtype as BoxDType,
        low: limits(fields.low as Limit),
        high: limits(fields.high as Limit),
      });
    case 'discrete':
      return discrete(fields.n as number);
    case 'multiDiscrete':
      return multiDiscrete(fields.counts as number[]);
    case 'multiBinary':
      return multiBinary(fields.n as number);
    case 'tuple':
      return tuple((fields.spaces as unknown[]).map(spaceFromPython));
    case 'dict':
      return dict(
        Object.fromEntries(
          Object.entries(fields.spaces as object).map(([name, part]) => [name, spaceFromPython(part)]),
        ),
      );
    default:
      return fail('space-invalid', `Python describes a space of the kind ${show(kind)}, which is none`);
  }
}
