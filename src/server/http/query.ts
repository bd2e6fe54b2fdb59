/** Numbers in an address. */
import type { Context } from 'hono';
import { Problem } from '../problem.ts';

/** What a query says, if it says it. */
export function numberOf(c: Context, name: string): number | undefined {
  const text = c.req.query(name);
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  if (Number.isFinite(value)) return value;
  throw new Problem(400, 'not-a-number', `${name} is ${JSON.stringify(text.slice(0, 40))}: send a number`);
}

/** The step that names a checkpoint. */
export function stepOf(text: string): number {
  const step = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(step)) return step;
  throw new Problem(
    400,
    'not-a-step',
    `a checkpoint is named by its step, not ${JSON.stringify(text.slice(0, 40))}`,
  );
}
