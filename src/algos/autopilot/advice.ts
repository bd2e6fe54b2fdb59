/**
 * Who judges a run that is under way: the doctor, which the trainer does not know. Whoever begins a run hands it in
 * (`src/autopilot`).
 */
import type { Row } from '../../metrics/row.ts';
import type { EnvironmentSpec } from '../../runs/schema.ts';
import type { Values } from '../../settings/spec.ts';

/** What is judged: the rows of a run since its last change. */
export interface Look {
  readonly dir: string;
  readonly algorithm: string;
  readonly environment: EnvironmentSpec;
  readonly seed: number;
  /** Settings as they are now. */
  readonly config: Values;
  readonly rows: readonly Row[];
  /** The first of the rows since a person last changed a setting in the run; 0 where nobody has. */
  readonly changed: number;
  /** What the run failed with, if it did. */
  readonly error: string | null;
}

/** A setting, and the value that it should have. */
export interface Change {
  readonly key: string;
  readonly value: number | string | boolean;
}

/** What is wrong and what to change, where both are known. */
export interface Advice {
  /** The code of the rule that saw it. */
  readonly rule: string;
  readonly cause: string;
  /** How sure it is of the cause, from 0 to 1. */
  readonly confidence: number;
  /** What was seen, in a sentence. */
  readonly why: string;
  /** The step from which on something was wrong. */
  readonly firstSeen: number;
  readonly changes: readonly Change[];
}

/** Undefined where the run is well, where nobody can tell, and where no setting is to be changed. The same look, the same advice. */
export type Advisor = (look: Look) => Promise<Advice | undefined>;
