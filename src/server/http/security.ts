/**
 * Who may ask. A page of a stranger in the same browser can send requests to 127.0.0.1, and with a name that resolves to
 * it even read the answers; so the Host must be ours and the Origin the same. Other users of the machine can connect to
 * it, too; so a token is asked for.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { Context, MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { Problem } from '../problem.ts';
import type { PageToken } from '../token.ts';
import { loopbackNames } from './loopback.ts';

export interface SecurityOptions {
  /** The address that is listened on. */
  readonly host: string;
  /** Asked for if given. */
  readonly token?: PageToken | undefined;
}

const wildcards = new Set(['0.0.0.0', '::', '']);

/** `[::1]:7007` → `::1`; undefined if it is no host. */
export function hostOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > 300) return undefined;
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::\d{1,5})?$/.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

/** Names under which this server may be asked for. */
export function hostAllowed(name: string | undefined, bound: string): boolean {
  if (name === undefined) return false;
  if (loopbackNames.has(name) || name === bound.toLowerCase()) return true;
  // Reachable under all of the machine's addresses; a stranger's name is none of them.
  const own = hostname().toLowerCase();
  return wildcards.has(bound) && (isIP(name) !== 0 || name === own || name === `${own}.local`);
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sent with every answer. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
};

/** For a report, which has its own style inside and nothing else. */
export const reportPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

const sameText = (a: string, b: string): boolean => {
  // Hashes have one length, whatever was sent.
  const [x, y] = [a, b].map(text => createHash('sha256').update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(x, y);
};

export function security({ host, token }: SecurityOptions): MiddlewareHandler {
  return async (c, next) => {
    for (const [name, value] of Object.entries(securityHeaders)) c.header(name, value);
    if (!hostAllowed(hostOf(c.req.header('host')), host)) {
      throw new Problem(
        403,
        'wrong-host',
        'this server is asked for under a name that is not its own: open it under the address that it printed',
      );
    }
    refuseOthers(c);
    if (token !== undefined) {
      const redirect = admit(c, token);
      if (redirect !== undefined) return redirect;
    }
    await next();
    // An answer that was made whole, as those with the page's files are, has none of the headers above.
    for (const [name, value] of Object.entries(securityHeaders))
      if (!c.res.headers.has(name)) c.res.headers.set(name, value);
    return undefined;
  };
}

/** What changes something, and the stream and the data too, only for pages of this server. */
function refuseOthers(c: Context): void {
  const { method, path } = c.req;
  const origin = c.req.header('origin');
  const site = c.req.header('sec-fetch-site');
  const reads = method === 'GET' || method === 'HEAD';
  if (reads && !path.startsWith('/api/')) return;
  if (origin !== undefined && !isSame(origin, c.req.header('host'))) {
    throw new Problem(403, 'wrong-origin', 'only the page of this server may ask this');
  }
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new Problem(403, 'wrong-origin', 'only the page of this server may ask this');
}

function isSame(origin: string, host: string | undefined): boolean {
  try {
    const url = new URL(origin);
    return (url.protocol === 'http:' || url.protocol === 'https:') && url.host === host?.toLowerCase();
  } catch {
    return false;
  }
}

/** Cookies do not know ports: two servers on one machine must not take each other's. */
const cookieName = (c: Context): string =>
  `keel_${/:(\d{1,5})$/.exec(c.req.header('host') ?? '')?.[1] ?? 'token'}`;

/** Not the token itself: browsers send a cookie to every port of a machine, and what listens there could open all pages with it. */
const cookieValue = (c: Context, name: string, token: string): string =>
  createHmac('sha256', token)
    .update(`${name} ${listenedOn(c)}`)
    .digest('base64url');

/** The port of the connection, which whoever asks cannot choose, as they can the Host that the cookie is named by. */
const listenedOn = (c: Context): number | undefined =>
  (c.env as { incoming?: { socket?: { localPort?: number } } } | undefined)?.incoming?.socket?.localPort;

/** Lets who has the token through; from the address it moves to a cookie, so that it is in no history or screenshot. */
function admit(c: Context, { token, file }: PageToken): Response | undefined {
  const name = cookieName(c);
  const kept = cookieValue(c, name, token);
  const bearer = /^Bearer (.+)$/.exec(c.req.header('authorization') ?? '')?.[1];
  const cookie = getCookie(c, name);
  const given = c.req.query('token');
  const isKnown =
    (bearer !== undefined && sameText(bearer, token)) || (cookie !== undefined && sameText(cookie, kept));
  if (!isKnown) {
    if (given === undefined || !sameText(given, token)) {
      throw new Problem(
        401,
        'token-needed',
        `a token is needed: open the address that keel printed, or send it as Authorization: Bearer …${file === undefined ? '' : `; it is in ${file}`}`,
      );
    }
    // Lax, not Strict: that would keep out who follows a link from a terminal in the browser, or from another page.
    setCookie(c, name, kept, { httpOnly: true, sameSite: 'Lax', path: '/' });
  }
  if (given === undefined || c.req.path.startsWith('/api/') || c.req.method !== 'GET') return undefined;
  const url = new URL(c.req.url);
  url.searchParams.delete('token');
  // Two slashes would name another server: `//elsewhere/x`.
  return c.redirect(`/${url.pathname.replace(/^[\\/]+/, '')}${url.search}`, 302);
}
