/** What a language model wrote, for the page: the newest groups of a run's `completions.jsonl`, read from its end. */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { jsonOf } from '../base/json.ts';
import { runPaths } from '../runs/layout.ts';
import type { Completion, CompletionGroup, CompletionsAnswer } from './api.ts';
import type { KeelRun } from './runs/keel-run.ts';
import { isInside, type Root } from './runs/places.ts';
import { numberOf, openIfThere } from './runs/reading.ts';

/** How far back from the end of the file is looked. */
const mostBytes = 32 * 2 ** 20;
const mostText = 20_000;
const mostTokens = 4096;
const mostCompletions = 64;
const mostNames = 50;
export const mostGroups = 50;

/** At most `count` groups, newest first, of iterations before `before`. */
export function completionsOf(
  run: KeelRun,
  roots: readonly Root[],
  { before, count }: { before: number; count: number },
): CompletionsAnswer {
  const path = runPaths(run.path).completions;
  // A link may lead out of what this server was given.
  if (!isInside(path, roots)) return { groups: [], older: false };
  const groups: CompletionGroup[] = [];
  const lines = lastLines(path);
  for (let i = lines.length - 1; i >= 0; i--) {
    const group = groupOf(lines[i]);
    if (group === undefined || group.iteration >= before) continue;
    // Groups of one iteration stay together, or the next page would begin behind some of them.
    if (groups.length >= count && groups.at(-1)!.iteration !== group.iteration)
      return { groups, older: true };
    if (groups.length >= 4 * mostGroups) return { groups, older: true };
    groups.push(group);
  }
  return { groups, older: false };
}

/** Whole lines at the end of a file; the last may be in the middle of being written, and is left out until it is whole. */
function lastLines(path: string): string[] {
  const file = openIfThere(path);
  if (file === undefined) return [];
  try {
    const { size } = fstatSync(file);
    const length = Math.min(size, mostBytes);
    const bytes = Buffer.alloc(length);
    const read = readSync(file, bytes, 0, length, size - length);
    const lines = bytes.toString('utf8', 0, read).split('\n');
    lines.pop();
    return size > length ? lines.slice(1) : lines;
  } finally {
    closeSync(file);
  }
}

/** A line as what the page expects, whatever it holds; undefined for one that is no group. */
function groupOf(line: string): CompletionGroup | undefined {
  let value: Record<string, unknown>;
  try {
    value = jsonOf(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
  const iteration = numberOf(value?.iteration);
  if (iteration === null || !Array.isArray(value.completions)) return undefined;
  const { klRefEstimator: estimator } = value;
  return {
    iteration,
    step: numberOf(value.step) ?? 0,
    prompt: textOf(value.prompt),
    klEstimator: estimator === 'exact' || estimator === 'k3' ? estimator : null,
    completions: value.completions.slice(0, mostCompletions).map(completionOf),
  };
}

function completionOf(value: unknown): Completion {
  const given = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const tokens = Array.isArray(given.tokens) ? given.tokens.slice(0, mostTokens).map(textOf) : [];
  const along = (list: unknown): (number | null)[] =>
    tokens.map((_, i) => (Array.isArray(list) ? numberOf(list[i]) : null));
  return {
    text: textOf(given.text),
    tokens,
    logProbs: along(given.logProbs),
    kl: Array.isArray(given.klRef) ? along(given.klRef) : null,
    reward: numberOf(given.reward),
    advantage: numberOf(given.advantage),
    parsed: given.parsed === true,
    ended: textOf(given.ended).slice(0, 40),
    parts: numbersOf(given.parts),
    metrics: numbersOf(given.metrics),
    problem: typeof given.problem === 'string' ? given.problem.slice(0, 500) : null,
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, mostText) : '');

function numbersOf(value: unknown): Record<string, number | null> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  const entries = Object.entries(value).slice(0, mostNames);
  return Object.fromEntries(entries.map(([name, item]) => [name.slice(0, 80), numberOf(item)]));
}
