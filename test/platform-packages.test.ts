/** The packages of a release: their lists fit the pinned onnxruntime-node, and what they say of themselves. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ONNX_RUNTIME_VERSION, platformPackage, platforms } from '../src/engine/onnx/native.ts';
import { faults, machineOf, platformManifest, publishedManifest } from '../tools/platform-packages.ts';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

test('every binary of the pinned onnxruntime-node is in a list, and is for the platform that the list says', () => {
  expect(faults()).toEqual([]);
  expect(manifest.devDependencies['onnxruntime-node']).toBe(ONNX_RUNTIME_VERSION);
});

test('a binary is told by its head', () => {
  const elf = new Uint8Array(64);
  elf.set([0x7f, 0x45, 0x4c, 0x46]);
  elf[18] = 0xb7;
  expect(machineOf(elf)).toBe('linux-arm64');
  elf[18] = 0x03;
  expect(machineOf(elf)).toBeUndefined();
  expect(machineOf(new Uint8Array(64))).toBeUndefined();
});

test('Keel is published with a package for each platform, in its own version, and without install scripts', () => {
  const published = publishedManifest() as Record<string, Record<string, string> | undefined>;
  expect(published.optionalDependencies).toEqual(
    Object.fromEntries(platforms.map(platform => [platformPackage(platform), manifest.version])),
  );
  expect(Object.keys(published.dependencies ?? {})).not.toContain('onnxruntime-node');
  expect(published.scripts).toBeUndefined();
  expect(published.files).not.toContain('native');
  expect(platformManifest('linux-x64')).toMatchObject({ os: ['linux'], cpu: ['x64'], libc: ['glibc'] });
  expect(platformManifest('win32-arm64')).toMatchObject({ os: ['win32'], cpu: ['arm64'] });
  for (const platform of platforms) expect(platformManifest(platform)).not.toHaveProperty('scripts');
});
