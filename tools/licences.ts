/**
 * `npm run docs:licences`: docs/licences.md, what Keel is made of besides itself: the packages that are installed with it,
 * and those that the page has inside, whose licences want their text to go with it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ONNX_RUNTIME_VERSION } from '../src/engine/onnx/native.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

/** What the page is bundled from; the others of its build leave nothing in it. */
const inPage = ['svelte', 'three', 'uplot'];

/** Licences that ask for nothing but their notice, or, of tools that are not shipped, whose terms end at their own files. */
export const allowed = {
  shipped: [
    'MIT',
    'ISC',
    'Apache-2.0',
    'BSD-2-Clause',
    'BSD-3-Clause',
    '0BSD',
    'BlueOak-1.0.0',
    '(MIT OR CC0-1.0)',
  ],
  development: ['MPL-2.0', 'Python-2.0', 'MIT OR Apache-2.0'],
} as const;

/** Every package that the lock file names, with the licence that it says. */
export function lockedPackages(): (LockedPackage & { readonly name: string })[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, LockedPackage>>;
  };
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, locked]) => ({ ...locked, name: path.replace(/^.*node_modules\//, '') }));
}

function licenceText(name: string): string {
  const folder = join(root, 'node_modules', name);
  const file =
    existsSync(folder) && readdirSync(folder).find(entry => /^licen[cs]e(\.md|\.txt)?$/i.test(entry));
  if (!file) throw new Error(`${name} has no licence file: run npm ci`);
  return readFileSync(join(folder, file), 'utf8').trim();
}

/** The page of the documentation. */
export function licencePage(): string {
  const all = lockedPackages();
  const shipped = all.filter(({ dev }) => !dev);
  const own = {
    name: '@keel/onnxruntime-…, which has ONNX Runtime',
    version: ONNX_RUNTIME_VERSION,
    license: 'MIT',
  };
  const rows = [
    ...new Map([...shipped, own].map(entry => [`${entry.name} ${entry.version}`, entry])).values(),
  ]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`);
  const bundled = inPage.map(name => {
    const version = all.find(entry => entry.name === name)?.version;
    return `### ${name} ${version}\n\n\`\`\`\n${licenceText(name)}\n\`\`\`\n`;
  });
  return `# Licences

Keel is under the MIT licence. \`npm run docs:licences\` writes this page from the lock file; a test holds every package in it to licences that
ask for no more than their notice. None is under the GPL. \`npm sbom --sbom-format cyclonedx\` (or \`spdx\`) writes a bill of materials.

## Installed with it

| package | version | licence |
|---|---|---|
${rows.join('\n')}

## Inside the page

${bundled.join('\n')}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(join(root, 'docs/licences.md'), licencePage());
