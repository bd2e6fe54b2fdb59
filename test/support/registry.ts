/** A registry on this machine that has some packages of its own; for every other it sends npm on to the usual one. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
}

interface Packed {
  readonly manifest: Manifest;
  readonly bytes: Buffer;
  readonly file: string;
}

/** The packages that `npm pack` wrote to a directory. */
function packedIn(directory: string): Packed[] {
  return readdirSync(directory)
    .filter(name => name.endsWith('.tgz'))
    .map(file => {
      const path = join(directory, file);
      const manifest = execFileSync('tar', ['-xzOf', path, 'package/package.json'], { encoding: 'utf8' });
      return { manifest: JSON.parse(manifest), bytes: readFileSync(path), file };
    });
}

/**
 * Serves them until it is closed; `asked` has the names that were asked for. Of `others` there is the manifest alone, which is
 * all that npm reads of a package for another platform.
 */
export async function serveRegistry(
  directory: string,
  upstream: string,
  others: readonly Manifest[] = [],
): Promise<{ readonly url: string; readonly asked: Set<string>; readonly server: Server }> {
  const packed = [
    ...packedIn(directory),
    ...others.map(manifest => ({ manifest, bytes: Buffer.alloc(0), file: `${manifest.version}.none` })),
  ];
  const asked = new Set<string>();
  const server = createServer(({ url = '/' }, response) => {
    const path = decodeURIComponent(url.slice(1));
    const tarball = packed.find(({ file }) => path === `-/${file}`);
    const found = packed.filter(({ manifest }) => manifest.name === path);
    asked.add(path);
    if (tarball) response.end(tarball.bytes);
    else if (found.length > 0) {
      const versions = found.map(({ manifest, bytes, file }) => {
        const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
        return [manifest.version, { ...manifest, dist: { tarball: `${here()}-/${file}`, integrity } }];
      });
      const name = found[0].manifest.name;
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          name,
          'dist-tags': { latest: found.at(-1)?.manifest.version },
          versions: Object.fromEntries(versions),
        }),
      );
    } else response.writeHead(307, { location: new URL(url, upstream).href }).end();
  });
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
  const here = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url: here(), asked, server };
}
