/** The check of the sources finds what it promises, and nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SourceFile } from '@typescript/native/unstable/ast';
import type { Project } from '@typescript/native/unstable/sync';
import { afterAll, expect, test } from 'vitest';
import { bareLimits } from '../tools/bare-limits.ts';
import { needlessAssertions, undocumented, withProjects } from '../tools/check-source.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-source-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Looks at the first of some files, in a project of their own. */
function lookAt<T>(
  files: Readonly<Record<string, string>>,
  look: (file: SourceFile, project: Project) => T,
): T {
  const compilerOptions = { strict: true, noEmit: true, target: 'es2023', module: 'nodenext', types: [] };
  const config = join(dir, 'tsconfig.json');
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: { ...compilerOptions, allowImportingTsExtensions: true },
      files: Object.keys(files),
    }),
  );
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return withProjects([config], project =>
    look(project.program.getSourceFile(join(dir, Object.keys(files)[0]))!, project),
  );
}

test('a ! that changes nothing is found where it stands', () => {
  const text = `
export const at = (values: Float32Array, i: number) => values[i]! + 1;
export const name = (text: string | undefined) => (text === undefined ? '' : text!);
export const swap = (list: number[]) => { [list[0], list[1]] = [list[1]!, list[0]!]; };
export function all(lists: string[][]) { for (const list of lists) list![0]!.trim(); }
`;
  const found = lookAt({ 'needless.ts': text }, needlessAssertions);
  const expected = [...text.matchAll(/!/g)].map(({ index }) => index);
  expect(found.sort((a, b) => a - b)).toEqual(expected);
  expect(expected).toHaveLength(6);
});

test('a ! that the compiler needs is left', () => {
  const text = `
export const one = (map: Map<string, number>) => map.get('a')!;
export const two = (text: string | null) => text!.length;
export const three = (point?: { x?: number }) => point?.x!;
export const four = <T>(value: T) => value!;
export const five = (list: (string | undefined)[]) => list[0]!;
export function six(set: (then: (value: number) => void) => void) {
  let result: number;
  set(value => { result = value; });
  return result!;
}
`;
  expect(lookAt({ 'needed.ts': text }, needlessAssertions)).toEqual([]);
});

test('what a door exports without a doc comment is named, wherever it is declared', () => {
  const files = {
    'door.ts': `
export { documented, bare } from './inside.ts';
export type { Shape } from './inside.ts';
export * as inside from './inside.ts';
/** Said. */
export const here = 1;
`,
    'inside.ts': `
/** What is inside. */

/** Said. */
export function documented() {}
export function bare() {}
export interface Shape { readonly width: number }
// No doc comment.
export const notExported = 1;
`,
  };
  const found = lookAt(files, undocumented);
  expect(found.map(({ name }) => name).sort()).toEqual(['Shape', 'bare']);
  expect(found.every(({ file }) => file.fileName.endsWith('inside.ts'))).toBe(true);
});

test('a number that decides something outside of a table of limits is found', () => {
  const text = `
declare const limitsOf: <T>(of: string, table: T) => T;
declare const part: (values: number[], from: number) => number[];
const l = limitsOf('some-rule', { rows: 12, share: 0.7, seen: -0.3 });
export const check = (values: number[]) => {
  if (values.length < l.rows || part(values, 0.3).length < 3) return [];
  const confidence = values.length > l.rows ? 0.85 : 0.6;
  return values.filter(v => v > 0 && v < 0.7 && v / Math.max(v, 1e-12) > l.share && v > -40) ? confidence : 1;
};
`;
  const found = lookAt({ 'rule.ts': text }, file => bareLimits(file));
  expect(found.map(at => /^[\d.]+/.exec(text.slice(at))![0])).toEqual(['3', '0.7', '40']);
});
