/**
 * A trainer that nobody here knows. Names are matched by their words, the last part of a path and what stands before
 * it, never by a bare `mean` at the end; what is not plainly one thing stays unknown.
 */
import type { KlMeaning } from '../canonical.ts';
import type { Dialect, Mapping } from './dialect.ts';
import { fits } from './log.ts';

type Kl = Omit<KlMeaning, 'lag'>;

const stepKl: Kl = { pair: 'step', estimator: 'unknown', per: 'unknown', aggregation: 'unknown' };
const refKl: Kl = { ...stepKl, pair: 'ref' };
const samplerKl: Kl = { ...stepKl, pair: 'sampler' };

/** What a script that logs one thing by several counts puts behind its name: `Reward/episode`, `Reward/(t)`. */
const by = '(?:[/](?:[(]t[)]|info|t|(?:time)?steps?|frames?|episodes?|epochs?|iter(?:ation)?s?))?';

/** Anything before the words that matter, up to a slash, dot or space, but no evaluation; then the words. */
const named = (words: string): RegExp =>
  new RegExp(`(?!(?:eval|evaluation|test|val|validation)[/_. ])(?:.*[/. ])?(?:${words})${by}`, 'i');
const evaluated = (words: string): RegExp => new RegExp(words, 'i');
const sep = '[_ -]?';

const mappings: readonly Mapping[] = [
  {
    theirs: named(
      `(?:approx${sep}|mean${sep}|policy${sep}|step${sep}|ppo${sep}|old${sep}new${sep})kl(?:${sep}(?:mean|avg|div|divergence))?`,
    ),
    id: 'kl/step',
    kl: stepKl,
  },
  {
    theirs: named(
      `(?:ref(?:erence)?${sep}kl|kl${sep}(?:to${sep})?ref(?:erence)?|kl${sep}(?:ref${sep})?penalty)(?:${sep}(?:mean|avg))?`,
    ),
    id: 'kl/ref',
    kl: refKl,
  },
  { theirs: named(`(?:vllm|sampler|rollout|inference|mismatch)${sep}kl`), id: 'kl/sampler', kl: samplerKl },
  { theirs: named(`kl${sep}coeff?(?:icient)?|kl${sep}beta`), id: 'kl/coef' },
  { theirs: named(`entropy|policy${sep}entropy|entropy${sep}mean|mean${sep}entropy`), id: 'policy/entropy' },
  {
    theirs: named(
      `value${sep}loss|v[fl]?${sep}loss|critic${sep}loss|value${sep}function${sep}loss|loss${sep}(?:vf?|value|critic)`,
    ),
    id: 'loss/value',
  },
  { theirs: /(?:.*\/)?loss(?:es)?\/(?:value|critic|vf?)/i, id: 'loss/value' },
  {
    theirs: named(`explained${sep}var(?:iance)?|vf${sep}explained${sep}var|exp${sep}var`),
    id: 'value/explained_variance',
  },
  {
    theirs: named(
      `policy${sep}(?:gradient${sep})?loss|pg${sep}loss|actor${sep}loss|surrogate(?:${sep}loss)?|loss${sep}(?:policy|actor|pi)`,
    ),
    id: 'loss/policy',
  },
  { theirs: /(?:.*\/)?loss(?:es)?\/(?:policy|actor|pi)/i, id: 'loss/policy' },
  { theirs: named(`total${sep}loss|loss`), id: 'loss/total' },
  {
    theirs: named(
      `ep(?:isode|isodic)?${sep}(?:rew(?:ard)?|ret(?:urn)?)s?(?:${sep}(?:mean|avg))?|(?:mean|avg|average)${sep}ep(?:isode|isodic)?${sep}(?:rew(?:ard)?|ret(?:urn)?)s?|(?:mean|avg|average)${sep}(?:reward|return|score)s?`,
    ),
    id: 'episode/return',
  },
  { theirs: named('returns?|episode(?:s)?[/](?:return|reward)s?|scores?'), id: 'episode/return' },
  // What the task pays comes before what a learner makes of it: scaled, shaped or imitated.
  {
    theirs: named(`(?:true|raw)${sep}(?:mean|avg|average)${sep}(?:reward|return|score)s?`),
    id: 'episode/return',
  },
  {
    theirs: named(`(?:train|training|total|cumulative|running)${sep}(?:reward|return|score)s?`),
    id: 'episode/return',
  },
  { theirs: /rewards?\/(?:train|training|episode|total)/i, id: 'episode/return' },
  // `100rew`: the mean of so many episodes; `Rewards/mean_episodes`.
  { theirs: named(`\\d+${sep}(?:rew(?:ard)?|ret(?:urn)?)s?`), id: 'episode/return' },
  { theirs: named(`rewards?[/](?:mean|avg)${sep}ep(?:isode)?s?`), id: 'episode/return' },
  { theirs: named(`rew(?:ard)?s?(?:${sep}(?:mean|avg))?(?:${sep}raw)?`), id: 'reward/mean' },
  { theirs: /rewards?[/](?:mean|avg)/i, id: 'reward/mean' },
  { theirs: named(`reward${sep}std|rewards?[/]std`), id: 'reward/std' },
  {
    theirs: evaluated(
      `(?:eval|evaluation|test)[/_ ](?:mean${sep})?(?:ep(?:isode)?${sep})?(?:reward|return)(?:${sep}mean)?`,
    ),
    id: 'eval/return',
  },
  {
    theirs: named(
      `ep(?:isode|isodic)?${sep}len(?:gth)?s?(?:${sep}(?:mean|avg))?|(?:mean|avg)${sep}ep(?:isode)?${sep}len(?:gth)?`,
    ),
    id: 'episode/length',
  },
  { theirs: named(`len(?:gth)?s?[/](?:mean|avg)${sep}ep(?:isode)?s?`), id: 'episode/length' },
  { theirs: named(`lr|learning${sep}rate|actor${sep}lr|policy${sep}lr|cur${sep}lr`), id: 'train/lr' },
  { theirs: named(`(?:value|critic)${sep}(?:lr|learning${sep}rate)`), id: 'train/lr_critic' },
  { theirs: named(`grad(?:ient)?${sep}norm|(?:actor|policy)${sep}grad${sep}norm`), id: 'grad/norm' },
  {
    theirs: named(
      `clip${sep}?frac(?:tion)?|clip${sep}ratio|(?:pg|ppo)${sep}clip${sep}?(?:frac(?:tion)?|ratio)`,
    ),
    id: 'policy/clip_fraction',
  },
  { theirs: named(`clip${sep}(?:range|coef|eps(?:ilon)?)`), id: 'train/clip_range' },
  { theirs: named(`(?:action${sep}|policy${sep}|mean${sep})(?:noise${sep})?std`), id: 'policy/std' },
  {
    theirs: named(
      `(?:completion|response)s?${sep}(?:mean${sep})?length(?:${sep}mean)?|(?:completion|response)s?(?:[/]|_length[/])(?:mean${sep}length|mean)`,
    ),
    id: 'completion/length',
  },
  { theirs: named(`frac${sep}reward${sep}zero${sep}std`), id: 'reward/zero_std_groups' },
  { theirs: named(`(?:[a-z0-9]+${sep})??(?:win|success)${sep}(?:rate|ratio)`), id: 'episode/success' },
  { theirs: named(`sps|fps|steps${sep}per${sep}sec(?:ond)?`), id: 'time/steps_per_second' },
];

/** `Critic Loss 2`: several agents learn, each with losses of its own. */
const lossOfAgent = new RegExp(`(?:.*[/. ])?(?:actor|critic|policy|value)${sep}loss${sep}(\\d+)`, 'i');

/** Of several agents the first one speaks for all: what `Reward 1` is, beside `Reward 2` and their losses. */
function ofFirstAgent(names: readonly string[]): Mapping[] {
  const numbers = names.flatMap(name => fits(name, lossOfAgent)?.[1] ?? []);
  if (new Set(numbers).size < 2) return [];
  const first = numbers.reduce((a, b) => (Number(b) < Number(a) ? b : a));
  const of = (words: string): RegExp => named(`(?:${words})${sep}(?:agent${sep})?${first}`);
  return [
    { theirs: of(`(?:ep(?:isode|isodic)?${sep})?(?:reward|return|score)s?`), id: 'episode/return' },
    { theirs: of(`(?:critic|value)${sep}loss`), id: 'loss/value' },
    { theirs: of(`(?:actor|policy)${sep}loss`), id: 'loss/policy' },
  ];
}

/** A bare `kl`: of which pair, its name does not say. */
const bareKl = named(`kl(?:${sep}(?:mean|avg|div|divergence|loss))?`);

/** Of a language model these are of the reference, unless they say of which step. */
const languageKl = named(
  `(?:mean${sep}|policy${sep}|token${sep}|avg${sep})kl(?:${sep}(?:mean|avg|div|divergence|loss))?`,
);

/** Words that only language-model trainers use. */
const languageModel =
  /(?:^|[/_. ])(?:completions?|responses?|prompts?|tokens?|num_tokens|generations?|logps?|vllm)(?:$|[/_. ])/i;

function speaksOfLanguageModels(names: Iterable<string>): boolean {
  for (const name of names) if (languageModel.test(name)) return true;
  return false;
}

/** The dialect of a log with these names. */
export function unknownDialect(names: readonly string[]): Dialect {
  const language = speaksOfLanguageModels(names);
  return {
    name: 'unknown',
    title: 'Unknown trainer',
    kind: language ? 'language-model' : 'classic',
    signs: [],
    mappings: [
      ...(language ? [{ theirs: languageKl, id: 'kl/ref', kl: refKl }] : []),
      ...mappings,
      ...ofFirstAgent(names),
      { theirs: bareKl, id: language ? 'kl/ref' : 'kl/step', kl: language ? refKl : stepKl },
    ],
    ignored: [/(?:.*[/_. ])?(?:time|timestamp|epoch|wall_time|runtime|seed|pid|hostname)(?:[/_ ].*)?/i],
    steps: [],
    eventStep: { unit: 'steps' },
    config: {
      learningRate: ['learning_rate', 'lr', 'actor_lr', 'learningRate'],
      epochs: ['n_epochs', 'update_epochs', 'num_epochs', 'ppo_epochs', 'epochs'],
      minibatchSize: ['minibatch_size', 'mini_batch_size', 'batch_size'],
      stepsPerRollout: ['n_steps', 'num_steps', 'rollout_length', 'horizon'],
      envs: ['num_envs', 'n_envs'],
      totalSteps: ['total_timesteps', 'total_steps', 'max_steps'],
      clipRange: ['clip_range', 'clip_coef', 'clip_eps', 'clip_param', 'clip_ratio', 'epsilon'],
      targetKl: ['target_kl', 'kl_target', 'desired_kl'],
      entropyCoef: ['ent_coef', 'entropy_coef', 'entropy_coeff'],
      valueCoef: ['vf_coef', 'value_coef', 'value_loss_coef'],
      gamma: ['gamma', 'discount'],
      maxGradNorm: ['max_grad_norm', 'grad_clip'],
      task: ['env_id', 'env_name', 'env', 'task'],
    },
    wording: {
      names: {
        learningRate: 'learning rate',
        learningRateSchedule: 'learning-rate schedule',
        epochs: 'epochs',
        minibatchSize: 'minibatch size',
        stepsPerRollout: 'steps of a rollout',
        envs: 'environments',
        totalSteps: 'total steps',
        clipRange: 'clip range',
        targetKl: 'target KL',
        entropyCoef: 'entropy coefficient',
        valueCoef: 'value coefficient',
        gamma: 'gamma',
        maxGradNorm: 'maximal gradient norm',
        refCoef: 'KL coefficient',
        groupSize: 'completions of a prompt',
        temperature: 'sampling temperature',
        maxCompletionLength: 'maximal completion length',
      },
      write: pairs => pairs.map(([name, value]) => `set the ${name} to ${value}`).join(', '),
    },
    remarks: 'Names are matched by their words. --map says what the others are.',
  };
}
