/**
 * The autopilot of a run: looks at its rows now and then, and says what is to be done, if anything.
 *
 * It keeps nothing that is not on the disk: what it decides follows from the rows, the settings and its own steps so far
 * (`events.jsonl`, and of the runs before, the manifest). So a run that was killed decides the same again.
 */
import { ConfigError, TrainError } from '../../base/errors.ts';
import type { Row } from '../../metrics/row.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { type Adjustment, readAdjustments } from '../../runs/inbox.ts';
import { readEvents, readRows } from '../../runs/log.ts';
import { isEvent } from '../../runs/schema.ts';
import type { RunWriter } from '../../runs/writer.ts';
import { refuseLiveChange, refuseOtherShape } from '../../settings/resolve.ts';
import type { RunConfig, Values } from '../../settings/spec.ts';
import type { Algorithm, Learner } from '../algorithm.ts';
import type { TrainEvent } from '../events.ts';
import type { Advice, Advisor, Change } from './advice.ts';

/** What adjustments and events say of who made them. */
export const AUTOPILOT = 'autopilot';

/** A step of the autopilot, as its event tells. */
export type PilotStep = Extract<TrainEvent, { type: 'autopilot' }>;

/** A run that ends so that another one goes on for it. */
export interface HandOver {
  readonly step: PilotStep;
  /** All steps so far, for the manifest of the run that goes on. */
  readonly taken: NonNullable<RunWriter['manifest']['autopilot']>;
}

/** Rows that are judged at most: the newest. A look must not take longer the longer the run is. */
const mostRows = 1000;

export interface Pilot {
  /** After an iteration's row: what is to be done now. */
  after(row: Row): Promise<PilotStep | undefined>;
  /** After the run failed: whether it can go on otherwise. */
  failed(error: TrainError): Promise<PilotStep | undefined>;
  handOver(step: PilotStep): HandOver;
}

interface Parts {
  readonly algorithm: Algorithm;
  readonly learner: Learner;
  readonly config: RunConfig;
  readonly writer: RunWriter;
  readonly advisor: Advisor | undefined;
}

/** Undefined where it is off. To be made when the run's log is cut to where it goes on. */
export function pilotOf({ algorithm, learner, config, writer, advisor }: Parts): Pilot | undefined {
  const { autopilot, autopilotEvery, autopilotWait, autopilotSteps, autopilotConfidence } = config;
  if (!autopilot || advisor === undefined) return undefined;
  const { counters } = learner;
  const { manifest, dir, id } = writer;
  const before = manifest.autopilot ?? [];
  const events = readEvents(dir).items;
  /** Its own steps in this run, each with the iteration after which it was taken. */
  const own: (PilotStep & { readonly iteration: number })[] = events.flatMap(event =>
    isEvent(event, 'autopilot') ? [event] : [],
  );
  const matters = (key: string): boolean => algorithm.settings.keys[key]?.doctor !== undefined;
  /** The iterations before which a resume changed a setting that the doctor knows. */
  const resumedWith = events.flatMap(event =>
    isEvent(event, 'resumed') && Object.keys(event.written ?? {}).some(matters) ? [event.iteration] : [],
  );
  /** The iteration after which rows are judged. */
  let since = own.at(-1)?.iteration ?? 0;
  let rows = readRows(dir).items.slice(since).map(untimed);

  /** The newest iteration so far before which a person changed a setting that the doctor knows: by hand, or at a resume. */
  const changedAt = (): number => {
    const byHand = readAdjustments(dir).flatMap(({ by, key, iteration }) =>
      by !== AUTOPILOT && matters(key) ? [iteration - 1] : [],
    );
    return Math.max(0, ...[...resumedWith, ...byHand].filter(iteration => iteration < counters.iteration));
  };

  const look = (
    of: readonly Row[],
    error: string | null,
    changed = changedAt() - since,
  ): Promise<Advice | undefined> => {
    const judged = of.slice(-mostRows);
    return advisor({
      dir,
      algorithm: algorithm.name,
      environment: learner.environment,
      seed: config.seed,
      config: learner.config as Values,
      rows: judged,
      changed: Math.max(0, changed - (of.length - judged.length)),
      error,
    });
  };
  const isSure = (advice: Advice | undefined): advice is Advice =>
    advice !== undefined && advice.confidence >= autopilotConfidence!;

  /** Keys that a person has set again after the autopilot had: they are that person's. */
  const takenBack = (): Set<string> => {
    const setAt = new Map<string, number>(
      before.flatMap(({ changes }) => changes.map(({ key }): [string, number] => [key, 0])),
    );
    for (const { changes, iteration } of own)
      for (const { key } of changes) setAt.set(key, Math.min(iteration, setAt.get(key) ?? iteration));
    const byHand = readAdjustments(dir).filter(({ by }) => by !== AUTOPILOT);
    return new Set(
      byHand
        .filter(({ key, iteration }) => iteration > (setAt.get(key) ?? Number.POSITIVE_INFINITY))
        .map(({ key }) => key),
    );
  };

  const valueNow = (key: string): Change['value'] | null =>
    (learner.config as Record<string, Change['value'] | null>)[key] ?? null;

  const isLive = ({ key, value }: Change): boolean => {
    try {
      refuseLiveChange(algorithm.settings, learner.config as Values, { [key]: value });
      return typeof value === 'number';
    } catch (error) {
      if (error instanceof TrainError) return false;
      throw error;
    }
  };

  const keepsShape = (changes: readonly Change[]): boolean => {
    try {
      const wanted = { ...learner.config, ...Object.fromEntries(changes.map(c => [c.key, c.value])) };
      refuseOtherShape(algorithm.settings, learner.config as Values, wanted, 'forking');
      return true;
    } catch (error) {
      if (error instanceof ConfigError) return false;
      throw error;
    }
  };

  /** Only settings that there are, that nobody else has set, and that are not so already. */
  function open(changes: readonly Change[]): Change[] {
    const byHand = takenBack();
    return changes.filter(
      ({ key, value }) =>
        Object.hasOwn(algorithm.settings.keys, key) && !byHand.has(key) && valueNow(key) !== value,
    );
  }

  function stepOf(advice: Advice, isLate: boolean): PilotStep | undefined {
    const wanted = open(advice.changes);
    const lives = own.filter(({ action }) => action === 'set');
    const said = (action: PilotStep['action'], changes: readonly Change[], firstSeen: number): PilotStep => ({
      type: 'autopilot',
      action,
      rule: advice.rule,
      cause: advice.cause,
      confidence: advice.confidence,
      why: advice.why,
      firstSeen,
      changes: changes.map(({ key, value }) => ({ key, from: valueNow(key), value })),
    });
    /** From before the harm, as another run. */
    const elsewhere = (changes: readonly Change[], firstSeen: number): PilotStep | undefined => {
      const runs = [...before, ...own].filter(({ action }) => action !== 'set').length;
      const child = childId(id, runs + 1);
      if (!keepsShape(changes)) return { ...said('begin-again', changes, firstSeen), child };
      const healthy = listCheckpoints(dir).findLast(
        ({ step, problem }) => step < firstSeen && problem === undefined,
      );
      return healthy && { ...said('fork', changes, firstSeen), checkpoint: healthy.step, child };
    };
    const [first] = lives;
    if (first !== undefined) {
      // A change in the run did not help: what it did to the policy before stays. Back to before, with all that was changed.
      const carried = new Map(lives.flatMap(({ changes }) => changes.map(c => [c.key, c] as const)));
      for (const change of lives.at(-1)!.cause === advice.cause ? wanted : [])
        carried.set(change.key, { ...change, from: null });
      const byHand = takenBack();
      const changes = [...carried.values()].filter(({ key }) => !byHand.has(key)) as Change[];
      return changes.length === 0 ? undefined : elsewhere(changes, first.firstSeen);
    }
    if (wanted.length === 0) return undefined;
    // Sick from its first row: nothing was learnt that would be worth keeping.
    const fromStart = rows.length > 0 && advice.firstSeen <= rows[0]['train/step'];
    if (!fromStart && !isLate && wanted.every(isLive)) return said('set', wanted, advice.firstSeen);
    return elsewhere(wanted, advice.firstSeen);
  }

  async function judge(error: string | null, isLate: boolean): Promise<PilotStep | undefined> {
    if (before.length + own.length >= autopilotSteps!) return undefined;
    const advice = await look(rows, error);
    if (!isSure(advice)) return undefined;
    // One look may be wrong: it was said half a look ago, too.
    if (error === null) {
      const earlier = await look(rows.slice(0, -Math.ceil(autopilotEvery! / 2)), null);
      if (earlier?.cause !== advice.cause) return undefined;
    }
    const step = stepOf(advice, isLate);
    if (step !== undefined) {
      since = counters.iteration;
      own.push({ ...step, iteration: since });
      rows = [];
    }
    return step;
  }

  return {
    async after(row) {
      rows.push(untimed(row));
      const { iteration, steps: done } = counters;
      const ended = done >= learner.totalSteps;
      const began = since === 0 && before.length === 0;
      if (iteration - since < (began ? autopilotEvery! : autopilotWait!) && !ended) return undefined;
      if (iteration % autopilotEvery! !== 0 && !ended) return undefined;
      // What is left must be long enough to see what a change does.
      const left = ((learner.totalSteps - done) * iteration) / done;
      return judge(null, left < autopilotWait!);
    },
    failed: error => judge(error.message, true),
    handOver: step => ({
      step,
      taken: [
        ...before,
        ...own.map(({ action, rule, cause, changes }) => ({ run: id, action, rule, cause, changes })),
      ],
    }),
  };
}

/** The changes of a step to a run that goes on, from its next iteration. */
export const adjustmentsOf = ({ changes }: PilotStep, iteration: number): Adjustment[] =>
  changes.map(({ key, value }) => ({ iteration, key, value: value as number, by: AUTOPILOT }));

/** `walk`, `walk-auto1`, `walk-auto2`: what a run and those that go on for it are called. */
const childId = (id: string, number: number): string =>
  `${id.replace(/-auto\d+$/, '').slice(0, 100)}-auto${number}`;

/** How long things took differs from one time to the next. */
const untimed = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith('time/')));
