/**
 * The shapes of a run's files: manifest, metric rows, events. Runs in a browser: nothing here may import a Node module.
 *
 * Reading is strict about what this version knows and keeps what it does not: keys and kinds of event that a newer
 * version added pass through. A change that an older reader would misread raises {@link schemaVersion}.
 */
import * as z from 'zod/mini';
import { fail, RunError, show } from '../base/errors.ts';
import { decodeEvent, decodeNumber, type JsonNumber, type LogEvent } from '../metrics/row.ts';
import { scoreKinds } from './score.ts';

export { RunError } from '../base/errors.ts';
export type { Row } from '../metrics/row.ts';

/** Of the manifest, the rows and the events together. */
export const schemaVersion = 1;

const count = z.int().check(z.nonnegative());
const isoTime = z.string().check(z.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/));
const json = z.record(z.string(), z.unknown());
/** A number that may have been written as text because it is not finite. */
const number = z.pipe(
  z.custom<JsonNumber>(value => decodeNumber(value) !== undefined),
  z.transform(value => decodeNumber(value)!),
);

const text = z.string();

/** What a step of the autopilot does. */
const autopilotActions = ['set', 'fork', 'begin-again'] as const;
const settingValue = z.union([number, z.boolean(), text, z.null()]);
/** A setting that the autopilot changed. */
const settingChange = z.object({ key: text, from: settingValue, value: settingValue });

// ---------------------------------------------------------------------------------------------------- manifest

/** What the trainer says about itself. One that says `running` and whose process is gone was killed. */
export const writtenStatuses = ['running', 'finished', 'stopped', 'failed'] as const;
export type WrittenStatus = (typeof writtenStatuses)[number];
/** `stopped`: ended by its user, can go on. `failed`: ended by an error. `killed`: it never got to say. */
export type RunStatus = WrittenStatus | 'killed';

const environmentSchema = z.looseObject({
  id: z.string().check(z.minLength(1)),
  version: z.string(),
  /** What the environment was made with. */
  options: json,
  /** Scale, normalisation and clipping of rewards: a value function is worth nothing under another scale. */
  reward: json,
});

const manifestSchema = z.looseObject({
  /** Says that the directory is ours: nothing without it is ever deleted. */
  kind: z.literal('keel-run'),
  schema: count,
  id: z.string().check(z.minLength(1), z.maxLength(200)),
  status: z.enum(writtenStatuses),
  algorithm: z.string(),
  environment: environmentSchema,
  /** Everything that was set or left at its default. */
  config: json,
  seed: count,
  /** `keel`, `node`, `onnxruntime`, `platform` … */
  versions: z.record(z.string(), z.string()),
  /** The run and step that this one started from. */
  parent: z.nullable(z.looseObject({ id: z.string(), step: count })),
  /** What it began from, if not from its seed: a kill before its first checkpoint begins there again. */
  beginning: z.optional(
    z.looseObject({
      /** Of a run's directory, a model's, or a file of weights; absolute. */
      path: z.string(),
      /** Of a run, the checkpoint. */
      step: z.nullable(count),
      forked: z.boolean(),
      /** The settings that were written for the fork. */
      written: json,
    }),
  ),
  /** The settings that a trainer which is not ours lets be changed while it trains. */
  controls: z.optional(
    z.array(z.string().check(z.regex(/^[A-Za-z][A-Za-z0-9]{0,60}$/))).check(z.maxLength(64)),
  ),
  /** What another trainer's model was, of a run that was made of one. */
  imported: z.optional(
    z.looseObject({
      /** The trainer and its version, in words. */
      from: z.string(),
      /** Absolute. */
      file: z.string(),
      sha256: z.string(),
      /** Of what its observations were normalised by, if that was a file. */
      normaliser: z.nullable(z.string()),
      /** Environment steps that it had done. */
      steps: count,
      /** What could not be taken over as it was. */
      notes: z.array(z.string()),
    }),
  ),
  /** Of a run that goes on for others whose autopilot had it begin: the steps that were taken in those, oldest first. */
  autopilot: z.optional(
    z.array(
      z.looseObject({
        run: z.string(),
        action: z.enum(autopilotActions),
        rule: z.string(),
        cause: z.string(),
        changes: z.array(settingChange),
      }),
    ),
  ),
  /** Of when it was last resumed. */
  wentOn: z.optional(
    z.looseObject({
      /** The checkpoint that it went on from; null if it began again. */
      checkpoint: z.nullable(count),
      /** The settings that were written for that. */
      written: json,
      /** The changes by hand that those took the place of. */
      replaced: z.array(z.unknown()),
    }),
  ),
  startedAt: isoTime,
  /** When a process last wrote the manifest. */
  updatedAt: isoTime,
  /** When it last ended; null while running. */
  endedAt: z.nullable(isoTime),
  /** How far it was when it last began or ended; while it runs the log knows more. */
  iteration: count,
  step: count,
  /** Where the process runs or ran. */
  pid: count,
  host: z.string(),
  /** How often it was resumed. */
  resumes: count,
  /** Why it stopped or failed, or finished before it did all its steps, in a sentence. */
  reason: z.nullable(z.string()),
});

/** The environment of a run, as far as resuming must agree with it. */
export type EnvironmentSpec = Readonly<z.infer<typeof environmentSchema>>;
/** `manifest.json`. */
export type Manifest = Readonly<z.infer<typeof manifestSchema>>;

/** A checked manifest; `source` names it in errors. */
export function parseManifest(value: unknown, source = 'manifest'): Manifest {
  requireVersion(value, source);
  return check(manifestSchema, value, source);
}

// ---------------------------------------------------------------------------------------------------- events

const optionalNumber = z.optional(number);

const heldStates = z.object({ before: number, after: number, bound: number });

/**
 * What happens in a run.
 *
 * `training` events follow from configuration and seed, like rows: a resumed run repeats those after its checkpoint, so
 * they are cut off first. `process` events tell what happened to the process and what people did: they are never cut.
 */
const eventKinds = {
  'early-stop': {
    scope: 'training',
    title: 'Early stop',
    doc: 'The update ended before its last epoch because its KL passed the target.',
    fields: z.object({ kl: number, limit: number, epoch: count, minibatch: count }),
  },
  guard: {
    scope: 'training',
    title: 'Guard',
    doc: 'The update left the KL bound and was done again at a lower rate, or stepped back.',
    fields: z.object({
      klBefore: number,
      klAfter: number,
      /** Of the mean, where there is one. */
      bound: optionalNumber,
      /** Of single states, where they had to be held too. */
      p99: z.optional(heldStates),
      max: z.optional(heldStates),
      retries: z.optional(count),
      backtracks: count,
      scale: number,
    }),
  },
  skipped: {
    scope: 'training',
    title: 'Skipped minibatches',
    doc: 'The loss or gradient was not finite; those minibatches changed nothing.',
    fields: z.object({ count, inARow: z.optional(count) }),
  },
  ungraded: {
    scope: 'training',
    title: 'Ungraded completions',
    doc: 'The task could not grade some completions, which took no part in the update.',
    fields: z.object({ count, of: count, reason: text }),
  },
  notice: {
    scope: 'process',
    title: 'Notice',
    doc: 'The task has something to say: an engine that was started again, a file that was skipped.',
    fields: z.object({ text }),
  },
  restored: {
    scope: 'training',
    title: 'Restored',
    doc: 'After several skipped minibatches in a row the last healthy parameters came back, with a lower learning rate.',
    fields: z.object({ attempt: count, attempts: count, lrFrom: number, lrTo: number }),
  },
  'rate-change': {
    scope: 'training',
    title: 'Rate change',
    doc: 'A controller changed a learning rate or a coefficient.',
    fields: z.object({ what: text, from: number, to: number, why: text }),
  },
  reference: {
    scope: 'training',
    title: 'Reference refreshed',
    doc: 'The reference policy was replaced by the current one.',
    fields: z.object({ kl: optionalNumber }),
  },
  rescaled: {
    scope: 'training',
    title: 'Critic rescaled',
    doc: 'The run went on with rewards of another scale, and everything that is measured in them was multiplied.',
    fields: z.object({ from: number, to: number, factor: number }),
  },
  checkpoint: {
    scope: 'training',
    title: 'Checkpoint',
    doc: 'Everything needed to go on was saved.',
    fields: z.object({
      checkpoint: count,
      best: z.boolean(),
      keep: z.boolean(),
      score: optionalNumber,
      scoredBy: z.optional(z.enum(scoreKinds)),
    }),
  },
  reached: {
    scope: 'training',
    title: 'Return reached',
    doc: 'The return that the run was to stop at was reached, and it ends.',
    fields: z.object({ return: number, stopAt: number, episodes: count, of: z.enum(scoreKinds) }),
  },
  finding: {
    scope: 'training',
    title: 'Finding',
    doc: 'The doctor noticed something.',
    fields: z.object({
      code: text,
      severity: text,
      cause: z.optional(z.nullable(text)),
      from: z.optional(count),
      to: z.optional(count),
      evidence: z.optional(z.array(text)),
      fix: z.optional(z.array(text)),
    }),
  },
  act: {
    scope: 'training',
    title: 'Changed by hand',
    doc: 'Someone changed a setting of the live run. A resume makes the same change at the same iteration.',
    fields: z.object({
      what: text,
      by: text,
      /** The setting, and its value from this iteration on. */
      key: z.optional(text),
      value: z.optional(z.nullable(number)),
    }),
  },
  autopilot: {
    scope: 'training',
    title: 'Autopilot',
    doc: 'The doctor was sure of something and did it: a setting was changed, or the run goes on as another one from a healthy checkpoint.',
    fields: z.object({
      /** `set` in the run itself, `fork` from a checkpoint, `begin-again` with settings that no checkpoint can take. */
      action: z.enum(autopilotActions),
      rule: text,
      cause: text,
      confidence: number,
      /** What the doctor saw. */
      why: text,
      /** The step at which it was first seen. */
      firstSeen: number,
      changes: z.array(settingChange),
      /** Of a fork: where from. */
      checkpoint: z.optional(count),
      /** The run that goes on. */
      child: z.optional(text),
    }),
  },
  started: {
    scope: 'process',
    title: 'Started',
    doc: 'The run began.',
    fields: z.object({ pid: count }),
  },
  resumed: {
    scope: 'process',
    title: 'Resumed',
    doc: 'The run went on from a checkpoint; rows and events after it were dropped and are made again.',
    fields: z.object({
      pid: count,
      /** Null if it began again, because there was no checkpoint yet. */
      checkpoint: z.nullable(count),
      droppedRows: count,
      droppedEvents: count,
      /** Settings that were written for it, and what they were before. */
      written: z.optional(json),
      before: z.optional(json),
    }),
  },
  finished: {
    scope: 'process',
    title: 'Finished',
    doc: 'The run did all its steps, or reached the return that it was to stop at.',
    fields: z.object({}),
  },
  stopped: {
    scope: 'process',
    title: 'Stopped',
    doc: 'The run was ended by its user and can go on.',
    fields: z.object({ reason: text }),
  },
  failed: {
    scope: 'process',
    title: 'Failed',
    doc: 'The run was ended by an error.',
    fields: z.object({ reason: text }),
  },
  note: {
    scope: 'process',
    title: 'Note',
    doc: 'Something that a person wrote down.',
    fields: z.object({ text }),
  },
} as const satisfies Record<
  string,
  { scope: EventScope; title: string; doc: string; fields: z.ZodMiniObject }
>;

/** Whether a resumed run repeats an event (`training`) or keeps it (`process`). */
export type EventScope = 'training' | 'process';
/** Kinds of event that this version knows. */
export type EventType = keyof typeof eventKinds;

/** What every event has. A type and not an interface: only those pass for a `LogEvent`. */
type EventBase = {
  /** The iteration it belongs to: that of the row which is written after it, or was written last. */
  readonly iteration: number;
  /** Environment steps, as in that row. */
  readonly step: number;
  /** A sentence for people. */
  readonly message: string;
};

type InferredFields<T extends EventType> = z.infer<(typeof eventKinds)[T]['fields']>;
/** A kind without fields would be a record that may have none, its type included. */
type FieldsOf<T extends EventType> = string extends keyof InferredFields<T>
  ? unknown
  : Readonly<InferredFields<T>>;

/** What an event of each kind says, before it is known when it happened. */
export type EventFields = { [T in EventType]: { readonly type: T } & FieldsOf<T> }[EventType];

/** An event of a known kind, as a program makes it. */
export type RunEvent = EventBase & EventFields;

/** An event as it was read, of whatever kind; it has `time/unix_s` if it was written by a run. */
export type StoredEvent = EventBase & LogEvent;

/** The kinds of event, for legends and documentation. */
export const eventTypes = Object.keys(eventKinds) as EventType[];

/** What a kind of event is called and means; kinds of a newer version have only their name. */
export function describeEventType(type: string): { title: string; doc: string; scope: EventScope } {
  if (!Object.hasOwn(eventKinds, type)) return { title: type, doc: '', scope: 'training' };
  const { title, doc, scope } = eventKinds[type as EventType];
  return { title, doc, scope };
}

const baseSchema = z.looseObject({
  type: z.string().check(z.minLength(1)),
  iteration: count,
  step: count,
  message: z.string(),
  'time/unix_s': z.optional(number),
});

/** A checked event. Fields of known kinds have the right types; unknown kinds need only what every event has. */
export function parseEvent(value: unknown, source = 'event'): StoredEvent {
  const base = check(baseSchema, value, source);
  if (!Object.hasOwn(eventKinds, base.type)) return base;
  const fields = check(eventKinds[base.type as EventType].fields, value, `${source} "${base.type}"`);
  return { ...base, ...fields } as StoredEvent;
}

/** An event from its line in `events.jsonl`. */
export function parseEventLine(line: string): StoredEvent {
  return parseEvent(decodeEvent(line));
}

/** Narrows a stored event to one kind. */
export function isEvent<T extends EventType>(
  event: StoredEvent,
  type: T,
): event is StoredEvent & Extract<RunEvent, { type: T }> {
  return event.type === type;
}

// ---------------------------------------------------------------------------------------------------- checkpoint

const checkpointFileSchema = z.looseObject({
  bytes: count,
  sha256: z.string().check(z.regex(/^[0-9a-f]{64}$/)),
});

const checkpointIndexSchema = z.looseObject({
  kind: z.literal('keel-checkpoint'),
  schema: count,
  step: count,
  iteration: count,
  savedAt: isoTime,
  /** What `best` compares, higher is better; null if it was not scored. */
  score: z.nullable(z.number()),
  /** What that is of; of training where it is not said. */
  scoredBy: z.optional(z.enum(scoreKinds)),
  /** Whether pruning spares it. */
  keep: z.boolean(),
  environment: z.nullable(environmentSchema),
  files: z.record(z.string(), checkpointFileSchema),
});

/** `checkpoint.json`: what belongs to a checkpoint, and how to tell that it is whole. */
export type CheckpointIndex = Readonly<z.infer<typeof checkpointIndexSchema>>;

/** A checked index; `source` names it in errors. */
export function parseCheckpointIndex(value: unknown, source = 'checkpoint'): CheckpointIndex {
  requireVersion(value, source);
  return check(checkpointIndexSchema, value, source);
}

// ---------------------------------------------------------------------------------------------------- checking

function requireVersion(value: unknown, source: string): void {
  const version = (value as { schema?: unknown } | null | undefined)?.schema;
  if (typeof version === 'number' && version > schemaVersion) {
    fail(
      `${source} was written by a newer Keel (schema ${version}, this one reads ${schemaVersion}): update Keel`,
      'newer-schema',
    );
  }
}

function check<T extends z.ZodMiniType>(schema: T, value: unknown, source: string): z.infer<T> {
  let result: z.core.util.SafeParseResult<z.infer<T>>;
  try {
    result = z.safeParse(schema, value);
  } catch (cause) {
    // Such as a nesting that is deeper than the stack.
    throw new RunError(`${source} cannot be read: ${show(String(cause))}`, { code: 'invalid', cause });
  }
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue.path.map(String).join('.');
  const found = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key],
    value,
  );
  const what = path === '' ? 'it' : path.slice(0, 80);
  return fail(
    `${source}: ${what} is ${found === undefined ? 'missing' : show(found)}, expected ${expectation(issue)}`,
    'invalid',
  );
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'int' ? 'a whole number' : `${issue.expected}`;
    case 'invalid_value':
      return issue.values.map(value => JSON.stringify(value)).join(' or ');
    case 'too_small':
      return `at least ${issue.minimum}`;
    case 'too_big':
      return `at most ${issue.maximum}`;
    case 'invalid_format':
      return issue.pattern === undefined ? issue.format : `text like ${issue.pattern}`;
    case 'custom':
      return 'a number';
    default:
      return 'something else';
  }
}
