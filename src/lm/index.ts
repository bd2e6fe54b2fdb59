/** Language models: GPT-2 directories, tokenizers, sampling with a cache, and scoring. */
export { Decoder } from './decoder.ts';
export { LmError } from './errors.ts';
export { type Completion, type CompletionEnd, type GenerateOptions, generate, upToStop } from './generate.ts';
export {
  flatFrom,
  loadModel,
  modelFiles,
  modelFromFiles,
  modelTensors,
  saveModel,
  weightsFromFiles,
} from './huggingface.ts';
export { type LanguageModel, languageModel, weightFeeds, weightInputs } from './model.ts';
export { ProgramCache, type Runtime } from './program-cache.ts';
export {
  type BatchInputs,
  type BatchShape,
  batchInputs,
  completionLogProbs,
  flat,
  type PackedBatch,
  pack,
  type ScoredSequence,
  shapeFor,
} from './scorer.ts';
export { ownTokenizer, type TextTokenizer, tokenizerFrom } from './tokenizer.ts';
export { type Draw, type SamplingOptions, TokenDrawer } from './truncation.ts';
