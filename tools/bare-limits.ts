/**
 * Numbers that decide something and stand in no table: a rule of the doctor has its limits in `limitsOf(…)`, where its prose
 * reads them and tests move them (test/doctor/rules/limits.test.ts). What says which rows or which quantile are looked at is
 * no limit, nor is what is advised, what is usual, or how sure a finding is.
 */
import type { Node, SourceFile } from '@typescript/native/unstable/ast';
import {
  isCallExpression,
  isIdentifier,
  isNumericLiteral,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isVariableDeclaration,
} from '@typescript/native/unstable/ast/is';

/** Nothing, all, twice, half, and per cent. */
const plain = new Set([0, 1, 2, 0.5, 100]);

/** Calls whose arguments are no limits of a rule: tables, parts of a series, what is printed, what is advised. */
const exempt = new Set([
  'limitsOf',
  ...['part', 'rowsOf', 'rowsBetween', 'subarray', 'slice', 'at', 'q', 'quantile', 'blockMedians', 'cite'],
  ...['limit', 'usual', 'toPrecision', 'change', 'round'],
]);

/** Files in which such numbers still stand, and how many: to be moved into tables, and never to grow. */
export const stillBare: Readonly<Record<string, number>> = {
  'course.ts': 2,
  'critic/critic-died.ts': 4,
  'critic/critic-fading.ts': 11,
  'critic/critic-flat.ts': 4,
  'critic/reward-scale.ts': 4,
  'critic/value-weight.ts': 2,
  'entropy/entropy-collapse.ts': 4,
  'entropy/entropy-stuck.ts': 2,
  'entropy/std-growing.ts': 1,
  'language-models/levels.ts': 3,
  'language-models/ratio-biased.ts': 1,
  'language-models/reference-runaway.ts': 19,
  'language-models/sampler-gap.ts': 2,
  'language-models/token-entropy.ts': 2,
  'numerics/ends-in-burst.ts': 1,
  'numerics/gradient-explodes.ts': 1,
  'progress.ts': 4,
  'rewards/no-reward.ts': 2,
  'rewards/reward-scale-changed.ts': 66,
  'settings/unusual-settings.ts': 5,
  'signals.ts': 6,
  'steps/clip-range-inert.ts': 2,
  'steps/kl-high.ts': 4,
  'steps/kl-spikes.ts': 2,
  'steps/policy-frozen.ts': 6,
  'steps/target-kl-tight.ts': 1,
  'steps/unstable.ts': 11,
  'words.ts': 2,
};

/** A floor that keeps from dividing by 0. */
const isTiny = (value: number): boolean => value <= 1e-6;

function nameOf(callee: Node): string {
  if (isIdentifier(callee)) return callee.text;
  return isPropertyAccessExpression(callee) ? callee.name.text : '';
}

/** What is usual is advised, and a confidence is no limit. */
const isNoLimit = (name: string): boolean => name === 'confidence' || name.startsWith('USUAL');

/** The places of numbers that should stand in a table, as offsets. */
export function bareLimits(file: SourceFile): number[] {
  const out: number[] = [];
  const visit = (node: Node): void => {
    if (isCallExpression(node) && exempt.has(nameOf(node.expression))) return;
    if (isPropertyAssignment(node) && isIdentifier(node.name) && isNoLimit(node.name.text)) return;
    if (isVariableDeclaration(node) && isIdentifier(node.name) && isNoLimit(node.name.text)) return;
    if (isNumericLiteral(node)) {
      const value = Number(node.text);
      if (!plain.has(value) && !isTiny(value)) out.push(node.getStart());
    }
    node.forEachChild(visit);
  };
  visit(file);
  return out;
}
