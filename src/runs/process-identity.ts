/** Telling whether a process that once wrote its number down is still that process. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** Who a process is: numbers are used again, but not with the same start in the same boot on the same machine. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in whatever words the system has for it; null if it would not say. */
  readonly start: string | null;
  /** Which start of the machine, where `start` counts from it (Linux); else null. */
  readonly boot: string | null;
  readonly host: string;
}

/** What is asked of the system; tests answer for systems they do not run on. */
export interface System {
  /** @internal */
  readonly platform: NodeJS.Platform;
  readonly host: string;
  /** The text of a file; throws if there is none. */
  read(path: string): string;
  /** What a program prints; throws if it fails. */
  run(program: string, args: readonly string[]): string;
  /** As `process.kill(pid, 0)`: throws ESRCH if there is no such process. */
  probe(pid: number): void;
}

/** The system that this process runs on. */
export const thisSystem: System = {
  platform: process.platform,
  host: hostname(),
  read: path => readFileSync(path, 'utf8'),
  run: (program, args) =>
    execFileSync(program, args, {
      encoding: 'utf8',
      timeout: 10_000,
      stdio: ['ignore', 'pipe', 'ignore'],
      windowsHide: true,
      // The same words every time, whoever asks.
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
    }),
  probe: pid => void process.kill(pid, 0),
};

/** This process, as it should be written down. */
export function identify(pid = process.pid, system = thisSystem): ProcessIdentity {
  return { pid, start: processStart(pid, system), boot: bootId(system), host: system.host };
}

/** `unknown` for a process of another machine, which cannot be asked. */
export function stateOf(identity: ProcessIdentity, system = thisSystem): 'alive' | 'gone' | 'unknown' {
  if (identity.host !== system.host) return 'unknown';
  const boot = bootId(system);
  if (identity.boot !== null && boot !== null && identity.boot !== boot) return 'gone';
  if (!isThere(identity.pid, system)) return 'gone';
  const start = processStart(identity.pid, system);
  // If the system does not say when it started, better to believe that it is the same one than to write over it.
  if (start === null || identity.start === null) return 'alive';
  return start === identity.start ? 'alive' : 'gone';
}

function isThere(pid: number, system: System): boolean {
  try {
    system.probe(pid);
  } catch (error) {
    // EPERM: it is there and belongs to someone else.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
  // A process that has ended but whose parent has not asked about it yet writes nothing any more.
  return !['Z', 'X'].includes(linuxStat(pid, system)?.[0] ?? '');
}

function processStart(pid: number, system: System): string | null {
  try {
    switch (system.platform) {
      case 'linux':
        return linuxStat(pid, system)?.[19] ?? null;
      case 'win32': {
        const script = `(Get-Process -Id ${pid}).StartTime.ToFileTimeUtc()`;
        return (
          system.run('powershell.exe', ['-NoProfile', '-NonInteractive', '-Command', script]).trim() || null
        );
      }
      default:
        return system.run('ps', ['-o', 'lstart=', '-p', String(pid)]).trim() || null;
    }
  } catch {
    return null;
  }
}

/** The fields of /proc/<pid>/stat after the program's name, which may hold spaces and brackets; [19] is its start. */
function linuxStat(pid: number, system: System): string[] | undefined {
  if (system.platform !== 'linux') return undefined;
  try {
    const stat = system.read(`/proc/${pid}/stat`);
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function bootId(system: System): string | null {
  if (system.platform !== 'linux') return null;
  try {
    return system.read('/proc/sys/kernel/random/boot_id').trim();
  } catch {
    return null;
  }
}
