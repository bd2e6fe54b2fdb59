/**
 * What the type checker knows besides what it says by itself (`npm run check:types`): `npm run check:source`.
 *
 * - A `!` on what can be neither null nor undefined says nothing, and hides those that do. `-- --fix` removes them.
 * - What the package exports (the doors in package.json) has a doc comment, from which docs/api is made.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../', import.meta.url));

/** All files of a tsconfig.json, parsed and bound. */
export function openProject(configFile: string): ts.Program {
  const config = ts.getParsedCommandLineOfConfigFile(configFile, undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(ts.flattenDiagnosticMessageText(messageText, ' '));
    },
  });
  if (config === undefined) throw new Error(`${configFile} cannot be read`);
  return ts.createProgram(config.fileNames, config.options);
}

/** The places of each `!` that changes no type, as offsets. */
export function needlessAssertions(file: ts.SourceFile, checker: ts.TypeChecker): number[] {
  const found: number[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isNonNullExpression(node) && isNeedless(node, checker)) found.push(node.end - 1);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function isNeedless({ expression }: ts.NonNullExpression, checker: ts.TypeChecker): boolean {
  const type = checker.getTypeAtLocation(expression);
  if (checker.getNonNullableType(type) !== type) return false;
  // `let x: T` that is set in a callback: the compiler cannot see that it is, and `x!` vouches for it.
  const declared = ts.isIdentifier(expression) && checker.getSymbolAtLocation(expression)?.valueDeclaration;
  return !(
    declared &&
    ts.isVariableDeclaration(declared) &&
    declared.initializer === undefined &&
    declared.exclamationToken === undefined &&
    !ts.isForOfStatement(declared.parent.parent)
  );
}

/** What a door exports without saying what it is: `name`, and where it is declared. */
export function undocumented(
  door: ts.SourceFile,
  checker: ts.TypeChecker,
): { name: string; declaration: ts.Node }[] {
  const module = checker.getSymbolAtLocation(door);
  return (module === undefined ? [] : checker.getExportsOfModule(module)).flatMap(exported => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const [declaration] = symbol.declarations ?? [];
    // A folder's or file's namespace is told by the comment on top of it.
    if (declaration === undefined || ts.isSourceFile(declaration)) return [];
    return symbol.getDocumentationComment(checker).length > 0 ? [] : [{ name: exported.name, declaration }];
  });
}

function placeOf(file: ts.SourceFile, offset: number): string {
  const { line, character } = file.getLineAndCharacterOfPosition(offset);
  return `${relative(root, file.fileName)}:${line + 1}:${character + 1}`;
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

/** What is wrong with the files of a program that lie under these folders, or what was mended. */
function* assertionProblems(program: ts.Program, isOwn: (path: string) => boolean, fix: boolean) {
  const checker = program.getTypeChecker();
  for (const file of program.getSourceFiles()) {
    const path = relative(root, file.fileName);
    if (file.isDeclarationFile || path.includes('node_modules/') || !isOwn(path)) continue;
    const offsets = needlessAssertions(file, checker);
    if (!fix) for (const at of offsets) yield `${placeOf(file, at)}: this ! changes nothing: remove it`;
    else if (offsets.length > 0) writeFileSync(file.fileName, removeAt(file.text, offsets));
  }
}

function* doorProblems(program: ts.Program) {
  for (const door of doorFiles()) {
    const file = program.getSourceFile(door);
    if (file === undefined) {
      yield `${relative(root, door)} is named in package.json and does not exist`;
      continue;
    }
    for (const { name, declaration } of undocumented(file, program.getTypeChecker())) {
      const place = placeOf(declaration.getSourceFile(), declaration.getStart());
      yield `${place}: ${relative(root, door)} exports ${name} without a doc comment`;
    }
  }
}

function* problems(fix: boolean) {
  const program = openProject(join(root, 'tsconfig.json'));
  yield* assertionProblems(program, path => !path.startsWith('web/'), fix);
  yield* doorProblems(program);
  // The page has other types around it, so it is a project of its own, whose types svelte-check looks at.
  const page = openProject(join(root, 'web/tsconfig.json'));
  yield* assertionProblems(page, path => path.startsWith('web/') && path !== 'web/vite.config.ts', fix);
}

function main(fix: boolean): number {
  const lines = [...problems(fix)];
  for (const line of lines) process.stdout.write(`${line}\n`);
  return lines.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = main(process.argv.includes('--fix'));
