/**
 * `import … from 'keel'` in a user's file means the Keel that runs, wherever it is installed.
 *
 * The file may lie where no Keel can be found (the command line is installed elsewhere, or runs from a checkout that was
 * never built), or beside another copy of it, whose registry and classes would be strangers here. So hooks, which lie
 * above tsx's, answer `keel` and `keel/…` with this package's own modules: those of `dist`, or of `src` where the sources
 * run.
 */
import { readFileSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

/** Whether this very module is one of Node's. Vite, which runs the tests, keeps modules of its own that no file can share. */
export const loadedByNode = !('env' in import.meta);

/** What can be imported of Keel (`keel`, `keel/envs`), and the URL of each. */
export const keelModules: ReadonlyMap<string, string> = findModules();

function findModules(): Map<string, string> {
  const root = new URL('../../', import.meta.url);
  let exported: Readonly<Record<string, unknown>>;
  try {
    const { name, exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
    exported = name === 'keel' ? (exports ?? {}) : {};
  } catch {
    exported = {}; // bundled, or moved: imports are found as they are anywhere else
  }
  const fromSource = import.meta.url.endsWith('.ts');
  const found = new Map<string, string>();
  for (const [subpath, target] of Object.entries(exported)) {
    const built = (target as { default?: unknown } | null)?.default;
    if (typeof built !== 'string') continue;
    const file = fromSource ? built.replace(/^\.\/dist\/(.*)\.js$/, './src/$1.ts') : built;
    found.set(`keel${subpath.slice(1)}`, new URL(file, root).href);
  }
  return found;
}

/** Puts the hooks above all that are registered by now. */
export function preferRunningCopy(): void {
  if (keelModules.size === 0) return;
  const common = module as unknown as { _resolveFilename: (request: string, ...rest: unknown[]) => string };
  const next = common._resolveFilename;
  common._resolveFilename = (request, ...rest) => {
    const url = keelModules.get(request);
    return url === undefined ? next(request, ...rest) : fileURLToPath(url);
  };
  const { registerHooks } = module as { registerHooks?: (hooks: { resolve: SyncResolve }) => unknown };
  if (registerHooks !== undefined && tsxIsSynchronous()) {
    registerHooks({
      resolve(specifier, context, nextResolve) {
        const url = keelModules.get(specifier);
        return url === undefined
          ? nextResolve(specifier, context)
          : { url, format: 'module', shortCircuit: true };
      },
    });
    return;
  }
  // Its own source, because it runs in a thread of its own, which may not know how to load this file.
  const hook = `
const modules = new Map(${JSON.stringify([...keelModules])});
export async function resolve(specifier, context, next) {
  const url = modules.get(specifier);
  return url === undefined ? next(specifier, context) : { url, format: 'module', shortCircuit: true };
}`;
  module.register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

interface Resolved {
  readonly url: string;
  readonly format?: string | null | undefined;
  readonly shortCircuit?: boolean | undefined;
}
type SyncResolve = (
  specifier: string,
  context: object,
  next: (specifier: string, context: object) => Resolved,
) => Resolved;

/** Which of Node's two kinds of hooks tsx uses, so that ours are of the same kind: from these versions on the newer. */
export function tsxIsSynchronous(): boolean {
  const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
  const since: Record<number, readonly [number, number]> = { 22: [22, 3], 24: [11, 1], 25: [1, 0] };
  const [leastMinor, leastPatch] = since[major] ?? [major > 25 ? 0 : Number.POSITIVE_INFINITY, 0];
  return minor > leastMinor || (minor === leastMinor && patch >= leastPatch);
}
