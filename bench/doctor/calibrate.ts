/** How sure the doctor is against how often it is right: fitted on the seeds that rules were tuned on, tried on the others. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFileAtomic } from '../../src/base/files.ts';
import { type CanonicalRun, objectiveOf } from '../../src/doctor/canonical.ts';
import { judge } from '../../src/doctor/diagnose.ts';
import { findRuns, type RootCause, readRun, toCanonical } from '../../src/doctor/index.ts';
import {
  type Claim,
  calibrated,
  claimOf,
  claims,
  curves,
  type Knot,
} from '../../src/doctor/judge/calibration.ts';
import { runUntil } from '../../src/doctor/judge/first-seen.ts';
import { type Panel, panelsSvg } from '../line-panels.ts';
import { report } from '../measure.ts';
import { readCached } from './cache.ts';
import { readLmRuns } from './lm/cache.ts';
import { lmJobs } from './lm/plan.ts';
import { lmSpellingsOf, spellLm } from './lm/spellings.ts';
import { isRight } from './matrix.ts';
import { spell, spellingsOf } from './spellings.ts';

/** One answer, how strongly it was held, and whether it was right. */
interface Answer {
  readonly way: string;
  readonly claim: Claim;
  readonly strength: number;
  readonly right: boolean;
  readonly heldOut: boolean;
}

const FEW = ['kl/step', 'kl/step_k1', 'kl/step_k3', 'kl/ref', 'policy/entropy'];

/** The same log with less in it. A run whose fault comes later has none in its first third: that is left out. */
const ways: Readonly<Record<string, (run: CanonicalRun, isLate: boolean) => CanonicalRun | undefined>> = {
  whole: run => run,
  'without settings': run => ({ ...run, config: {} }),
  'its first third': (run, isLate) => (isLate ? undefined : runUntil(run, lastStep(run) / 3)),
  'few columns': run => ({
    ...run,
    series: new Map([...run.series].filter(([id]) => FEW.includes(id) || id === objectiveOf(run)?.id)),
  }),
};

const lastStep = ({ series }: CanonicalRun): number =>
  [...series.values()].reduce((last, { series: { x } }) => Math.max(last, x[x.length - 1] ?? 0), 0);

async function answers(): Promise<Answer[]> {
  const root = mkdtempSync(join(tmpdir(), 'keel-calibrate-'));
  const out: Answer[] = [];
  const ask = async (
    path: string,
    label: { fault: RootCause | null; harmless: boolean; heldOut: boolean },
    isLate: boolean,
  ): Promise<void> => {
    const { candidates } = await findRuns(path);
    const run = toCanonical(await readRun(candidates[0]));
    for (const [way, less] of Object.entries(ways)) {
      const made = less(run, isLate);
      if (made === undefined) continue;
      const { diagnosis: said, strength } = judge(made);
      const claim = claimOf(said.verdict, said.rootCause);
      const right =
        claim === 'no cause'
          ? label.fault !== null
          : claim === 'cannot tell'
            ? label.fault === null
            : isRight({ ...label, name: '', source: '', traceless: false, said });
      out.push({ way, claim, strength, right, heldOut: label.heldOut });
    }
  };
  try {
    for (const run of readCached())
      for (const spelling of spellingsOf(run)) {
        const { path, traceless } = spell(run, spelling, root);
        const { tampering, rescale } = run.label;
        if (!traceless) await ask(path, run.label, tampering !== null || (rescale ?? null) !== null);
      }
    const traceless = new Set(lmJobs().flatMap(job => (job.traceless ? [job.name] : [])));
    for (const run of readLmRuns())
      if (!traceless.has(run.label.name))
        for (const spelling of lmSpellingsOf(run)) await ask(spellLm(run, spelling, root), run.label, false);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return out;
}

/** Strengths this far apart are of one bin. */
const BIN = 0.1;

/** Bins of strengths with how many of theirs are right, made never to fall by pooling neighbours (Ayer 1955). */
export function fitted(of: readonly Pick<Answer, 'strength' | 'right'>[]): Knot[] {
  const bins = new Map<number, { n: number; right: number; strength: number }>();
  for (const { strength, right } of of) {
    const bin = Math.round(strength / BIN);
    const { n, right: so, strength: sum } = bins.get(bin) ?? { n: 0, right: 0, strength: 0 };
    bins.set(bin, { n: n + 1, right: so + Number(right), strength: sum + strength });
  }
  const pooled: { n: number; right: number; strength: number }[] = [];
  // A little doubt in each (Laplace 1814): none of twenty is not never.
  const rate = ({ n, right }: { n: number; right: number }): number => (right + 1) / (n + 2);
  for (const [, bin] of [...bins].sort(([a], [b]) => a - b)) {
    let last = bin;
    while (pooled.length > 0 && rate(pooled.at(-1)!) >= rate(last)) {
      const before = pooled.pop()!;
      last = {
        n: before.n + last.n,
        right: before.right + last.right,
        strength: before.strength + last.strength,
      };
    }
    pooled.push(last);
  }
  return pooled.map(bin => [round(bin.strength / bin.n), round(rate(bin))] as const);
}

const round = (value: number): number => Math.round(1000 * value) / 1000;
const mean = (values: readonly number[]): number =>
  round(values.reduce((a, b) => a + b, 0) / Math.max(1, values.length));

interface Bin {
  readonly from: number;
  readonly to: number;
  readonly n: number;
  readonly said: number;
  readonly right: number;
}

function binned(of: readonly Answer[], sure: (answer: Answer) => number): Bin[] {
  const edges = [0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01];
  return edges.slice(0, -1).flatMap((from, i) => {
    const to = edges[i + 1];
    const within = of.filter(one => sure(one) >= from && sure(one) < to);
    if (within.length === 0) return [];
    const right = mean(within.map(one => Number(one.right)));
    return [{ from, to: Math.min(1, to), n: within.length, said: mean(within.map(sure)), right }];
  });
}

/** Mean square of what was said less what was so (Brier 1950), and mean distance of the bins from the diagonal. */
function scores(of: readonly Answer[], sure: (answer: Answer) => number): Record<string, number> {
  const bins = binned(of, sure);
  return {
    answers: of.length,
    brier: mean(of.map(one => (sure(one) - Number(one.right)) ** 2)),
    ece: round(bins.reduce((sum, { n, said, right }) => sum + n * Math.abs(said - right), 0) / of.length),
  };
}

const panel = (title: string, bins: readonly Bin[], before: readonly Bin[]): Panel => ({
  title,
  lines: [
    { xs: [0, 1], ys: [0, 1], name: 'as said', dashed: true, colour: '#6b7280' },
    {
      xs: before.map(({ said }) => said),
      ys: before.map(({ right }) => right),
      name: 'strength of the rules',
    },
    { xs: bins.map(({ said }) => said), ys: bins.map(({ right }) => right), name: 'confidence' },
  ],
  levels: [],
  xEnd: () => '1',
  digits: 1,
});

/** `npm run bench -- doctor calibrate`: the curves for `judge/calibration.ts`, and how good they are. */
export async function calibrate(picture: string): Promise<void> {
  const all = await answers();
  const [tuned, heldOut] = [all.filter(one => !one.heldOut), all.filter(one => one.heldOut)];
  for (const claim of claims) report({ claim, fitted: fitted(tuned.filter(one => one.claim === claim)) });
  const sure = ({ claim, strength }: Answer): number => calibrated(claim, strength);
  const strength = (one: Answer): number => one.strength;
  for (const claim of claims) {
    const of = heldOut.filter(one => one.claim === claim);
    for (const bin of binned(of, sure)) report({ held_out: claim, ...bin });
  }
  const ours = heldOut.filter(({ claim }) => claim === 'cause' || claim === 'healthy');
  report({ held_out: 'confidence', ...scores(ours, sure) });
  report({ held_out: 'strength of the rules', ...scores(ours, strength) });
  for (const way of Object.keys(ways))
    report({
      held_out: way,
      ...scores(
        ours.filter(one => one.way === way),
        sure,
      ),
    });
  report({ curves_in_use: curves });
  const panels = (['cause', 'healthy'] as const).map(claim => {
    const of = heldOut.filter(one => one.claim === claim);
    return panel(
      claim === 'cause' ? 'a root cause is named' : 'healthy',
      binned(of, sure),
      binned(of, strength),
    );
  });
  writeFileAtomic(picture, panelsSvg('How often the doctor is right, by how sure it says it is', panels));
}
