/**
 * What the type checker knows besides what it says by itself (`npm run check:types`): `npm run check:source`.
 *
 * - A `!` on what can be neither null nor undefined says nothing, and hides those that do. `-- --fix` removes them.
 * - A rule of the doctor has its limits in a table (`bare-limits.ts`).
 * - What the package exports (the doors in package.json) has a doc comment, from which docs/api is made.
 *
 * It asks TypeScript 7, in a fifth of the time of version 6. That interface is new, so the version is pinned.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Node, NonNullExpression, SourceFile } from '@typescript/native/unstable/ast';
import {
  isForOfStatement,
  isIdentifier,
  isNonNullExpression,
  isSourceFile,
  isVariableDeclaration,
} from '@typescript/native/unstable/ast/is';
import { API, type Project, SymbolFlags } from '@typescript/native/unstable/sync';
import { bareLimits, stillBare } from './bare-limits.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

/** All files of some tsconfig.json, a project each, for as long as they are used. */
export function withProjects<T>(configFiles: readonly string[], use: (...projects: Project[]) => T): T {
  const typescript = new API({ cwd: root });
  try {
    const snapshot = typescript.updateSnapshot({ openProjects: [...configFiles] });
    return use(
      ...configFiles.map(file => {
        const project = snapshot.getProject(file);
        if (project === undefined) throw new Error(`${file} cannot be read`);
        return project;
      }),
    );
  } finally {
    typescript.close();
  }
}

/** The places of each `!` that changes no type, as offsets. */
export function needlessAssertions(file: SourceFile, { checker }: Project): number[] {
  const assertions: NonNullExpression[] = [];
  const visit = (node: Node): void => {
    if (isNonNullExpression(node)) assertions.push(node);
    node.forEachChild(visit);
  };
  visit(file);
  const types = checker.getTypeAtLocation(assertions.map(({ expression }) => expression));
  return assertions
    .filter(({ expression }, i) => {
      const type = types[i];
      if (type === undefined || checker.getNonNullableType(type)?.id !== type.id) return false;
      // `let x: T` that is set in a callback: the compiler cannot see that it is, and `x!` vouches for it.
      const declared = isIdentifier(expression)
        ? checker.getSymbolAtLocation(expression)?.valueDeclaration?.resolve()
        : undefined;
      return !(
        declared !== undefined &&
        isVariableDeclaration(declared) &&
        declared.initializer === undefined &&
        declared.exclamationToken === undefined &&
        !isForOfStatement(declared.parent.parent)
      );
    })
    .map(({ end }) => end - 1);
}

/** What a door exports without saying what it is: `name`, and where it is declared. */
export function undocumented(
  door: SourceFile,
  { checker }: Project,
): { name: string; declaration: Node; file: SourceFile }[] {
  const module = checker.getSymbolAtLocation(door);
  return (module === undefined ? [] : checker.getExportsOfModule(module)).flatMap(exported => {
    const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const declaration = symbol.declarations.at(0)?.resolve();
    // A folder's or file's namespace is told by the comment on top of it.
    if (declaration === undefined || isSourceFile(declaration)) return [];
    if (symbol.getDocumentationComment(checker) !== '') return [];
    return [{ name: exported.name, declaration, file: declaration.getSourceFile() }];
  });
}

function placeOf({ fileName, text }: SourceFile, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `${relative(root, fileName)}:${before.length}:${before.at(-1)!.length + 1}`;
}

/** The doors of the package: source files that its subpaths lead to. */
function doorFiles(): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { default: string }>;
  };
  return Object.values(exports).flatMap(target =>
    typeof target === 'string'
      ? []
      : [join(root, target.default.replace(/^\.\/dist\/(.*)\.js$/, 'src/$1.ts'))],
  );
}

function removeAt(text: string, offsets: readonly number[]): string {
  return [...offsets]
    .sort((a, b) => b - a)
    .reduce((rest, at) => rest.slice(0, at) + rest.slice(at + 1), text);
}

/** What is wrong with the files of a project that lie under these folders, or what was mended. */
function* assertionProblems(project: Project, isOwn: (path: string) => boolean, fix: boolean) {
  for (const name of project.program.getSourceFileNames()) {
    const path = relative(root, name);
    if (name.endsWith('.d.ts') || path.includes('node_modules') || path.startsWith('..') || !isOwn(path))
      continue;
    // Most files have none, and to bring a file here takes longer than to look.
    const file = /[\w)\]"'`>]!(?!=)/.test(readFileSync(name, 'utf8'))
      ? project.program.getSourceFile(name)
      : undefined;
    if (file === undefined) continue;
    const offsets = needlessAssertions(file, project);
    if (!fix) for (const at of offsets) yield `${placeOf(file, at)}: this ! changes nothing: remove it`;
    else if (offsets.length > 0) writeFileSync(name, removeAt(file.text, offsets));
  }
}

function* doorProblems(project: Project) {
  for (const door of doorFiles()) {
    const file = project.program.getSourceFile(door);
    if (file === undefined) {
      yield `${relative(root, door)} is named in package.json and does not exist`;
      continue;
    }
    for (const { name, declaration, file: where } of undocumented(file, project)) {
      const place = placeOf(where, declaration.getStart());
      yield `${place}: ${relative(root, door)} exports ${name} without a doc comment`;
    }
  }
}

const RULES = 'src/doctor/rules/';

function* limitProblems(project: Project) {
  for (const name of project.program.getSourceFileNames()) {
    const path = relative(root, name);
    const file = path.startsWith(RULES) ? project.program.getSourceFile(name) : undefined;
    if (file === undefined) continue;
    const found = bareLimits(file);
    const still = stillBare[path.slice(RULES.length)] ?? 0;
    if (found.length < still)
      yield `${path}: ${found.length} numbers stand in no table, and tools/bare-limits.ts has ${still}: put down ${found.length}`;
    if (found.length > still)
      for (const at of found)
        yield `${placeOf(file, at)}: this number stands in no table of limits, and ${found.length} here are more than ${still}: put it into limitsOf(…)`;
  }
}

function problems(fix: boolean): string[] {
  // The page has other types around it, so it is a project of its own, whose types svelte-check looks at.
  const configs = [join(root, 'tsconfig.json'), join(root, 'web/tsconfig.json')];
  return withProjects(configs, (all, page) => [
    ...assertionProblems(all, path => !path.startsWith('web/'), fix),
    ...doorProblems(all),
    ...limitProblems(all),
    ...assertionProblems(page, path => path.startsWith('web/') && path !== 'web/vite.config.ts', fix),
  ]);
}

function main(fix: boolean): number {
  const lines = problems(fix);
  for (const line of lines) process.stdout.write(`${line}\n`);
  return lines.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = main(process.argv.includes('--fix'));
