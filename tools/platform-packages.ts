/**
 * ONNX Runtime's native binding for those who install Keel, taken from the pinned onnxruntime-node of the development
 * dependencies, whose own install script looks for CUDA outside of npm and which holds the binaries of every platform.
 *
 * `npm run packages` (`-- linux-x64` for one of them) writes to packages/ what a release publishes: a package a platform (`@keel/onnxruntime-linux-x64` …), and
 * Keel itself with all of them as optional dependencies, of which npm installs the one that fits.
 *
 * `npm pack` puts the binding of its own machine inside of Keel (`--here`, to native/), so that one file installs without a registry
 * that has the others.
 */
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  ONNX_RUNTIME_VERSION,
  type Platform,
  platformPackage,
  platforms,
} from '../src/engine/onnx/native.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const runtime = join(root, 'node_modules/onnxruntime-node');
const binaries = join(runtime, 'bin/napi-v6');

const windows = ['onnxruntime_binding.node', 'onnxruntime.dll', 'dxcompiler.dll', 'dxil.dll'];

/** What goes into each package. */
const packed: Readonly<Record<Platform, readonly string[]>> = {
  'darwin-arm64': ['onnxruntime_binding.node', 'libonnxruntime.1.dylib'],
  'linux-arm64': ['onnxruntime_binding.node', 'libonnxruntime.so.1'],
  'linux-x64': ['onnxruntime_binding.node', 'libonnxruntime.so.1'],
  'win32-arm64': windows,
  'win32-x64': windows,
};

/** What does not, and why. A file of onnxruntime-node that is in neither list stops the release. */
const leftOut: Readonly<Record<string, string>> = {
  'darwin/arm64/libonnxruntime.1.30.0.dylib': 'the same file under its other name',
  'win32/arm64/DirectML.dll': 'loaded when DirectML is asked for, which is not one of our devices',
  'win32/x64/DirectML.dll': 'loaded when DirectML is asked for, which is not one of our devices',
};

const folderOf = (platform: Platform): string => platform.replace('-', '/');

/** The processor that a binary is for, by its first bytes; undefined if it is none of ours. */
export function machineOf(head: Uint8Array): Platform | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const magic = view.getUint32(0);
  if (magic === 0x7f454c46) {
    const machine = view.getUint16(18, true);
    return machine === 0x3e ? 'linux-x64' : machine === 0xb7 ? 'linux-arm64' : undefined;
  }
  if (magic === 0xcffaedfe) return view.getUint32(4, true) === 0x0100000c ? 'darwin-arm64' : undefined;
  if (magic >>> 16 !== 0x4d5a) return undefined;
  const header = view.getUint32(0x3c, true);
  if (header + 6 > head.length) return undefined;
  const machine = view.getUint16(header + 4, true);
  return machine === 0x8664 ? 'win32-x64' : machine === 0xaa64 ? 'win32-arm64' : undefined;
}

/** What is not as the lists say, a sentence each. */
export function faults(): string[] {
  const { version } = JSON.parse(readFileSync(join(runtime, 'package.json'), 'utf8')) as { version: string };
  if (version !== ONNX_RUNTIME_VERSION)
    return [`onnxruntime-node is ${version}, the engine is written against ${ONNX_RUNTIME_VERSION}`];
  const wanted = new Map<string, Platform>();
  for (const platform of platforms)
    for (const name of packed[platform]) wanted.set(`${folderOf(platform)}/${name}`, platform);
  const there = readdirSync(binaries, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry =>
      join(entry.parentPath, entry.name)
        .slice(binaries.length + 1)
        .replaceAll('\\', '/'),
    );
  return [
    ...there.filter(name => !wanted.has(name) && !(name in leftOut)).map(name => `${name} is in no list`),
    ...[...wanted.keys(), ...Object.keys(leftOut)]
      .filter(name => !there.includes(name))
      .map(name => `${name} is not in onnxruntime-node ${version}`),
    ...[...wanted]
      .filter(
        ([name, platform]) => there.includes(name) && machineOf(headOf(join(binaries, name))) !== platform,
      )
      .map(([name, platform]) => `${name} is no binary for ${platform}`),
  ];
}

function headOf(file: string): Uint8Array {
  const head = new Uint8Array(4096);
  const opened = openSync(file, 'r');
  readSync(opened, head, 0, head.length, 0);
  closeSync(opened);
  return head;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly engines: object;
  readonly files: readonly string[];
}

const readManifest = (): Manifest => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** A platform's package.json: npm installs it where `os`, `cpu` and `libc` fit, and it runs nothing. */
export function platformManifest(
  platform: Platform,
  { version, engines }: Manifest = readManifest(),
): object {
  const [os, cpu] = platform.split('-');
  return {
    name: platformPackage(platform),
    version,
    description: `ONNX Runtime ${ONNX_RUNTIME_VERSION} for Keel on ${platform}`,
    license: 'MIT',
    engines,
    os: [os],
    cpu: [cpu],
    ...(os === 'linux' && { libc: ['glibc'] }),
    preferUnplugged: true,
  };
}

/** Keel's package.json as it is published: what only a checkout needs is gone. */
export function publishedManifest(manifest: Manifest = readManifest()): object {
  const development = ['devDependencies', 'scripts', 'allowScripts', 'overrides'];
  return {
    ...Object.fromEntries(Object.entries(manifest).filter(([key]) => !development.includes(key))),
    files: manifest.files.filter(name => name !== 'native'),
    optionalDependencies: Object.fromEntries(
      platforms.map(platform => [platformPackage(platform), manifest.version]),
    ),
  };
}

/** The files of a platform's package but its package.json. */
function writeBinaries(platform: Platform, folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const name of packed[platform]) cpSync(join(binaries, folderOf(platform), name), join(folder, name));
  cpSync(join(root, 'tools/onnxruntime-licence.txt'), join(folder, 'LICENSE'));
}

function writeJson(folder: string, value: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(value, null, 2)}\n`);
}

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function npmPack(folder: string, ...flags: readonly string[]): Packed {
  const { status, stdout, stderr } = spawnSync('npm', ['pack', '--ignore-scripts', '--json', ...flags], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 27,
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm pack of ${folder}: ${stderr}`);
  return (JSON.parse(stdout) as [Packed])[0];
}

/** What npm would pack of the checkout. */
const packedFiles = (): string[] => npmPack(root, '--dry-run').files.map(({ path }) => path);

function pack(folder: string, destination: string): string {
  const { filename, size, unpackedSize } = npmPack(folder, '--pack-destination', destination);
  return `${filename}: ${(size / 1e6).toFixed(1)} MB, ${(unpackedSize / 1e6).toFixed(1)} MB unpacked`;
}

/** Everything that a release publishes, from the build in dist/. */
function writeRelease(folder: string, wanted: readonly Platform[]): void {
  const manifest = readManifest();
  rmSync(folder, { recursive: true, force: true });
  for (const platform of wanted) {
    const target = join(folder, platform);
    writeBinaries(platform, target);
    writeJson(target, platformManifest(platform, manifest));
    writeFileSync(
      join(target, 'README.md'),
      `# ${platformPackage(platform)}\n\nThe native binding of ONNX Runtime ${ONNX_RUNTIME_VERSION}, as it is in onnxruntime-node, for Keel on ${platform}. Keel installs it where it fits.\n`,
    );
    console.log(pack(target, folder));
  }
  const keel = join(folder, 'keel');
  mkdirSync(keel);
  for (const name of packedFiles().filter(path => !path.startsWith('native/')))
    cpSync(join(root, name), join(keel, name), { recursive: true });
  writeJson(keel, publishedManifest(manifest));
  console.log(pack(keel, folder));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wrong = faults();
  if (wrong.length > 0) {
    console.error(wrong.join('\n'));
    process.exitCode = 1;
  } else if (process.argv.includes('--here')) {
    const native = join(root, 'native');
    rmSync(native, { recursive: true, force: true });
    const here = platforms.find(platform => platform === `${process.platform}-${process.arch}`);
    if (here) writeBinaries(here, join(native, here));
  } else if (existsSync(join(root, 'dist/cli/main.js'))) {
    const named = platforms.filter(platform => process.argv.includes(platform));
    writeRelease(join(root, 'packages'), named.length > 0 ? named : platforms);
  } else {
    console.error('There is no build: npm run build');
    process.exitCode = 1;
  }
}
