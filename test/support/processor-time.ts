/**
 * Milliseconds of processor time that this process has used. What must not take long is measured by it: a clock would
 * also count what the machine does for others, and a test would fail because they are busy.
 */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
