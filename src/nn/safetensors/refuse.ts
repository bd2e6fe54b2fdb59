/** What is said of a file that is refused. */
import { KeelError } from '../../base/errors.ts';

/** A file that is not, or cannot become, valid safetensors. The message is one line: what, the limit, the remedy. */
export class SafetensorsError extends KeelError {
  override name = 'SafetensorsError';
}

export function refuse(source: string, problem: string): never {
  // A file's own text must not break the line, nor reach a terminal as control characters.
  throw new SafetensorsError(`${source}: ${problem}`.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' '));
}

/** A value of the file for a message: quoted, and cut where it would fill the screen. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
