/** Far more than anything takes on a machine that is busy with other things, and less than a test's own limit. */
export const patienceMs = 90_000;

/** Waits for what will be in a moment; what never comes is an error that says so. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  everyMs = 20,
): Promise<void> {
  const end = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise(resolve => setTimeout(resolve, everyMs));
  }
}
