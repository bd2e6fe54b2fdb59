/** Connections to Redis. The packages are loaded here and nowhere else, and only when a queue is used. */
import { isIP } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import { KeelError } from '../../base/errors.ts';
import { type RedisAddress, shownAddress } from './address.ts';

/** How long a Redis may take to answer for the first time; one that was there once is waited for without end. */
const firstAnswerMs = 10_000;

/** What both packages are told: a Redis that restarts is waited for, and what was under way is asked again. */
export function connectionOptions({ host, port, db, tls, username, password }: RedisAddress) {
  return {
    host,
    port,
    db,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    // The host's name is what its certificate must say; an IP address is compared without being sent as a name.
    ...(tls && { tls: tlsOptions(host) }),
    // Commands wait for a Redis that is away instead of failing after twenty tries.
    maxRetriesPerRequest: null,
    retryStrategy: (times: number) => Math.min(100 * times, 2000),
    // One that is reading its file back says LOADING: ask again.
    reconnectOnError: (error: Error) => /^(LOADING|READONLY)/.test(error.message),
  } satisfies RedisOptions;
}

/** Of an IP address no name is sent: certificates are compared with the address itself. */
const tlsOptions = (host: string): { readonly servername?: string } =>
  isIP(host) === 0 ? { servername: host } : {};

/** Opens a connection, or says in a sentence why there is none. */
export async function connect(address: RedisAddress): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const options = connectionOptions(address);
  const probe = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: firstAnswerMs,
    commandTimeout: firstAnswerMs,
    retryStrategy: () => null,
  });
  let said: unknown;
  probe.on('error', error => {
    said = error;
  });
  try {
    await probe.connect();
    await probe.ping();
    // A number that it does not have is an error of this alone: otherwise the first one would be used in silence.
    await probe.select(address.db);
  } catch (error) {
    throw redisError(said ?? error, address);
  } finally {
    probe.disconnect();
  }
  const redis = new Redis(options);
  // It connects again by itself; who waits for an answer waits.
  redis.on('error', () => {});
  return redis;
}

/**
 * What Redis or the way to it says, as a sentence. The error itself is not kept as its cause: those of a refused password
 * carry the command, with the password in it.
 */
export function redisError(error: unknown, address: RedisAddress): KeelError {
  const { message = String(error), code } = (error ?? {}) as { message?: string; code?: string };
  const text = withoutSecrets(`${code ?? ''} ${message}`.trim(), address);
  const remedy = /DB index/.test(text)
    ? 'use the number of a database that it has, or none'
    : /WRONGPASS|NOAUTH|AUTH/.test(text)
      ? 'it wants another user or password: KEEL_REDIS_USERNAME, KEEL_REDIS_PASSWORD'
      : /CERT|certificate/.test(text)
        ? 'name an authority of your own in NODE_EXTRA_CA_CERTS, and the host as its certificate does'
        : address.tls && /ETIMEDOUT|EPROTO|ECONNRESET|timeout/i.test(text)
          ? 'does it speak TLS there? Without it the address begins with redis://'
          : !address.tls && /ECONNRESET/.test(text)
            ? 'with TLS the address begins with rediss://'
            : 'is it started, and is the address right?';
  return new KeelError(`cannot use Redis at ${shownAddress(address)}: ${text.slice(0, 300)}; ${remedy}`, {
    code: 'redis',
  });
}

/** Whatever is said, a password is not in it. */
export function withoutSecrets(text: string, { password }: RedisAddress): string {
  return password === undefined || password === ''
    ? text
    : text.replaceAll(password, '…').replaceAll(encodeURIComponent(password), '…');
}
