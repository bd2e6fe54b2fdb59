/** Keys that all training of language models shares: the model, the optimiser, the run. */
import { z } from 'zod';

export const positive = z.number().positive();
export const share = z.number().min(0).max(1);
export const count = z.number().int().min(1);
export const countFrom0 = z.number().int().min(0);
export const schedule = z.enum(['constant', 'linear', 'cosine']);

/** The size of a new model; of one that is loaded they say nothing. */
export const modelKeys = {
  layers: count
    .max(1000)
    .default(4)
    .describe('Layers of a new model; with a model to start from it has its own.'),
  width: count.max(65_536).default(256).describe('Width of a new model; a multiple of heads.'),
  heads: count.max(10_000).default(8).describe('Attention heads of a new model.'),
  context: count
    .max(1_000_000)
    .nullable()
    .default(null)
    .describe(
      "Tokens that a new model can look at; null is what the task's longest prompt and completion take.",
    ),
};

export const optimiserKeys = {
  learningRateEnd: share.default(0.1).describe('The share of the learning rate that a schedule ends at.'),
  adamBeta1: z.number().min(0).lt(1).default(0.9).describe("Adam's share of the gradients' mean that stays."),
  adamBeta2: z.number().min(0).lt(1).default(0.95).describe('The same for their squares.'),
  adamEpsilon: positive.default(1e-8).describe("Adam's epsilon."),
  weightDecay: z.number().min(0).max(1).default(0).describe("AdamW's decay of matrices."),
  gradientClip: positive
    .nullable()
    .default(1)
    .describe('Largest global norm of a gradient; null does not clip.'),
  microbatchSize: count
    .default(32)
    .describe('Sequences that go through the model at once; gradients of several add up to a minibatch.'),
};

export const runKeys = {
  seed: countFrom0.default(0).describe('Where all randomness comes from: the same seed gives the same bits.'),
  device: z.enum(['cpu', 'webgpu', 'cuda']).default('cpu').describe('Where networks are computed.'),
  threads: count.max(1024).default(2).describe('Threads that one operator may use.'),
  checkpointEvery: count
    .default(10)
    .describe('Iterations between checkpoints; the last and the best are kept.'),
  keepEvery: countFrom0
    .default(0)
    .describe('Keep every checkpoint whose iteration this divides; 0 keeps none for that.'),
  tensorboard: z.boolean().default(true).describe('Write TensorBoard event files beside the log.'),
  csv: z.boolean().default(true).describe('Write metrics.csv beside the log.'),
};
