/**
 * What a journal's lines come to, line by line, as Optuna's own replay has it: trials are counted over all studies of the file,
 * and one that is over does not change any more. Nothing of a line is believed; what is wrong with it is told, and the rest
 * goes on.
 */
import { show } from '../base/errors.ts';
import { decodeNumber } from '../metrics/row.ts';
import { maxTrials, outcomeOf, spaceOf } from './checks.ts';
import { externalOf, fromPythonJson, isOver, operations, stateOf, timeOf } from './optuna-format.ts';
import type { Axis, ParamValue, RunOutcome, Space, Trial, TrialState } from './schema.ts';

/** Attributes of Keel's own have this before their name. */
export const ownPrefix = 'keel:';
/** A study's axes, which tell a list from its text. */
export const spaceAttr = `${ownPrefix}space`;
/** The newest outcome of a seed. */
export const outcomeAttr = (seed: number): string => `${ownPrefix}outcome:${seed}`;

/** Names and lists in a trial; more is damage. */
const maxParams = 1000;
const maxRungs = 10_000;
const maxOutcomes = 10_000;
const maxViolations = 100;
/** Problems that are told; one more says that there are others. */
const maxProblems = 100;

const purposes = ['search', 'confirm-winner', 'confirm-default'] as const;

/** Something wrong with a line of a journal. */
export interface JournalProblem {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** The line cannot be understood at all: which trial later lines are about is not sure. */
  readonly damaged: boolean;
}

interface OpenTrial {
  readonly number: number;
  state: TrialState;
  readonly params: Map<string, ParamValue>;
  purpose: Trial['purpose'];
  seeds: readonly number[];
  value: number | null;
  readonly rungs: Map<number, number>;
  readonly outcomes: Map<number, RunOutcome>;
  violations: readonly string[] | undefined;
  /** Of Optuna's own constraints, which count where Keel has said nothing. */
  foreignViolations: readonly string[];
  startedAt: number | null;
  endedAt: number | null;
  /** As it was last asked for. */
  told: Trial | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** The state of a journal. */
export class Replay {
  /** Of the first study of the file, which is ours; undefined until it was made. */
  name: string | undefined;
  /** By id: numbers of ours, and null for those of other studies. */
  readonly #trials: (OpenTrial | null)[] = [];
  readonly #own: OpenTrial[] = [];
  readonly #studies = new Set<number>();
  readonly #studyNames = new Set<string>();
  #nextStudy = 0;
  #axes: ReadonlyMap<string, Axis> | undefined;
  readonly #problems: JournalProblem[] = [];
  #damaged: JournalProblem | undefined;
  #line = 0;

  /** The axes; undefined until they are told. */
  get space(): Space | undefined {
    return this.#axes === undefined ? undefined : [...this.#axes.values()];
  }

  /** Whether somebody deleted our study with Optuna, whose lines all stay in the file. */
  get isDeleted(): boolean {
    return this.name !== undefined && !this.#studies.has(0);
  }

  /** All trials of our study, as they stand. */
  get trials(): readonly Trial[] {
    return this.#own.map(trialOf);
  }

  trial(number: number): Trial | undefined {
    const trial = this.#own[number];
    return trial === undefined ? undefined : trialOf(trial);
  }

  get problems(): readonly JournalProblem[] {
    return this.#problems;
  }

  /** The first line that cannot be understood. */
  get damaged(): JournalProblem | undefined {
    return this.#damaged;
  }

  /** What Optuna calls the trial with this number: trials of other studies in the file count. */
  idOf(number: number): number {
    const trial = this.#own[number];
    return trial === undefined ? -1 : this.#trials.indexOf(trial);
  }

  /** Takes in one line; null stands for one that is longer than is read. */
  apply(line: string | null): void {
    this.#line++;
    if (line === null) {
      this.#problem('is longer than a line of a journal may be', true);
      return;
    }
    if (line.trim() === '') {
      this.#problem('is empty', true);
      return;
    }
    let fields: unknown;
    try {
      fields = fromPythonJson(line);
    } catch {
      this.#problem('is not JSON', true);
      return;
    }
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
      this.#problem(`is ${show(fields)}, not an operation`, true);
      return;
    }
    this.#operate(fields as Fields);
  }

  #operate(fields: Fields): void {
    switch (fields.op_code) {
      case operations.createStudy:
        this.#createStudy(fields);
        return;
      case operations.deleteStudy:
        if (this.#studies.delete(fields.study_id as number) && fields.study_id === 0) this.#own.length = 0;
        return;
      case operations.setStudyUserAttr: {
        if (fields.study_id !== 0) return;
        const attrs = attrsOf(fields.user_attr);
        if (!attrs.has(spaceAttr)) return;
        const space = spaceOf(attrs.get(spaceAttr));
        if (space === undefined) {
          this.#problem('has a search space that is none');
          return;
        }
        this.#axes = new Map(space.map(axis => [axis.key, axis]));
        return;
      }
      case operations.setStudySystemAttr:
        return;
      case operations.createTrial:
        this.#createTrial(fields);
        return;
      case operations.setTrialParam:
        this.#change(fields, trial =>
          this.#setParam(trial, fields.param_name, fields.distribution, fields.param_value_internal),
        );
        return;
      case operations.setTrialStateValues:
        this.#change(fields, trial => this.#setState(trial, fields));
        return;
      case operations.setTrialIntermediateValue:
        this.#change(fields, trial => this.#setRung(trial, fields.step, fields.intermediate_value));
        return;
      case operations.setTrialUserAttr:
        this.#change(fields, trial => this.#setUserAttrs(trial, fields.user_attr));
        return;
      case operations.setTrialSystemAttr:
        this.#change(fields, trial => this.#setSystemAttrs(trial, fields.system_attr));
        return;
      default:
        // Of a newer Optuna, which may have more.
        this.#problem(`has the operation ${show(fields.op_code)}, which is not known here`);
        return;
    }
  }

  #createStudy({ study_name: name }: Fields): void {
    if (typeof name !== 'string') {
      this.#problem(`makes a study called ${show(name)}`, true);
      return;
    }
    // Optuna leaves the first one alone.
    if (this.#studyNames.has(name)) return;
    this.#studyNames.add(name);
    this.name ??= name;
    this.#studies.add(this.#nextStudy++);
  }

  #createTrial(fields: Fields): void {
    if (!this.#studies.has(fields.study_id as number)) return;
    if (this.#trials.length >= maxTrials) {
      this.#problem(`makes more than ${maxTrials} trials, which is the most`, true);
      return;
    }
    if (fields.study_id !== 0) {
      this.#trials.push(null);
      return;
    }
    const trial: OpenTrial = {
      number: this.#own.length,
      state: 'running',
      params: new Map(),
      purpose: 'search',
      seeds: [],
      value: null,
      rungs: new Map(),
      outcomes: new Map(),
      violations: undefined,
      foreignViolations: [],
      startedAt: timeOf(fields.datetime_start),
      endedAt: timeOf(fields.datetime_complete),
      told: undefined,
    };
    this.#trials.push(trial);
    this.#own.push(trial);
    const distributions = attrsOf(fields.distributions);
    for (const [name, internal] of attrsOf(fields.params))
      this.#setParam(trial, name, distributions.get(name), internal);
    for (const [step, value] of attrsOf(fields.intermediate_values))
      this.#setRung(trial, Number(step), value);
    this.#setUserAttrs(trial, fields.user_attrs);
    this.#setSystemAttrs(trial, fields.system_attrs);
    if (fields.state === undefined) return;
    const values = fields.values ?? (fields.value === undefined ? null : [fields.value]);
    this.#setState(trial, { state: fields.state, values, datetime_complete: fields.datetime_complete });
  }

  /** Of a trial that is there, ours and not over: Optuna leaves others alone, too. */
  #change({ trial_id: id }: Fields, change: (trial: OpenTrial) => void): void {
    const trial = typeof id === 'number' ? this.#trials[id] : undefined;
    if (trial === undefined) {
      this.#problem(`is about trial ${show(id)}, which is not there`);
      return;
    }
    if (trial === null || isOver(trial.state)) return;
    trial.told = undefined;
    change(trial);
  }

  #setParam(trial: OpenTrial, name: unknown, distribution: unknown, internal: unknown): void {
    if (typeof name !== 'string' || name.length > 200 || trial.params.size >= maxParams) {
      this.#problem(`sets the parameter ${show(name)} of trial ${trial.number}`);
      return;
    }
    try {
      trial.params.set(name, externalOf(distribution, internal, this.#axes?.get(name)?.domain));
    } catch (error) {
      this.#problem(`sets ${name} of trial ${trial.number}: ${(error as Error).message}`);
    }
  }

  #setState(trial: OpenTrial, fields: Fields): void {
    const state = stateOf(fields.state);
    if (state === undefined) {
      this.#problem(`sets trial ${trial.number} to the state ${show(fields.state)}`);
      return;
    }
    if (state === 'running' && trial.state === 'waiting') {
      trial.startedAt = timeOf(fields.datetime_start) ?? trial.startedAt;
    }
    trial.state = state;
    if (isOver(state)) trial.endedAt ??= timeOf(fields.datetime_complete);
    if (!Array.isArray(fields.values) || fields.values.length === 0 || fields.values[0] === null) return;
    const value = decodeNumber(fields.values[0]);
    if (value === undefined || Number.isNaN(value)) {
      this.#problem(`gives trial ${trial.number} the value ${show(fields.values[0])}`);
      return;
    }
    trial.value = value;
  }

  #setRung(trial: OpenTrial, step: unknown, value: unknown): void {
    const reached = decodeNumber(value);
    if (!Number.isSafeInteger(step) || reached === undefined || trial.rungs.size >= maxRungs) {
      this.#problem(`has the value ${show(value)} of trial ${trial.number} at step ${show(step)}`);
      return;
    }
    trial.rungs.set(step as number, reached);
  }

  #setUserAttrs(trial: OpenTrial, given: unknown): void {
    for (const [key, value] of attrsOf(given)) {
      if (!key.startsWith(ownPrefix)) continue;
      const fits = this.#setOwn(trial, key.slice(ownPrefix.length), value);
      if (!fits) this.#problem(`has ${show(value)} as ${key} of trial ${trial.number}`);
    }
  }

  /** False for what does not fit; names that a newer version may have added do. */
  #setOwn(trial: OpenTrial, name: string, value: unknown): boolean {
    if (name.startsWith('outcome:')) {
      const outcome = outcomeOf(value);
      if (outcome === undefined || String(outcome.seed) !== name.slice('outcome:'.length)) return false;
      if (trial.outcomes.size >= maxOutcomes) return false;
      trial.outcomes.set(outcome.seed, outcome);
      return true;
    }
    switch (name) {
      case 'purpose': {
        const purpose = purposes.find(one => one === value);
        if (purpose !== undefined) trial.purpose = purpose;
        return purpose !== undefined;
      }
      case 'seeds':
        if (!isListOf(value, isCount, maxOutcomes)) return false;
        trial.seeds = value;
        return true;
      case 'violations':
        if (!isListOf(value, isText, maxViolations)) return false;
        trial.violations = value;
        return true;
      case 'startedAt':
      case 'endedAt':
        if (!isCount(value)) return false;
        trial[name] = value;
        return true;
      default:
        return true;
    }
  }

  #setSystemAttrs(trial: OpenTrial, given: unknown): void {
    const constraints = attrsOf(given).get('constraints');
    if (!Array.isArray(constraints)) return;
    trial.foreignViolations = constraints.slice(0, maxViolations).flatMap((amount, i) => {
      const by = decodeNumber(amount);
      return by !== undefined && by <= 0 ? [] : [`constraint ${i} is ${show(amount)}, above 0`];
    });
  }

  #problem(text: string, damaged = false): void {
    const problem = { line: this.#line, text: `line ${this.#line} ${text}`, damaged };
    if (damaged) this.#damaged ??= problem;
    if (this.#problems.length < maxProblems) this.#problems.push(problem);
    else if (this.#problems.length === maxProblems)
      this.#problems.push({ line: this.#line, text: 'there are more problems than these', damaged: false });
  }
}

function trialOf(trial: OpenTrial): Trial {
  trial.told ??= {
    number: trial.number,
    state: trial.state,
    params: Object.fromEntries(trial.params),
    purpose: trial.purpose,
    seeds: trial.seeds,
    value: trial.value,
    rungs: [...trial.rungs].sort(([a], [b]) => a - b).map(([steps, value]) => ({ steps, value })),
    outcomes: [...trial.outcomes.values()].sort((a, b) => a.seed - b.seed),
    violations: trial.violations ?? trial.foreignViolations,
    startedAt: trial.startedAt,
    endedAt: isOver(trial.state) ? trial.endedAt : null,
  };
  return trial.told;
}

/** Keys with values; of anything else none. A map, in which every name is only a name. */
const attrsOf = (value: unknown): ReadonlyMap<string, unknown> =>
  new Map(typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= 10_000;

function isListOf<T>(value: unknown, isOne: (item: unknown) => item is T, most: number): value is T[] {
  return Array.isArray(value) && value.length <= most && value.every(isOne);
}
