/** Kinds of values that many settings have. */
import * as z from 'zod/mini';

export const positive = z.number().check(z.positive());
export const fromZero = z.number().check(z.minimum(0));
export const share = z.number().check(z.minimum(0), z.maximum(1));
export const belowOne = z.number().check(z.minimum(0), z.lt(1));
export const count = z.number().check(z.int(), z.minimum(1));
export const countFromZero = z.number().check(z.int(), z.minimum(0));
export const schedule = z.enum(['constant', 'linear', 'cosine']);
/** How a weight of a KL follows a target. */
export const coefficientRule = z.enum(['fixed', 'adaptive', 'horizon']);
