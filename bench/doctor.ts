/**
 * Is the doctor right, and is it fast: runs of known cause, trained by Keel and logged as Keel, Stable-Baselines3 and
 * CleanRL would, and real runs of Stable-Baselines3; then a large event file and many small runs.
 *
 * `npm run bench -- doctor [part of a name]` looks at some of the runs only, and says of each what it found.
 * `npm run bench -- doctor lm [part of a name]` does the same with language models that GRPO trained, logged as Keel, TRL and
 * verl would.
 * `npm run bench -- doctor calibrate` fits what strengths are worth on the seeds that rules were tuned on, and tries it on the others.
 */
import { fileURLToPath } from 'node:url';
import { rootCauses, type Verdict } from '../src/doctor/index.ts';
import { calibrate } from './doctor/calibrate.ts';
import { lmCases } from './doctor/lm/matrix.ts';
import { lmSpellings } from './doctor/lm/plan.ts';
import { lmTasks } from './doctor/lm/tasks.ts';
import {
  answerOf,
  type Case,
  fixtureCases,
  isRight,
  matrixCases,
  precisionAndRecall,
  reliability,
  scoreOf,
} from './doctor/matrix.ts';
import { speed } from './doctor/speed.ts';
import { spellings } from './doctor/spellings.ts';
import { machine, report } from './measure.ts';

export async function run(): Promise<void> {
  report({ bench: 'doctor', ...machine() });
  if (process.argv[3] === 'calibrate')
    return calibrate(fileURLToPath(new URL('../docs/pictures/doctor-reliability.svg', import.meta.url)));
  if (process.argv[3] === 'lm') return languageModels(process.argv[4] ?? '');
  const filter = process.argv[3] ?? '';
  const matrix = await matrixCases(filter);
  const fixtures = await fixtureCases(filter);
  const cases = [...matrix, ...fixtures];
  // A crash that left nothing in the log is told apart: no reader could be sure of it.
  const readable = cases.filter(one => !one.traceless);

  reportCases(cases, filter);
  reportCauses(readable);
  reportReliability('all', readable);
  reportReliability(
    'held-out seeds',
    readable.filter(one => one.heldOut),
  );
  for (const spelling of spellings) {
    report({ top1: spelling, ...scoreOf(readable.filter(one => one.source === spelling)) });
  }
  report({ top1: 'real Stable-Baselines3 runs', ...scoreOf(fixtures) });
  const own = readable.filter(one => matrix.includes(one));
  report({ top1: 'seeds that rules were tuned on', ...scoreOf(own.filter(one => !one.heldOut)) });
  report({ top1: 'held-out seeds', ...scoreOf(own.filter(one => one.heldOut)) });
  report({
    top1: 'healthy runs and faults that did harm',
    ...scoreOf(readable.filter(one => !one.harmless)),
  });
  report({
    top1: 'all',
    trained_runs: new Set(matrix.map(one => one.name)).size,
    ...scoreOf(readable),
  });
  if (filter === '') await speed();
}

/** The same of the language models. */
async function languageModels(filter: string): Promise<void> {
  const cases = await lmCases(filter);
  reportCases(cases, filter);
  // A fault that changes nothing that is logged is told apart: no reader could see it.
  const readable = cases.filter(one => !one.traceless);
  const tuned = readable.filter(one => !one.heldOut);
  const heldOut = readable.filter(one => one.heldOut);
  for (const [of, some] of Object.entries({ tuned, 'held-out': heldOut })) {
    report({ of });
    reportCauses(some);
    reportReliability(of, some);
    for (const spelling of lmSpellings)
      report({ top1: `${of} ${spelling}`, ...scoreOf(some.filter(one => one.source === spelling)) });
    for (const task of lmTasks)
      report({ top1: `${of} ${task}`, ...scoreOf(some.filter(one => one.task === task)) });
    report({ top1: `${of}, healthy and with harm`, ...scoreOf(some.filter(one => !one.harmless)) });
    report({ top1: of, trained_runs: new Set(some.map(one => one.name)).size, ...scoreOf(some) });
  }
}

/** What is said of each where some are asked for, and of those that are wrong. */
function reportCases(cases: readonly Case[], filter: string): void {
  if (filter !== '') for (const one of cases) report(line(one));
  for (const one of cases.filter(one => !isRight(one))) {
    report({ [one.traceless ? 'no_trace' : 'miss']: line(one) });
  }
}

/** How often an answer is right that the doctor gives with so much confidence. */
function reportReliability(confidence: string, cases: readonly Case[]): void {
  for (const bin of reliability(cases)) report({ confidence, ...bin });
}

/** How often each cause is found and rightly so, what is taken for what, and what is said of healthy runs. */
function reportCauses(cases: readonly Case[]): void {
  for (const cause of rootCauses) {
    const figures = precisionAndRecall(cases, cause);
    if (figures.runs > 0 || figures.named > 0) report({ cause, ...figures });
  }
  report({ confused: confusions(cases) });
  const healthy = cases.filter(one => one.fault === null);
  const said = (verdict: Verdict): number => healthy.filter(one => one.said.verdict === verdict).length;
  report({
    healthy: healthy.length,
    called_sick: said('sick'),
    called_watch: said('watch'),
    called_cannot_tell: said('cannot-tell'),
  });
}

function line(one: Case): Record<string, unknown> {
  const { name, source, fault, harmless, said } = one;
  return {
    name,
    source,
    fault: fault ?? 'healthy',
    ...(harmless ? { harmless } : {}),
    said: answerOf(one),
    verdict: said.verdict,
    confidence: said.confidence,
    findings: said.findings
      .filter(f => f.severity !== 'info')
      .map(f => `${f.code} > ${f.cause} ${f.confidence}`),
  };
}

/** Pairs of fault and wrong answer, the most frequent first. */
function confusions(cases: readonly Case[]): Record<string, number> {
  const pairs = new Map<string, number>();
  for (const one of cases.filter(one => !isRight(one))) {
    const pair = `${one.fault ?? 'healthy'} > ${answerOf(one)}`;
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return Object.fromEntries([...pairs].sort((a, b) => b[1] - a[1]));
}
