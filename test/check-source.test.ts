/** The check of the sources finds what it promises, and nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { needlessAssertions, openProject, undocumented } from '../tools/check-source.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-source-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** One file in a project of its own. */
function opened(files: Readonly<Record<string, string>>) {
  const compilerOptions = { strict: true, noEmit: true, target: 'es2023', module: 'nodenext', types: [] };
  writeFileSync(
    join(dir, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: { ...compilerOptions, allowImportingTsExtensions: true },
      files: Object.keys(files),
    }),
  );
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const program = openProject(join(dir, 'tsconfig.json'));
  const file = program.getSourceFile(join(dir, Object.keys(files)[0]))!;
  return { file, checker: program.getTypeChecker() };
}

test('a ! that changes nothing is found where it stands', () => {
  const text = `
export const at = (values: Float32Array, i: number) => values[i]! + 1;
export const name = (text: string | undefined) => (text === undefined ? '' : text!);
export const swap = (list: number[]) => { [list[0], list[1]] = [list[1]!, list[0]!]; };
export function all(lists: string[][]) { for (const list of lists) list![0]!.trim(); }
`;
  const { file, checker } = opened({ 'needless.ts': text });
  const found = needlessAssertions(file, checker);
  const expected = [...text.matchAll(/!/g)].map(({ index }) => index);
  expect(found.sort((a, b) => a - b)).toEqual(expected);
  expect(expected).toHaveLength(6);
});

test('a ! that the compiler needs is left', () => {
  const { file, checker } = opened({
    'needed.ts': `
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
`,
  });
  expect(needlessAssertions(file, checker)).toEqual([]);
});

test('what a door exports without a doc comment is named, wherever it is declared', () => {
  const { file, checker } = opened({
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
  });
  const found = undocumented(file, checker);
  expect(found.map(({ name }) => name).sort()).toEqual(['Shape', 'bare']);
  expect(found.every(({ declaration }) => declaration.getSourceFile().fileName.endsWith('inside.ts'))).toBe(
    true,
  );
});
