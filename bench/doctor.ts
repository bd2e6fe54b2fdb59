/**
 * Is the doctor right, and is it fast: runs of known cause, trained by Keel and logged as Keel, Stable-Baselines3 and
 * CleanRL would, and real runs of Stable-Baselines3; then a large event file and many small runs.
 *
 * `npm run bench -- doctor [part of a name]` looks at some of the runs only, and says of each what it found.
 */
import { rootCauses } from '../src/doctor/index.ts';
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
  const filter = process.argv[3] ?? '';
  const matrix = await matrixCases(filter);
  const fixtures = await fixtureCases(filter);
  const cases = [...matrix, ...fixtures];
  // A crash that left nothing in the log is told apart: no reader could be sure of it.
  const readable = cases.filter(one => !one.traceless);

  if (filter !== '') for (const one of cases) report(line(one));
  for (const one of cases.filter(one => !isRight(one))) {
    report({ [one.traceless ? 'no_trace' : 'miss']: line(one) });
  }
  for (const cause of rootCauses) {
    const figures = precisionAndRecall(readable, cause);
    if (figures.runs > 0 || figures.named > 0) report({ cause, ...figures });
  }
  report({ confused: confusions(readable) });
  const healthy = readable.filter(one => one.fault === null);
  report({
    healthy: healthy.length,
    called_sick: healthy.filter(one => one.said.verdict === 'sick').length,
    called_watch: healthy.filter(one => one.said.verdict === 'watch').length,
    cannot_tell: healthy.filter(one => one.said.verdict === 'cannot-tell').length,
  });
  for (const bin of reliability(readable)) report({ confidence: 'all', ...bin });
  const heldOut = readable.filter(one => one.heldOut);
  for (const bin of reliability(heldOut)) report({ confidence: 'held-out seeds', ...bin });
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
