/** How a thread of this package is started: the same from `dist` and, through tsx, from the sources. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** `here` is the `import.meta.url` of a module; `name` is a module beside it, without its ending. */
export function threadEntry(here: string, name: string): URL {
  if (!here.endsWith('.ts')) return new URL(`${name}.js`, here);
  // The package's main entry is ESM whoever asks; `require` would get a CommonJS copy of others, which cannot register.
  const tsx = new URL('esm/api/index.mjs', pathToFileURL(createRequire(here).resolve('tsx'))).href;
  const thread = new URL(`${name}.ts`, here).href;
  const program = `import { register } from ${JSON.stringify(tsx)}; register(); await import(${JSON.stringify(thread)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(program)}`);
}
