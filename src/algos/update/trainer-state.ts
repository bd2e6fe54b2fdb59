/** What every trainer keeps beside its network: config, counters and generators, saved, restored and changed alike. */
import { TrainError } from '../../base/errors.ts';
import { Rng, type RngState } from '../../random/rng.ts';
import { refuseLiveChange } from '../../settings/resolve.ts';
import type { SettingTable } from '../../settings/spec.ts';
import type { UpdateCounters } from './guarded.ts';

/** The part of a snapshot that every trainer has. */
export interface SavedState<K extends UpdateCounters, Streams extends string> {
  readonly counters: K;
  readonly rng: Readonly<Record<Streams, RngState>>;
}

/** Config, counters and generators of one trainer. */
export class TrainerState<
  C extends Readonly<Record<string, unknown>>,
  K extends UpdateCounters,
  Streams extends string,
> {
  readonly counters: K;
  readonly rngs: Record<Streams, Rng>;
  readonly #settings: SettingTable;
  #config: C;

  constructor(settings: SettingTable, config: C, counters: K, rngs: Record<Streams, Rng>) {
    this.counters = counters;
    this.rngs = rngs;
    this.#settings = settings;
    this.#config = config;
  }

  /** As it is now. */
  get config(): C {
    return this.#config;
  }

  /** Other values from now on; throws where one cannot change. */
  adjust(changes: Partial<C>): void {
    refuseLiveChange(this.#settings, this.#config, changes);
    const changed = { ...this.#config, ...changes };
    // What stood before is not this change's fault.
    const before = new Set(
      [...(this.#settings.contradictions?.(this.#config) ?? [])].map(({ text }) => text),
    );
    for (const { text } of this.#settings.contradictions?.(changed) ?? [])
      if (!before.has(text)) throw new TrainError(text);
    this.#config = changed;
  }

  snapshot(): SavedState<K, Streams> {
    const states = Object.entries<Rng>(this.rngs).map(([stream, rng]) => [stream, rng.state()]);
    return { counters: { ...this.counters }, rng: Object.fromEntries(states) };
  }

  restore({ counters, rng }: SavedState<K, Streams>): void {
    Object.assign(this.counters, counters);
    for (const stream of Object.keys(rng) as Streams[]) this.rngs[stream] = Rng.fromState(rng[stream]);
  }
}

/** Refuses a checkpoint that lacks what the config asks for, or has what it does not: [what is here, what was saved]. */
export function refuseOtherParts(
  parts: Readonly<Record<string, readonly [own: unknown, saved: unknown]>>,
): void {
  for (const [name, [own, saved]] of Object.entries(parts)) {
    const [wanted, there] = [own !== undefined, saved !== undefined && saved !== null];
    if (wanted === there) continue;
    throw new TrainError(
      `the checkpoint has ${there ? 'a' : 'no'} ${name}, this config ${wanted ? 'one' : 'none'}: use the config it was trained with`,
    );
  }
}
