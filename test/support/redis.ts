/** A Redis of a test's own, which is ended after the file's tests. */
import { afterAll } from 'vitest';
import { type OwnRedis, startOwnRedis } from './redis-server.ts';

export type TestRedis = Omit<OwnRedis, 'end'>;

export async function startRedis(options: { readonly password?: string } = {}): Promise<TestRedis> {
  const redis = await startOwnRedis(options);
  afterAll(() => redis.end());
  return redis;
}
