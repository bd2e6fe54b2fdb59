/** The one place at which code that a run names is let run, or not. */
import type { NamedByUser } from '../runs/named-code.ts';
import { type Naming, refusal, trustCode, type UntrustedCode, untrustedCode } from '../runs/trust.ts';

/**
 * Whether code that a run's manifest names may run, where the user has neither named it nor trusted that run: `true` runs
 * it and is remembered, a function is asked. It is refused unless told.
 */
export type Trust = boolean | ((code: UntrustedCode) => boolean | Promise<boolean>);

/** Refuses to open a run whose code is not to run; whatever loads or starts what a manifest names calls it first. */
export async function requireTrust(run: Naming, named: NamedByUser, trust: Trust | undefined): Promise<void> {
  const untrusted = untrustedCode(run, named);
  if (untrusted === undefined) return;
  const may = typeof trust === 'function' ? await trust(untrusted) : trust;
  if (may !== true) throw refusal(untrusted);
  trustCode(run.dir, untrusted.code);
}
