/**
 * A study's journal, append-only, one JSON line for each thing that happened, in the format of Optuna's JournalStorage 3.1:
 * `optuna.load_study(study_name=…, storage=JournalStorage(JournalFileStorage('journal.log')))` opens it. What Optuna has no
 * word for stands in attributes of trials that begin `keel:`.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fail, RunError, show } from '../base/errors.ts';
import { AppendFile, attempt } from '../base/files.ts';
import { endOfLastLine, readLines } from '../metrics/lines.ts';
import { acquireLock, type Lock } from '../runs/lock.ts';
import { spaceOf } from './checks.ts';
import { type JournalProblem, outcomeAttr, ownPrefix, Replay, spaceAttr } from './journal-replay.ts';
import {
  directionNumber,
  distributionJson,
  internalOf,
  isOver,
  localIso,
  operations,
  pythonJson,
  stateNumber,
} from './optuna-format.ts';
import type { Axis, Params, RunOutcome, Space, Study, Trial } from './schema.ts';

/** A thousand trials of ten seeds take five megabytes, and as much again at each rung. */
const maxJournalBytes = 2 ** 28;

/** What a journal says. */
export interface JournalContent {
  /** Undefined if it has no study yet. */
  readonly name: string | undefined;
  readonly trials: readonly Trial[];
  readonly problems: readonly JournalProblem[];
}

/** Reads a whole journal. A last line without its line break is not there yet. */
export function readJournal(path: string): JournalContent {
  return new JournalReader(path).read();
}

/** Reads what was appended since it last looked. */
export class JournalReader {
  readonly path: string;
  #replay = new Replay();
  #offset = 0;
  #inode: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /** How many bytes were read: where they have not changed, nothing has. */
  get offset(): number {
    return this.#offset;
  }

  /** What it says now; a journal that is not there yet says nothing, one that was replaced is read anew. */
  read(): JournalContent {
    const found = attempt('read', this.path, () => statSync(this.path, { throwIfNoEntry: false }));
    const isOther = found === undefined || found.size < this.#offset || found.ino !== this.#inode;
    if (isOther) [this.#replay, this.#offset, this.#inode] = [new Replay(), 0, found?.ino];
    if (found !== undefined && found.size > this.#offset) {
      if (found.size > maxJournalBytes)
        fail(`${this.path} has ${found.size} bytes, at most ${maxJournalBytes} are read: is it a journal?`);
      for (const { text, end } of readLines(this.path, this.#offset)) {
        this.#replay.apply(text);
        this.#offset = end;
      }
    }
    const { name, trials, problems } = this.#replay;
    return { name, trials, problems };
  }

  /** For the writer, which goes on where reading ended. */
  get replay(): Replay {
    return this.#replay;
  }
}

/** What is to be known of a study to write its journal. */
export type JournalStudy = Pick<Study, 'name' | 'space' | 'objective'>;

/** A new trial. */
export interface NewTrial {
  readonly params: Params;
  readonly seeds: readonly number[];
  /** Default: `search`. */
  readonly purpose?: Trial['purpose'];
  /** Default: `running`. */
  readonly state?: 'waiting' | 'running';
}

/** How a trial ended. */
export interface TrialEnd {
  /** What is complete has a value; without one it is `failed`. */
  readonly state: 'complete' | 'pruned' | 'failed';
  readonly value: number | null;
  readonly violations: readonly string[];
}

/**
 * Writes a journal; one process at a time, by the lock of the study's directory. What a method did is on the disk when it
 * returns. A line that a kill left half written is cut off. What Optuna appends between two calls is taken in; for a call that
 * meets one of Optuna's in the same moment nothing is promised, as Optuna's own lock is not taken.
 */
export class JournalWriter {
  readonly path: string;
  readonly #axes: ReadonlyMap<string, Axis>;
  readonly #reader: JournalReader;
  readonly #lock: Lock;
  #file: AppendFile;
  readonly #now: () => number;

  /** Opens the journal of a study, and begins it where there is none. */
  constructor(path: string, study: JournalStudy, now: () => number = Date.now) {
    this.path = path;
    this.#now = now;
    this.#axes = new Map(study.space.map(axis => [axis.key, axis]));
    this.#lock = acquireLock(dirname(path));
    try {
      this.#file = new AppendFile(path, endOfLastLine);
      try {
        this.#reader = new JournalReader(path);
        this.#takeIn();
        const { name } = this.#replay;
        if (name !== undefined && name !== study.name)
          fail(
            `${path} is the journal of ${show(name)}, not of ${show(study.name)}: choose another directory`,
          );
        this.#begin(study);
      } catch (error) {
        this.#file.close();
        throw error;
      }
    } catch (error) {
      this.#lock.release();
      throw error;
    }
  }

  get #replay(): Replay {
    return this.#reader.replay;
  }

  /** All trials, those that Optuna added included. */
  get trials(): readonly Trial[] {
    return this.#replay.trials;
  }

  /** A kill between the lines of a study's beginning leaves a study without its space: it is said again. */
  #begin({ name, space, objective }: JournalStudy): void {
    const lines: string[] = [];
    if (this.#replay.name === undefined)
      lines.push(
        line(operations.createStudy, {
          study_name: pythonJson(name),
          directions: pythonJson([directionNumber(objective.direction)]),
        }),
      );
    const told = this.#replay.space;
    if (told !== undefined && asText(told) !== asText(spaceOf(space) ?? space))
      fail(`${this.path} has another search space than its study: put the right study.json back`);
    if (told === undefined)
      lines.push(
        line(operations.setStudyUserAttr, { study_id: '0', user_attr: pythonJson({ [spaceAttr]: space }) }),
      );
    if (lines.length > 0) this.#append(lines);
  }

  /** Adds a trial, whole, in one line. */
  createTrial({ params, seeds, purpose = 'search', state = 'running' }: NewTrial): Trial {
    const entries = Object.entries(params).map(([key, value]) => {
      const domain = this.#axes.get(key)?.domain;
      const internal = domain === undefined ? undefined : internalOf(domain, value);
      if (domain === undefined || internal === undefined)
        fail(`${key} = ${show(value)} is not in the study's space: a trial takes its values from there`);
      return { key, internal, domain };
    });
    const startedAt = this.#now();
    // Other programs may have added trials: the number is that of the line.
    this.#takeIn();
    const number = this.#replay.trials.length;
    this.#append([
      line(operations.createTrial, {
        study_id: '0',
        datetime_start: pythonJson(localIso(startedAt)),
        state: String(stateNumber(state)),
        value: 'null',
        values: 'null',
        distributions: objectOf(
          entries.map(({ key, domain }) => [key, pythonJson(distributionJson(domain))]),
        ),
        params: objectOf(
          entries.map(({ key, internal, domain }) => [
            key,
            pythonJson(internal, domain.kind === 'float' ? 'floats' : 'numbers'),
          ]),
        ),
        user_attrs: pythonJson({
          [`${ownPrefix}purpose`]: purpose,
          [`${ownPrefix}seeds`]: seeds,
          [`${ownPrefix}startedAt`]: startedAt,
        }),
        system_attrs: '{}',
        intermediate_values: '{}',
      }),
    ]);
    return this.#replay.trial(number)!;
  }

  /** A trial that waited begins. */
  startTrial(number: number): void {
    const id = this.#openTrial(number);
    const startedAt = this.#now();
    this.#append([
      line(operations.setTrialStateValues, {
        trial_id: id,
        state: String(stateNumber('running')),
        values: 'null',
        datetime_start: pythonJson(localIso(startedAt)),
      }),
      userAttr(id, `${ownPrefix}startedAt`, startedAt),
    ]);
  }

  /** What a run of a trial came to, in place of what was said of its seed before. */
  setOutcome(number: number, outcome: RunOutcome): void {
    this.#append([userAttr(this.#openTrial(number), outcomeAttr(outcome.seed), outcome)]);
  }

  /** The value of a trial over its seeds at a rung. */
  setRung(number: number, steps: number, value: number): void {
    const id = this.#openTrial(number);
    this.#append([
      line(operations.setTrialIntermediateValue, {
        trial_id: id,
        step: String(steps),
        intermediate_value: pythonJson(value, 'floats'),
      }),
    ]);
  }

  /** Ends a trial. The state is its last line: a kill before it leaves a trial that is still to end. */
  endTrial(number: number, { state, value, violations }: TrialEnd): void {
    if (state === 'complete' && (value === null || Number.isNaN(value)))
      fail(`trial ${number} cannot be complete with the value ${value}: end it as failed`);
    if (Number.isNaN(value)) fail(`trial ${number} cannot have the value NaN: use null`);
    const id = this.#openTrial(number);
    const endedAt = this.#now();
    this.#append([
      userAttr(id, `${ownPrefix}violations`, violations),
      userAttr(id, `${ownPrefix}endedAt`, endedAt),
      // Above 0 is not feasible.
      line(operations.setTrialSystemAttr, {
        trial_id: id,
        system_attr: pythonJson({ constraints: [violations.length] }, 'floats'),
      }),
      line(operations.setTrialStateValues, {
        trial_id: id,
        state: String(stateNumber(state)),
        values: value === null ? 'null' : pythonJson([value], 'floats'),
        datetime_complete: pythonJson(localIso(endedAt)),
      }),
    ]);
  }

  close(): void {
    try {
      this.#file.close();
    } finally {
      this.#lock.release();
    }
  }

  /** The id of a trial that may still change, as text. */
  #openTrial(number: number): string {
    this.#takeIn();
    const trial = this.#replay.trial(number);
    if (trial === undefined) fail(`${this.path} has no trial ${number}: it has ${this.trials.length}`);
    if (isOver(trial.state)) fail(`trial ${number} is over (${trial.state}): nothing of it may change`);
    return String(this.#replay.idOf(number));
  }

  /** What another program, such as Optuna, appended meanwhile; written over, it would be lost. */
  #takeIn(): void {
    this.#file.requireThere();
    this.#reader.read();
    const { damaged } = this.#replay;
    if (damaged !== undefined)
      throw new RunError(
        `${this.path}: ${damaged.text}, so that it is not sure which trials later lines are about: put a whole copy back, or cut it off before that line`,
        { code: 'invalid' },
      );
    if (this.#replay.isDeleted)
      fail(`${this.path}: its study was deleted with Optuna: begin another`, 'no-such-study');
    if (this.#reader.offset === this.#file.size) return;
    this.#file.close();
    this.#file = new AppendFile(this.path);
    if (this.#reader.offset !== this.#file.size)
      fail(`${this.path} is being written by another program: stop that first`, 'locked');
  }

  #append(lines: readonly string[]): void {
    this.#file.append(lines.map(text => `${text}\n`).join(''));
    this.#file.sync();
    this.#reader.read();
  }
}

const asText = (space: Space): string => JSON.stringify(space);

/** Optuna wants to know who wrote a line, and takes those of others as they are. */
const worker = '"keel"';

/** A line whose fields are JSON already. */
const line = (operation: number, fields: Readonly<Record<string, string>>): string =>
  objectOf([['op_code', String(operation)], ['worker_id', worker], ...Object.entries(fields)]);

const userAttr = (id: string, key: string, value: unknown): string =>
  line(operations.setTrialUserAttr, { trial_id: id, user_attr: pythonJson({ [key]: value }) });

const objectOf = (members: readonly (readonly [key: string, json: string])[]): string =>
  `{${members.map(([key, json]) => `${JSON.stringify(key)}: ${json}`).join(', ')}}`;
