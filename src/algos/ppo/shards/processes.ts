/**
 * Shards are collected by processes of this machine. One that dies is replaced, and what it was at is begun again from the
 * same bytes: to the same bits.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { TrainError } from '../../../base/errors.ts';
import { refuseOther } from './merge.ts';
import { decodeShardResult, encodeShardJob } from './message.ts';
import type { ShardEvents, ShardPlace } from './place.ts';
import type { ShardJob, ShardResult } from './shard.ts';

/** What a process answers. */
export type ShardReply =
  | { readonly ready: true }
  | { readonly result: Uint8Array }
  | { readonly error: { readonly message: string; readonly code: string } };

export interface ShardProcessOptions {
  /** How many. */
  readonly count: number;
  /** Processes that one shard may take down before it is given up. */
  readonly mostDeaths?: number;
}

/** A place with processes that can be looked at, for whoever kills them. */
export interface ShardProcesses extends ShardPlace {
  /** Those that are alive. */
  readonly pids: readonly number[];
  /** Those of them that are at a shard. */
  readonly busyPids: readonly number[];
}

/** A rollout that is being collected. */
interface Rollout {
  readonly jobs: readonly ShardJob[];
  readonly bytes: readonly Uint8Array[];
  readonly waiting: number[];
  readonly deaths: number[];
  readonly results: (ShardResult | undefined)[];
  left: number;
  readonly events: ShardEvents;
  resolve(results: ShardResult[]): void;
  reject(error: unknown): void;
}

interface Member {
  readonly child: ChildProcess;
  /** A process that is still starting gets nothing: another may be through sooner. */
  isReady: boolean;
  /** Which job of the rollout it is at. */
  at: number | undefined;
}

/** Starts processes when the first shards come; idle ones do not keep this process alive. */
export function shardProcesses({ count, mostDeaths = 10 }: ShardProcessOptions): ShardProcesses {
  const members = new Set<Member>();
  let rollout: Rollout | undefined;
  let isClosed = false;
  /** Deaths of processes that had nothing to do, one after the other: they cannot even start. */
  let idleDeaths = 0;

  function start(): void {
    const child = fork(fileURLToPath(new URL(entryName, import.meta.url)), {
      serialization: 'advanced',
      execArgv: entryFlags(),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const member: Member = { child, isReady: false, at: undefined };
    members.add(member);
    child.on('message', (reply: ShardReply) => heard(member, reply));
    // One that cannot be started, or sent to, is followed by its end, or by none: it counts once.
    child.on('error', error => lost(member, error.message));
    child.on('exit', (code, signal) => lost(member, signal ?? `exit code ${code}`));
  }

  /** Neither it nor its channel keeps this process alive. */
  function rest({ child }: Member): void {
    child.unref();
    child.channel?.unref();
  }

  function give(member: Member): void {
    const next = member.isReady ? rollout?.waiting.shift() : undefined;
    if (rollout === undefined || next === undefined) {
      if (member.isReady) rest(member);
      return;
    }
    member.at = next;
    member.child.ref();
    member.child.channel?.ref();
    // What cannot be sent comes back as its death.
    member.child.send(rollout.bytes[next], () => {});
  }

  function heard(member: Member, reply: ShardReply): void {
    // Of one that was ended because its rollout had failed; or this is being closed, and waits for the end of one that has just
    // started: to let it rest now would leave nothing that keeps this process.
    if (isClosed || !members.has(member)) return;
    if ('ready' in reply) {
      idleDeaths = 0;
      member.isReady = true;
      give(member);
      return;
    }
    const { at } = member;
    member.at = undefined;
    if (rollout === undefined || at === undefined) {
      rest(member);
      return;
    }
    if ('error' in reply) {
      const { message, code } = reply.error;
      fail(new TrainError(message, { code: code || undefined }));
      return;
    }
    try {
      const result = decodeShardResult(reply.result);
      refuseOther(rollout.jobs[at], result);
      rollout.results[at] = result;
    } catch (error) {
      fail(error);
      return;
    }
    const { resolve, results } = rollout;
    if (--rollout.left === 0) rollout = undefined;
    give(member);
    if (rollout === undefined) resolve(results as ShardResult[]);
  }

  function fail(error: unknown): void {
    const failing = rollout;
    rollout = undefined;
    failing?.reject(error);
  }

  function lost(member: Member, why: string): void {
    if (!members.delete(member) || isClosed) return;
    member.child.kill('SIGKILL');
    if (rollout === undefined) return;
    const problem = member.at === undefined ? lostIdle(why) : lostAt(rollout, member.at, why);
    if (problem !== undefined) {
      fail(new TrainError(problem));
      return;
    }
    start();
    for (const other of members) if (other.at === undefined) give(other);
  }

  /** What is wrong when that was once too often. */
  function lostIdle(why: string): string | undefined {
    if (++idleDeaths <= mostDeaths) return undefined;
    return `processes that collect shards do not start (${why}): use collectors 0`;
  }

  function lostAt({ jobs, deaths, waiting, events }: Rollout, at: number, why: string): string | undefined {
    const { shard } = jobs[at];
    events.onLost?.(shard, why);
    // Before the others: it has waited longest.
    waiting.unshift(at);
    if (++deaths[at] <= mostDeaths) return undefined;
    return `shard ${shard} took down ${deaths[at]} processes one after the other, the last by ${why}: does its environment exit, or need more memory than there is? collectors 0 collects in this process`;
  }

  return {
    slots: count,
    get pids() {
      return [...members].flatMap(({ child }) => child.pid ?? []);
    },
    get busyPids() {
      return [...members].flatMap(({ child, at }) => (at === undefined ? [] : (child.pid ?? [])));
    },
    collect(jobs, events = {}) {
      if (isClosed) throw new TrainError('the processes that collect shards are closed: open new ones');
      if (rollout) throw new TrainError('shards are being collected: await one rollout before the next');
      return new Promise<ShardResult[]>((resolve, reject) => {
        rollout = {
          ...{ jobs, events, resolve, reject },
          bytes: jobs.map(encodeShardJob),
          waiting: jobs.map((_, i) => i),
          deaths: jobs.map(() => 0),
          results: jobs.map(() => undefined),
          left: jobs.length,
        };
        // One that is still busy is so with a rollout that failed.
        for (const member of members) {
          if (member.at !== undefined) {
            members.delete(member);
            member.child.kill('SIGKILL');
          } else give(member);
        }
        while (members.size < count) start();
      });
    },
    async close() {
      isClosed = true;
      fail(new TrainError('the processes that collect shards were closed'));
      await Promise.all(
        [...members].map(
          ({ child }) =>
            new Promise<void>(resolve => {
              if (child.exitCode !== null || child.signalCode !== null) return resolve();
              child.ref();
              child.once('exit', () => resolve());
              child.kill('SIGKILL');
            }),
        ),
      );
      members.clear();
    },
  };
}

/** The process's program, from `dist` or, through tsx, from the sources. */
const isSource = import.meta.url.endsWith('.ts');
const entryName = isSource ? 'process.ts' : 'process.js';
const entryFlags = (): string[] =>
  isSource ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : [];
