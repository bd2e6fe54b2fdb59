/** How events and findings look on the x axis, and which are louder. */

import { type Finding, type Severity, severities } from '../../src/doctor/findings.ts';
import type { Tone } from '../../src/metrics/registry.ts';
import type { EventType } from '../../src/runs/schema.ts';
import type { PageEvent, XAxis } from '../../src/server/api.ts';
import type { Pin } from '../lib/pins.ts';
import { plain } from '../lib/prose.ts';
import { severityTone } from '../lib/tone.ts';

declare const __EVENT_KINDS__: Readonly<Record<EventType, { title: string; doc: string }>>;
/** Put in by the build, from the schema. */
const kinds = __EVENT_KINDS__;

export type Shape = 'dot' | 'ring' | 'up' | 'down' | 'diamond' | 'square' | 'cross' | 'bar';

interface Look {
  readonly shape: Shape;
  readonly tone: Tone;
  readonly weight: number;
}

const looks: Readonly<Record<EventType, Look>> = {
  checkpoint: { shape: 'dot', tone: 'muted', weight: 1 },
  reference: { shape: 'ring', tone: 'muted', weight: 2 },
  rescaled: { shape: 'square', tone: 'muted', weight: 6 },
  note: { shape: 'dot', tone: 'muted', weight: 2 },
  notice: { shape: 'dot', tone: 'warn', weight: 3 },
  ungraded: { shape: 'cross', tone: 'warn', weight: 4 },
  'early-stop': { shape: 'down', tone: 'muted', weight: 3 },
  'rate-change': { shape: 'up', tone: 'muted', weight: 3 },
  guard: { shape: 'diamond', tone: 'warn', weight: 4 },
  started: { shape: 'bar', tone: 'muted', weight: 4 },
  resumed: { shape: 'bar', tone: 'muted', weight: 5 },
  stopped: { shape: 'bar', tone: 'muted', weight: 5 },
  finished: { shape: 'bar', tone: 'good', weight: 5 },
  reached: { shape: 'diamond', tone: 'good', weight: 5 },
  act: { shape: 'square', tone: 'good', weight: 6 },
  skipped: { shape: 'cross', tone: 'bad', weight: 7 },
  restored: { shape: 'cross', tone: 'bad', weight: 7 },
  failed: { shape: 'bar', tone: 'bad', weight: 8 },
  autopilot: { shape: 'diamond', tone: 'warn', weight: 8 },
  finding: { shape: 'square', tone: 'warn', weight: 9 },
};

const unknownLook: Look = { shape: 'dot', tone: 'muted', weight: 1 };

/** Findings of the diagnosis are pinned under these kinds, one for each severity. */
export const findingKind = (severity: Severity): string => `finding:${severity}`;

const findingWeights: Readonly<Record<Severity, number>> = { info: 2, warning: 10, critical: 11 };
const findingLooks: ReadonlyMap<string, Look> = new Map(
  severities.map(severity => [
    findingKind(severity),
    { shape: 'square', tone: severityTone[severity], weight: findingWeights[severity] },
  ]),
);

export function lookOf(kind: string): Look {
  return findingLooks.get(kind) ?? (Object.hasOwn(looks, kind) ? looks[kind as EventType] : unknownLook);
}

export function titleOf(kind: string): string {
  if (findingLooks.has(kind)) return 'Finding';
  return Object.hasOwn(kinds, kind) ? kinds[kind as EventType].title : kind;
}

export function docOf(kind: string): string {
  return Object.hasOwn(kinds, kind) ? kinds[kind as EventType].doc : '';
}

/** Pins of events and findings on an axis, sorted; `place` maps a step to it, null where it cannot. */
export function pinsOf(
  events: readonly PageEvent[],
  findings: readonly Finding[],
  axis: XAxis,
  hidden: readonly string[],
  place: (step: number) => number | null,
): Pin[] {
  const pins: Pin[] = [];
  for (const event of events) {
    // A finding in the log is the same as one of the diagnosis, only older.
    if (event.type === 'finding' || hidden.includes(event.type)) continue;
    const own = axis === 'step' ? event.step : axis === 'iteration' ? event.iteration : event.time;
    const x = own ?? place(event.step);
    if (x === null) continue;
    pins.push({ x, kind: event.type, weight: lookOf(event.type).weight, text: event.message });
  }
  if (!hidden.includes('finding')) {
    for (const finding of findings) {
      const x = place(finding.from);
      if (x === null) continue;
      const kind = findingKind(finding.severity);
      const to = place(finding.to);
      pins.push({
        x,
        ...(to === null ? {} : { to }),
        kind,
        weight: lookOf(kind).weight,
        text: plain(finding.title),
      });
    }
  }
  return pins.sort((a, b) => a.x - b.x);
}
