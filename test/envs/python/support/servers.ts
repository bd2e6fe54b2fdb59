import { readdirSync, readFileSync } from 'node:fs';

/** The servers that this process has started, directly or by its threads: the children of their minders. */
export function servers(): number[] {
  const statusOf = (pid: string): string[] => {
    try {
      return (
        / (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ''))?.[1].split(' ') ?? []
      );
    } catch {
      return [];
    }
  };
  return readdirSync('/proc').flatMap(pid => {
    if (!/^\d+$/.test(pid)) return [];
    const [state, parent = '0', group] = statusOf(pid);
    if (state === 'Z' || parent !== group) return [];
    return statusOf(parent)[1] === String(process.pid) ? [Number(pid)] : [];
  });
}
