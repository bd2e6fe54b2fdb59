/** What error texts, help and documents lead to is there, for those who installed the package and have no checkout. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { documentPath } from '../src/base/documents.ts';
import { metricPage } from '../tools/metric-page.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  files: readonly string[];
};

/** Whether npm packs a path: it lies in one of `files`. */
const isPacked = (path: string): boolean =>
  [...files, 'package.json'].some(name => path === name || path.startsWith(`${name}/`));

const filesBelow = (folder: string, ending: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith(ending))
    .map(name => join(folder, name).replaceAll('\\', '/'));

const packedDocuments = files
  .flatMap(name =>
    statSync(join(root, name), { throwIfNoEntry: false })?.isDirectory() ? filesBelow(name, '.md') : [name],
  )
  .filter(name => name.endsWith('.md') && existsSync(join(root, name)));

/** Headings as a link names them. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  return new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => {
      const plain = title
        .toLowerCase()
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-');
      const times = seen.get(plain) ?? 0;
      seen.set(plain, times + 1);
      return times === 0 ? plain : `${plain}-${times}`;
    }),
  );
}

/** What links lead to that is not in the package: `document: link`. */
function broken(document: string): string[] {
  const text = readFileSync(join(root, document), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/\]\(([^()\s]+)\)/g)]
    .map(([, link]) => link)
    .filter(link => !/^[a-z]+:/i.test(link))
    .filter(link => {
      const [path, anchor] = link.split('#');
      const target = path === '' ? join(root, document) : resolve(join(root, dirname(document)), path);
      if (!isPacked(relative(root, target).replaceAll('\\', '/')) || !existsSync(target)) return true;
      // The pages of the API have anchors of their own making.
      if (anchor === undefined || !target.endsWith('.md') || target.includes('/docs/api/')) return false;
      return !anchorsOf(readFileSync(target, 'utf8')).has(anchor);
    })
    .map(link => `${document}: ${link}`);
}

test('every link of a packed document leads to something in the package', () => {
  expect(packedDocuments).toContain('README.md');
  expect(packedDocuments).toContain('docs/ppo.md');
  expect(packedDocuments.flatMap(broken)).toEqual([]);
});

test('every document that the program names is in the package', () => {
  const named = [...filesBelow('src', '.ts'), ...filesBelow('web', '.svelte'), ...filesBelow('web', '.ts')]
    .filter(name => !name.includes('node_modules'))
    .flatMap(file =>
      [
        ...readFileSync(join(root, file), 'utf8').matchAll(
          /\b(?:docs|examples)\/[\w./-]+\.(?:md|ts)\b|\b(?:SECURITY|CONTRIBUTING|CHANGELOG)\.md\b/g,
        ),
      ].map(([path]) => ({ file, path })),
    );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ path }) => !isPacked(path) || !existsSync(join(root, path)))).toEqual([]);
});

test('a message names a document by a path that can be opened from here', () => {
  const path = documentPath('docs/robot-view.md');
  expect(resolve(path)).toBe(join(root, 'docs/robot-view.md'));
});

test('docs/README.md lists every page beside it', () => {
  const index = readFileSync(join(root, 'docs/README.md'), 'utf8');
  const pages = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md') && name !== 'README.md');
  expect(pages.filter(name => !index.includes(`(${name})`))).toEqual([]);
});

test('docs/metrics.md is what the registry says', () => {
  expect(readFileSync(join(root, 'docs/metrics.md'), 'utf8')).toBe(metricPage());
});
