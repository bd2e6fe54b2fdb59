/** What "healthy" rests on, in sentences. */
import { klBand } from '../../metrics/registry.ts';
import { contractOfRun } from '../contract.ts';
import { courseOf } from '../rules/course.ts';
import type { Signals } from '../rules/signals.ts';
import { name, num } from '../rules/words.ts';

export function basisOf({ run, progress, kl, critic }: Signals): string[] {
  const out: string[] = [];
  if (progress !== undefined) out.push(courseOf(progress));
  if (kl !== undefined && !kl.signed)
    out.push(
      `${name(kl.track)} has a median of ${num(kl.median)} (${klBand(kl.median, contractOfRun(run)).name})`,
    );
  if (critic.ev !== undefined)
    out.push(`${name(critic.ev)} has a median of ${num(critic.evLate)} over the second half`);
  return out;
}
