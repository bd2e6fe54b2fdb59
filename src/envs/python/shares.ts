/** Which process an environment goes to: that of its kind in this thread, or in a share of environments that has one for itself. */
import { Host, type HostOptions } from './host.ts';
import { Staged } from './staged.ts';

/** A process, and what its environments do together. */
export interface Place {
  readonly host: Host;
  readonly staged: Staged;
}

const places = new Map<string, Place>();

let share = '';
/** Makes environments in another process than those of the same kind that are made otherwise, or in another share. */
export function inShare<T>(name: string, make: () => T): T {
  const before = share;
  share = name;
  try {
    return make();
  } finally {
    share = before;
  }
}

/** Ends the process of a share, with whatever is in it. */
export function endShare(name: string): void {
  for (const { host } of [...places.values()]) if (host.share === name) host.end();
}

/** The process of this thread, or of the share, for such environments; started when the first is made. */
export function placeFor(options: HostOptions): Place {
  const key = share + JSON.stringify(options);
  const known = places.get(key);
  if (known !== undefined) return known;
  const host = new Host(options, share, () => places.delete(key));
  const place = { host, staged: new Staged(host) };
  places.set(key, place);
  return place;
}
