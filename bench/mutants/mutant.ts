/** What a mutant is: one line of the sources made wrong, and the tests that must notice. */

/** One small fault. */
export interface Mutant {
  /** From the project's root. */
  readonly file: string;
  /** What stands there: exactly once in the file. */
  readonly from: string;
  readonly to: string;
  /** Test files that should fail, narrowest first. */
  readonly tests: readonly string[];
  /** What kind of fault it is, in a word. */
  readonly why: string;
}

/** A line of a list: file in the folder, what stands there, what the mutant puts there, tests (`base/files`), kind. */
export type MutantLine = readonly [file: string, from: string, to: string, tests: string, why: string];

/** Mutants of a folder, from a list of lines; several test files are parted by spaces. */
export function mutantsOf(folder: string, lines: readonly MutantLine[]): Mutant[] {
  return lines.map(([file, from, to, tests, why]) => ({
    file: `${folder}/${file}`,
    from,
    to,
    tests: tests.split(' ').map(name => `test/${name}.test.ts`),
    why,
  }));
}

/** By what a mutant is reported: `src/doctor/rules` apart from the rest of the doctor, else the first folder. */
export function groupOf({ file }: Pick<Mutant, 'file'>): string {
  const [top, folder, inner] = file.split('/');
  return folder === 'doctor' || folder === 'algos' || folder === 'envs'
    ? `${top}/${folder}/${inner.includes('.') ? '' : inner}`.replace(/\/$/, '')
    : `${top}/${folder}`;
}

/** A name for `--only`: the file and the line that it stands on. */
export function nameOf({ file, from }: Pick<Mutant, 'file' | 'from'>, text: string): string {
  const at = text.indexOf(from);
  return `${file}:${text.slice(0, at).split('\n').length}`;
}

/** The file with the fault in it. A text that is not there, or more than once, is an error: the list has rotted. */
export function mutated({ file, from, to }: Mutant, text: string): string {
  const [before, after, ...more] = text.split(from);
  if (after === undefined) throw new Error(`${file} no longer has '${from}': mend the list of mutants`);
  if (more.length > 0)
    throw new Error(`${file} has '${from}' ${more.length + 1} times: take more of the line`);
  return before + to + after;
}
