/**
 * What is searched where nobody said: the settings that papers on PPO and GRPO find to matter most, around what the
 * environment's preset has. In the words of a study file.
 */
export function defaultSpace(kind: 'env' | 'task', settings: Readonly<Record<string, unknown>>): object {
  const { learningRate } = settings;
  const rate = typeof learningRate === 'number' && learningRate > 0 ? learningRate : 3e-4;
  const around = { log: [rate / 10, Math.min(1, rate * 10)] };
  switch (kind) {
    // M. Andrychowicz et al., "What Matters in On-Policy Reinforcement Learning?" (2020): step size, discount, passes.
    case 'env':
      return {
        learningRate: around,
        gamma: [0.98, 0.99, 0.995, 0.999],
        gaeLambda: [0.9, 0.95, 0.98],
        epochs: [4, 10, 20],
        clipRange: [0.1, 0.2, 0.3],
      };
    case 'task':
      return { learningRate: around, klRefCoef: { log: [1e-4, 1e-1] }, epochs: [1, 2, 4] };
    default:
      return kind satisfies never;
  }
}
