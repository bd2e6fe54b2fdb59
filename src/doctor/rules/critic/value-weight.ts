import { quantile } from '../../statistics/order.ts';
import type { Signals } from '../signals.ts';

/**
 * The share of the value loss in the total loss. Next to 0 its weight is 0. Undefined unless both are logged in the same
 * rows and the value loss is large enough to be seen in the sum.
 */
export function weightOfValueLoss(signals: Signals): number | undefined {
  const total = signals.get('loss/total');
  const { loss } = signals.critic;
  if (total === undefined || loss === undefined || total.n !== loss.n || loss.n < 8) return undefined;
  const ratios = total.v.map((v, i) => v / loss.v[i]).filter(Number.isFinite);
  return ratios.length < 8 || !(loss.median > 1) ? undefined : Math.abs(quantile(ratios, 0.5));
}
