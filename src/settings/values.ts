/** Kinds of values that many settings have. */
import * as z from 'zod/mini';

/** Above 0. */
export const positive = z.number().check(z.positive());
/** 0 or above. */
export const fromZero = z.number().check(z.minimum(0));
/** From 0 to 1. */
export const share = z.number().check(z.minimum(0), z.maximum(1));
/** From 0 to 1, without 1. */
export const belowOne = z.number().check(z.minimum(0), z.lt(1));
/** A whole number from 1 on. */
export const count = z.number().check(z.int(), z.minimum(1));
/** A whole number from 0 on. */
export const countFromZero = z.number().check(z.int(), z.minimum(0));
/** How a value goes from its start to its end. */
export const schedule = z.enum(['constant', 'linear', 'cosine']);
/** How a weight of a KL follows a target. */
export const coefficientRule = z.enum(['fixed', 'adaptive', 'horizon']);
