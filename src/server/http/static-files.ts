/** The built page. What can be asked for is what was found in its directory: no request ever names a file. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/** Both `src/server/http` and `dist/server/http` are three below the package. */
const builtPage = fileURLToPath(new URL('../../../dist/web/', import.meta.url));

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
};
const packs = new Set(['.html', '.js', '.mjs', '.css', '.svg', '.json', '.webmanifest', '.txt', '.wasm']);
const mostFiles = 2000;
const mostBytes = 16 * 2 ** 20;

interface File {
  readonly path: string;
  readonly type: string;
  readonly stamp: string;
  readonly immutable: boolean;
  readonly packs: boolean;
}

interface Body {
  readonly etag: string;
  readonly plain: Buffer;
  br?: Buffer;
  gzip?: Buffer;
}

export interface StaticFiles {
  /** The answer to a path, or the page itself for one that the page knows; undefined if there is no page. */
  serve(
    path: string,
    headers: { accept?: string | undefined; etag?: string | undefined },
  ): Promise<Response | undefined>;
}

export function createStaticFiles(directory = builtPage): StaticFiles {
  let files = new Map<string, File>();
  let listed = '';
  const bodies = new Map<string, Body>();

  /** Lists the directory again when its page was built anew. */
  function refresh(): void {
    const stat = statSync(join(directory, 'index.html'), { throwIfNoEntry: false });
    const stamp = stat === undefined ? '' : `${stat.size}:${stat.mtimeMs}:${stat.ino}`;
    if (stamp === listed) return;
    listed = stamp;
    files = new Map();
    bodies.clear();
    if (stamp === '') return;
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || files.size >= mostFiles) continue;
      const path = join(entry.parentPath, entry.name);
      const ending = extname(entry.name).toLowerCase();
      const type = types[ending];
      const { size, mtimeMs } = statSync(path);
      if (type === undefined || size > mostBytes) continue;
      const name = `/${relative(directory, path).split(sep).join('/')}`;
      files.set(name, {
        path,
        type,
        stamp: `${size}:${mtimeMs}`,
        // Vite puts a hash of the content into these names.
        immutable: name.startsWith('/assets/') && /-[\w-]{8,}\.\w+$/.test(name),
        packs: packs.has(ending),
      });
    }
  }

  function bodyOf(name: string, file: File): Body {
    let body = bodies.get(name);
    if (body === undefined) {
      const plain = readFileSync(file.path);
      body = { plain, etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"` };
      bodies.set(name, body);
    }
    return body;
  }

  return {
    async serve(path, { accept = '', etag }) {
      refresh();
      let name = path === '/' ? '/index.html' : path;
      // A path without an ending is one of the page's own; a file that is not there is an error, not the page.
      if (!files.has(name) && !/\.[a-z0-9]+$/i.test(name)) name = '/index.html';
      const file = files.get(name);
      if (file === undefined) return undefined;
      const body = bodyOf(name, file);
      const headers: Record<string, string> = {
        'content-type': file.type,
        'cache-control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
        etag: body.etag,
        vary: 'accept-encoding',
      };
      if (etag?.split(',').some(tag => tag.trim().replace(/^W\//, '') === body.etag))
        return new Response(null, { status: 304, headers });
      if (file.packs && body.plain.length > 1024) {
        if (/\bbr\b/.test(accept)) {
          body.br ??= await compressBrotli(body.plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
          headers['content-encoding'] = 'br';
          return new Response(new Uint8Array(body.br), { headers });
        }
        if (/\bgzip\b/.test(accept)) {
          body.gzip ??= await compressGzip(body.plain, { level: 9 });
          headers['content-encoding'] = 'gzip';
          return new Response(new Uint8Array(body.gzip), { headers });
        }
      }
      return new Response(new Uint8Array(body.plain), { headers });
    },
  };
}
