/** What happens in training, as it goes to the log and to people. */
import type { EventFields } from '../runs/schema.ts';

/** Something that happened in training; its fields are those of the run's events, which also tell of processes. */
export type TrainEvent = Exclude<
  EventFields,
  { type: 'finding' | 'started' | 'resumed' | 'finished' | 'stopped' | 'failed' }
>;

const short = (value: number): string => Number(value.toPrecision(3)).toString();

/** What the guard did: to the mean, and to single states where those had to be held too. */
function guardSentence({
  klBefore,
  klAfter,
  bound,
  p99,
  max,
  scale,
}: Extract<TrainEvent, { type: 'guard' }>): string {
  const held = scale === 1 ? 'done again, now' : 'taken back to';
  const states = Object.entries({ '99th percentile': p99, largest: max }).flatMap(([which, kl]) =>
    kl === undefined ? [] : [`${which} ${short(kl.before)} to ${short(kl.after)}, bound ${short(kl.bound)}`],
  );
  return [
    `KL ${short(klBefore)} ${held} ${short(klAfter)}${bound === undefined ? '' : `, bound ${short(bound)}`}`,
    ...states,
  ].join('; ');
}

/** What the autopilot did, and why. */
function autopilotSentence({
  action,
  cause,
  confidence,
  why,
  changes,
  checkpoint,
  child,
}: Extract<TrainEvent, { type: 'autopilot' }>): string {
  const named = changes.map(({ key, from, value }) => `${key} ${from} to ${value}`).join(', ');
  const done = {
    set: named,
    fork: `goes on from checkpoint ${checkpoint} as ${child}, ${named}`,
    'begin-again': `begins again as ${child}, ${named}`,
  }[action];
  return `${cause.replaceAll('-', ' ')} (${Math.round(100 * confidence)}%), ${why}: ${done}`;
}

/** What happened, in a sentence. */
export function sentenceOf(event: TrainEvent): string {
  switch (event.type) {
    case 'early-stop':
      return `stopped in epoch ${event.epoch + 1}: KL ${short(event.kl)} above ${short(event.limit)}`;
    case 'guard':
      return guardSentence(event);
    case 'skipped':
      return `${event.count} minibatches were not finite and changed nothing`;
    case 'note':
    case 'notice':
      return event.text;
    case 'ungraded':
      return `${event.count} of ${event.of} completions could not be graded: ${event.reason}`;
    case 'restored':
      return `restored the last healthy parameters, learning rate ${short(event.lrFrom)} to ${short(event.lrTo)}`;
    case 'rate-change':
      return `${event.what} ${short(event.from)} to ${short(event.to)}: ${event.why}`;
    case 'reference':
      return 'the reference policy was refreshed';
    case 'rescaled':
      return `critic rescaled by ${short(event.factor)}: rewardScale ${event.from} to ${event.to}`;
    case 'checkpoint':
      return `saved checkpoint ${event.checkpoint}${event.best ? ', the best so far' : ''}`;
    case 'reached':
      return `mean return ${short(event.return)} ${event.of === 'evaluation' ? 'in an evaluation' : 'in training'} over ${event.episodes} episodes reached stopAt ${event.stopAt}`;
    case 'autopilot':
      return autopilotSentence(event);
    case 'act':
      return `${event.what}, set from the ${event.by}`;
    default:
      return event satisfies never;
  }
}
