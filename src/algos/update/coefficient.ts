/** The weight on a KL, which a controller may change after each update. */
import { type CoefficientRule, isNotableChange, nextCoefficient } from '../../kl/controllers/coefficient.ts';
import type { TrainEvent } from '../events.ts';

/** The weight after an update with this KL over so many samples; a change that is worth it is told with its reason. */
export function controlledCoefficient(
  what: 'klCoef' | 'klRefCoef',
  from: number,
  { kind, target, horizon }: { kind: CoefficientRule['kind']; target: number; horizon: number },
  bounds: { readonly min?: number; readonly max: number },
  update: { readonly kl: number; readonly samples: number; readonly why: string },
  events: TrainEvent[],
): number {
  const rule: CoefficientRule = { kind, target, horizon };
  const to = nextCoefficient(rule, from, update.kl, update.samples, bounds);
  if (isNotableChange(rule, from, to, bounds)) {
    events.push({ type: 'rate-change', what, from, to, why: `${update.why} ${update.kl.toExponential(2)}` });
  }
  return to;
}
