import { fail } from '../errors.ts';

/** A state of numbers only, all finite. */
export function checkFinite(state: object): void {
  for (const [name, value] of Object.entries(state)) {
    if (!Number.isFinite(value))
      fail('state-invalid', `state.${name} is ${value}, not finite: the state is damaged`);
  }
}
