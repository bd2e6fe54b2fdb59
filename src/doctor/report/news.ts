/** What changed between two looks at a run that still grows. */

import { whole } from '../../base/numbers.ts';
import { type Diagnosis, type Finding, type Severity, severities, verdictWords } from '../findings.ts';
import { clean } from './clean.ts';
import { storyOf, stretchOf } from './presentable.ts';
import { isUnreadable, type Outcome } from './run-report.ts';

/** One thing that is new. */
export interface News {
  readonly kind: 'verdict' | 'finding' | 'louder' | 'gone' | 'unreadable' | 'readable';
  /** For its colour. */
  readonly level: 'good' | Severity;
  /** One line without its end. */
  readonly text: string;
}

/**
 * Nothing changed: no news. `before` is undefined at the first look. What is only worth knowing may come and go with every
 * row of a return that swings: `said` keeps which of it was told, and it is told once.
 */
export function newsOf(before: Outcome | undefined, after: Outcome, said: Set<string> = new Set()): News[] {
  if (isUnreadable(after)) {
    // Why may change at each look (two rows, three rows): it was said once.
    if (before !== undefined && isUnreadable(before)) return [];
    return [{ kind: 'unreadable', level: 'warning', text: `not to be read now: ${clean(after.error)}` }];
  }
  if (before === undefined || isUnreadable(before))
    return [verdictNews(after, undefined), ...findingNews([], after, said)];
  const changed =
    before.diagnosis.verdict !== after.diagnosis.verdict ||
    before.diagnosis.rootCause !== after.diagnosis.rootCause;
  return [
    ...(changed ? [verdictNews(after, before.diagnosis)] : []),
    ...findingNews(before.diagnosis.findings, after, said),
  ];
}

const levels = { healthy: 'good', watch: 'warning', sick: 'critical', 'cannot-tell': 'info' } as const;

function verdictNews(after: Exclude<Outcome, { error: string }>, before: Diagnosis | undefined): News {
  const { verdict, steps } = after.diagnosis;
  const was =
    before === undefined || before.verdict === verdict ? '' : `, was ${verdictWords(before.verdict)}`;
  const text = `${verdictWords(verdict)}${was} at ${whole(steps)} ${clean(after.unit)}: ${clean(storyOf(after).headline)}`;
  return { kind: 'verdict', level: levels[verdict], text };
}

/** Two findings of one rule count as one: the loudest. */
function byCode(findings: readonly Finding[]): Map<string, Finding> {
  const found = new Map<string, Finding>();
  for (const finding of findings) {
    const other = found.get(finding.code);
    if (other === undefined || loudness(finding) > loudness(other)) found.set(finding.code, finding);
  }
  return found;
}

const loudness = ({ severity }: Finding): number => severities.indexOf(severity);

function findingNews(
  before: readonly Finding[],
  { diagnosis, unit }: Exclude<Outcome, { error: string }>,
  said: Set<string>,
): News[] {
  const isNew = (sign: '+' | '-', { code, severity }: Finding): boolean => {
    if (severity !== 'info') return true;
    if (said.has(sign + code)) return false;
    said.add(sign + code);
    return true;
  };
  const [old, now] = [byCode(before), byCode(diagnosis.findings)];
  const news: News[] = [];
  for (const [code, finding] of now) {
    const was = old.get(code);
    const what = `${clean(code)}: ${clean(finding.title)} (${stretchOf(finding, clean(unit))})`;
    if (was === undefined) {
      if (isNew('+', finding)) news.push({ kind: 'finding', level: finding.severity, text: `+ ${what}` });
    } else if (was.severity !== finding.severity) {
      news.push({
        kind: 'louder',
        level: finding.severity,
        text: `${what}, now ${finding.severity}, was ${was.severity}`,
      });
    }
  }
  for (const [code, was] of old) {
    if (!now.has(code) && isNew('-', was))
      news.push({ kind: 'gone', level: 'good', text: `- ${clean(code)}: no longer seen` });
  }
  return news;
}
