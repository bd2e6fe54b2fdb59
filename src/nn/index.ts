/** Networks, their parameters and optimisers, and weights on disk. */
export * from './adam.ts';
export { type AdamWState, type AdamWStep, adamW } from './adamw.ts';
export { type Gpt, type GptCache, type GptGroups, type GptOptions, gpt } from './gpt.ts';
export * as initialisers from './initialise.ts';
export { type Activation, type Mlp, type MlpOptions, mlp } from './mlp.ts';
export {
  type FoundTensors,
  gatherTensors,
  namedTensors,
  type OtherShape,
  tensorsIn,
} from './named-tensors.ts';
export {
  type ParameterGroup,
  type ParameterSpec,
  type Parameters,
  parameterNamed,
  parameters,
} from './parameters.ts';
export * from './safetensors.ts';
export { addInto, norm } from './vector-kernels.ts';
