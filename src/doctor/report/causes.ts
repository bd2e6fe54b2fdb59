/** The root causes in plain words: the headline of a report, and what `--explain` prints for them. */
import { type RootCause, rootCauses } from '../findings.ts';

/** A root cause in words. */
export interface CauseText {
  readonly code: RootCause;
  /** The headline. */
  readonly title: string;
  /** What goes on, for someone who has not met it before. */
  readonly meaning: string;
  /** What one usually changes; a report has the exact words for the run's trainer. */
  readonly remedy: string;
}

const texts: Readonly<Record<RootCause, Omit<CauseText, 'code'>>> = {
  'learning-rate-too-high': {
    title: 'The learning rate is too high',
    meaning:
      'Each update moves the policy further than the data it was computed from can support. It overshoots, the next rollout comes from a worse policy, and what was learnt is lost.',
    remedy:
      'Divide the learning rate by 3 to 10 and start again from a healthy checkpoint. A target KL or a KL guard keeps single updates in bounds.',
  },
  'learning-rate-too-low': {
    title: 'The learning rate is too low',
    meaning:
      'The updates hardly change the policy: KL and clip fraction stay near zero, and the return does not move.',
    remedy: 'Multiply the learning rate by 3 to 10, and look whether the KL rises to .001 - .01.',
  },
  'too-many-epochs': {
    title: 'Too many epochs over the same data',
    meaning:
      'The update passes over one rollout so often that it fits its noise: the policy leaves the region in which the old data says anything.',
    remedy: 'Use 3 to 10 epochs, or larger minibatches, or stop an update early with a target KL.',
  },
  'clip-range-too-large': {
    title: 'The clip range is too large',
    meaning: 'Clipping is what holds an update back, and it is set so wide that it does not.',
    remedy: 'Use a clip range of .1 to .2.',
  },
  'target-kl-too-tight': {
    title: 'The target KL is too tight',
    meaning:
      'Nearly every update is stopped after a few minibatches, so that most of each rollout is thrown away.',
    remedy: 'Allow a larger target KL (.01 to .03), or lower the learning rate so that it is reached later.',
  },
  'reward-scale-too-large': {
    title: 'The rewards are too large',
    meaning:
      'The critic has to fit returns of hundreds or thousands. Its loss swamps the gradient that the policy shares with it, and it cannot follow.',
    remedy: 'Normalise or scale the rewards so that returns are of the order of 1 to 10.',
  },
  'reward-scale-changed': {
    title: 'The scale of the rewards changed during the run',
    meaning:
      'From one row to the next the rewards are several times larger or smaller. The critic and its normalisers learnt the old scale.',
    remedy:
      'Find what changed at that step (an environment, a wrapper, a resumed run with other settings), and use one scale throughout.',
  },
  'no-reward-signal': {
    title: 'The reward gives no signal',
    meaning:
      'Every episode earns the same, so all advantages are noise around zero: there is nothing to learn from.',
    remedy:
      'Check that the reward is ever other than its floor; make the first success easier to reach, or reward progress towards it.',
  },
  'critic-not-learning': {
    title: 'The critic does not learn',
    meaning:
      'The value function predicts the returns no better than their mean, so the advantages carry the full noise of the returns.',
    remedy: 'Give it weight (the value coefficient), its own network or learning rate, and scaled returns.',
  },
  'entropy-bonus-too-large': {
    title: 'The entropy bonus is too large',
    meaning: 'The policy is paid more for being random than for being good, and stays or becomes random.',
    remedy: 'Set the entropy coefficient to 0.01 or less, and to 0 for continuous actions.',
  },
  'entropy-collapse': {
    title: 'The policy stopped exploring too early',
    meaning:
      'Its entropy fell to the floor while the return was still low: it always does the same and sees nothing new.',
    remedy: 'Lower the learning rate, or add a small entropy bonus.',
  },
  'non-finite': {
    title: 'Numbers stopped being numbers',
    meaning:
      'NaN or infinity entered the loss, the gradient or the parameters. From then on every update is lost.',
    remedy:
      'Go back to the last checkpoint before it; look for a division by zero or an infinite observation or reward; clip gradients.',
  },
  'sampler-mismatch': {
    title: 'Sampler and scorer disagree',
    meaning:
      'The program that draws the actions and the one that scores them give different probabilities for the same weights, so that every ratio is wrong from the start.',
    remedy:
      'Make both use the same temperature, precision, masks, chat template and weights; switch dropout off.',
  },
  'kl-estimator-broken': {
    title: 'The KL that is logged is not a KL',
    meaning:
      'Its values are impossible for the estimator that it is said to be, so nothing may be concluded from it.',
    remedy: 'Log k3, exp(r) - 1 - r with r = log new - log old, and name pair and estimator.',
  },
  'reference-too-weak': {
    title: 'The reference holds the policy too weakly',
    meaning:
      'The policy runs away from the reference: the reward rises while the text loses what the reference knew.',
    remedy: 'Raise the weight of the KL to the reference, or lower the learning rate.',
  },
  'reference-too-strong': {
    title: 'The reference holds the policy too strongly',
    meaning: 'The penalty keeps the policy at the reference, and the reward does not rise.',
    remedy: 'Lower the weight of the KL to the reference.',
  },
  'degenerate-groups': {
    title: 'Most groups have no differences to learn from',
    meaning:
      'All completions of a prompt earn the same, so their advantages are zero and the prompt is wasted.',
    remedy:
      'Use prompts of middling difficulty, larger groups or a higher temperature, and leave out groups without spread.',
  },
  'malformed-outputs': {
    title: 'The outputs are malformed',
    meaning:
      'Completions are cut off at the limit or do not have the form that the reward looks for, so that the reward measures form, not sense.',
    remedy:
      'Raise the length limit or punish overlong answers; reward the right form; warm up on examples of it.',
  },
  'reward-hacking': {
    title: 'The reward is exploited',
    meaning:
      'The policy has found something that pays and is not the task: the reward rises, and answers are no better or worse.',
    remedy:
      'Read the best-paid completions; cap the part that is exploited, or pay it only where the answer is right.',
  },
  'truncation-zeroes-reward': {
    title: 'The length limit cuts off answers',
    meaning:
      'Answers are cut off where they usually end, and what is cut off earns nothing, whatever it says.',
    remedy: 'Raise the limit on new tokens, or leave what is cut off out of the loss.',
  },
  'length-explosion': {
    title: 'Completions grow without end',
    meaning: 'Something pays for length, or nothing pays for an end, until all completions are cut off.',
    remedy: 'Take the reward for length out or cap it, and pay only for what ends.',
  },
  'entropy-explosion': {
    title: 'The policy becomes random',
    meaning: 'The entropy rises though no bonus asks for it, and the reward does not.',
    remedy: 'Lower the learning rate or the upper clip range; look whether the reward says anything.',
  },
  'importance-ratio-biased': {
    title: 'The ratios are wrong from the start',
    meaning:
      'The old log-probabilities are not those of the policy that sampled: ratios are off 1 before anything has moved.',
    remedy: 'Compute them with the same weights, temperature, precision and mask as the new ones.',
  },
  'kl-sign-wrong': {
    title: 'The KL penalty has the wrong sign',
    meaning: 'The loss rewards the distance to the reference: the KL grows with its own weight.',
    remedy: 'Add the KL to the loss that is made small, or take it off the reward.',
  },
  'group-of-one': {
    title: 'Groups have one completion',
    meaning: 'GRPO compares the completions of a prompt, and there is one: nothing to compare.',
    remedy: 'Sample 8 completions of each prompt, of fewer prompts.',
  },
  'stale-rollouts': {
    title: 'The sampler is behind the policy',
    meaning:
      'Completions come from weights of many updates ago, and are learnt from as if they came from those of now.',
    remedy:
      'Send the new weights to the sampler after every update, or weigh samples by the ratio of the two.',
  },
  'wrong-mask': {
    title: 'The mask of the completions is wrong',
    meaning: 'Tokens are counted that nobody wrote, such as padding behind the end.',
    remedy: 'Let the mask end with the first end token, that token included.',
  },
  'clip-range-too-small': {
    title: 'The clip range is too small',
    meaning:
      'Nearly every token leaves it with the first gradient step of a batch, and later steps are lost.',
    remedy: 'Use a clip range of .1 to .3 for ratios of tokens.',
  },
  'kl-in-reward': {
    title: 'The KL penalty in the reward is learnt, not the task',
    meaning:
      'The reward that is learnt from has the KL taken off it, and the cheapest way to earn is to stay at the reference: it rises while the score falls.',
    remedy: 'Lower the weight of the KL, or take it out of the reward and put it in the loss.',
  },
  'peak-then-collapse': {
    title: 'What was learnt is lost again',
    meaning:
      'The return rose, peaked and fell for good, and no setting is seen to be wrong. Late updates undid what early ones had learnt.',
    remedy:
      'Go on from the checkpoint of the peak with a third of the learning rate, or let the rate fall to 0 by then.',
  },
  'value-over-estimation': {
    title: 'The critic promises more than there is',
    meaning:
      'Predicted values grow far beyond any return: each target is made of the largest of several errors.',
    remedy:
      'Take the smaller of two critics, lower its learning rate, and update the target network more slowly.',
  },
  'action-saturation': {
    title: 'Actions lie at their bounds',
    meaning: 'Most actions are cut off at the bounds, where changes of the policy change nothing.',
    remedy: 'Scale actions to [-1, 1] and begin with a std below 1.',
  },
  'time-limit-as-death': {
    title: 'The end of the time is taken for a death',
    meaning:
      'Where an episode is cut off by the clock, the value after it is put to 0, though the agent would have gone on earning.',
    remedy: 'Add gamma times the value of the last observation where an episode was cut off.',
  },
  'state-not-restored': {
    title: 'The run was resumed without all of its state',
    meaning:
      'After a resume the policy is at once much worse: normalisers, optimiser, schedule or replay buffer were not loaded with the weights.',
    remedy: 'Save and load all of the state, and compare the first evaluation with the last one before.',
  },
  'inert-setting': {
    title: 'A setting has no effect',
    meaning: 'It is in the configuration, and the numbers say that nothing reads it.',
    remedy: 'Look how the trainer names it, and whether this algorithm has it.',
  },
  'metric-broken': {
    title: 'A number in the log is not what its name says',
    meaning: 'It has values that such a metric cannot have.',
    remedy: 'Update the trainer, or leave the metric out of account.',
  },
  'plasticity-lost': {
    title: 'The network has lost the room to learn',
    meaning: 'Most of its units are dead: they give the same for every input, and no gradient reaches them.',
    remedy: 'Lower the learning rate, normalise layers, or use an activation that does not die.',
  },
};

/** The words of every root cause. */
export const causeTexts: readonly CauseText[] = rootCauses.map(code => ({ code, ...texts[code] }));

/** The words of one root cause. */
export function causeText(code: RootCause): CauseText {
  // A newer rule may argue for a cause that has no text yet.
  return (
    causeTexts.find(cause => cause.code === code) ?? {
      code,
      title: code.replaceAll('-', ' '),
      meaning: '',
      remedy: '',
    }
  );
}
