/** What "healthy" rests on, in sentences. */
import { klBand } from '../../metrics/registry.ts';
import { contractOfRun } from '../contract.ts';
import { courseSaid } from '../rules/course.ts';
import type { Signals } from '../rules/signals.ts';
import { name, type Said } from '../rules/words.ts';
import { cite, rowsOf, say, settledOf } from './facts.ts';

export function basisOf({ run, progress, kl, critic }: Signals): Said[] {
  const out: Said[] = [];
  if (progress !== undefined) out.push(courseSaid(progress));
  if (kl !== undefined && !kl.signed)
    out.push(
      say`${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')} (${klBand(kl.median, contractOfRun(run)).name})`,
    );
  if (critic.ev !== undefined)
    out.push(
      say`${name(critic.ev)} has a median of ${cite(rowsOf(critic.ev, 0.5), 'median')} over the second half`,
    );
  return out;
}
