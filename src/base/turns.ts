/** Long work in the one thread of a program, in which a Ctrl-C must be heard all the same. */
import { setImmediate } from 'node:timers/promises';

/** What a person does not notice. */
const workMs = 50;
let since = performance.now();

/** Gives signals and timers a turn, if they had none for a while; for the awaits of work whose steps never wait for anything. */
export async function giveTurn(): Promise<void> {
  if (performance.now() - since < workMs) return;
  await setImmediate();
  since = performance.now();
}
