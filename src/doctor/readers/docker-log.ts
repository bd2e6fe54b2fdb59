/** Docker's own log (`json-file`): lines of `{"log": "…\n", "stream": "stdout", "time": "…"}`. One file is in it: what was printed. */
import { mostInMemory } from './archive-limits.ts';
import type { ByteSource, Member } from './byte-source.ts';
import { ReadError } from './errors.ts';
import { isObject, parseJson } from './json.ts';

export function isDockerLog(head: Buffer): boolean {
  const first = head.toString('utf8').trimStart().split('\n', 1)[0];
  const row = first.length < 2 ** 15 && first.includes('"log"') ? parseJson(first) : undefined;
  return (
    isObject(row) &&
    typeof row.log === 'string' &&
    (typeof row.stream === 'string' || typeof row.time === 'string')
  );
}

export function dockerMembers(path: string, source: ByteSource): Member[] {
  if (source.size > mostInMemory)
    throw new ReadError(
      path,
      `docker's log of more than ${mostInMemory} bytes: write what the container prints to a file (docker logs)`,
    );
  return [{ name: 'output.log', bytes: printed }];
}

/** What was printed; a line that is damaged is left out. */
function printed(source: ByteSource): Buffer {
  const parts: string[] = [];
  for (const line of source.read(0, source.size).toString('utf8').split('\n')) {
    const row = line === '' ? undefined : parseJson(line);
    if (isObject(row) && typeof row.log === 'string') parts.push(row.log);
  }
  return Buffer.from(parts.join(''));
}
