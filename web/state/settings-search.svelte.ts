/** The settings of all runs, asked for by the first search: most people never need them. */
import type { AllSettings } from '../../src/server/api.ts';
import { client } from './client.ts';

let all = $state.raw<AllSettings | null>(null);
let askedFor = -1;

export const settingsSearch = {
  get all(): AllSettings | null {
    return all;
  },
  /** Asks for them, unless they are those of that many runs. */
  want(runs: number): void {
    if (askedFor === runs) return;
    askedFor = runs;
    client.settings().then(
      answer => {
        all = answer;
      },
      () => {
        // The search goes on without them, and asks again with the next run.
        askedFor = -1;
      },
    );
  },
};
