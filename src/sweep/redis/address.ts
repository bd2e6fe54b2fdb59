/** Where a Redis or Valkey is: read from an address, shown without what nobody may see. */
import { KeelError } from '../../base/errors.ts';

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** The part of the environment that names who one is: an address on a command line is seen by every user of the machine. */
interface Secrets {
  readonly KEEL_REDIS_USERNAME?: string | undefined;
  readonly KEEL_REDIS_PASSWORD?: string | undefined;
}

/** `redis://host`, `rediss://user:password@host:6380/1`; user and password may come from the environment. */
export function redisAddress(text: string, environment: Secrets = process.env): RedisAddress {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw wrongAddress(text, 'it is no address');
  }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') throw wrongAddress(text, 'of another kind');
  if (url.hostname === '') throw wrongAddress(text, 'it names no host');
  const db = url.pathname.replace('/', '');
  if (!/^\d{0,4}$/.test(db))
    throw wrongAddress(text, 'after the host there is a database, a number, or nothing');
  const given = (part: string): string | undefined => {
    try {
      return part === '' ? undefined : decodeURIComponent(part);
    } catch {
      throw wrongAddress(text, 'a % in its password is written %25');
    }
  };
  return {
    // Brackets are how an address writes a host of IPv6.
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 6379 : Number(url.port),
    db: Number(db || 0),
    tls: url.protocol === 'rediss:',
    username: given(url.username) ?? (environment.KEEL_REDIS_USERNAME || undefined),
    password: given(url.password) ?? (environment.KEEL_REDIS_PASSWORD || undefined),
  };
}

/** An address for people: without user and password. */
export function shownAddress({ host, port, db, tls }: RedisAddress): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${tls ? 'rediss' : 'redis'}://${name}:${port}${db === 0 ? '' : `/${db}`}`;
}

/** What cannot be understood may have a password anywhere in it: only its beginning is shown. */
function wrongAddress(text: string, why: string): KeelError {
  const kind = /^[a-z]{1,10}:\/\//i.exec(text)?.[0];
  const shown = kind === undefined ? 'the address of the queue' : `the address of the queue, ${kind}…,`;
  return new KeelError(
    `${shown} cannot be used, ${why}: write redis://host:6379, or rediss:// for TLS; user and password as in redis://user:password@host, or in KEEL_REDIS_USERNAME and KEEL_REDIS_PASSWORD`,
    { code: 'usage' },
  );
}
