/**
 * Lines that one trainer prints once a row, under the names that it logs the same numbers by: a row of this table for
 * each. What only continues a row (`more`) belongs to the one before it.
 */

export type Cells = [name: string, value: string][];

export interface PrintedRecord {
  readonly cells: Cells;
  /** Whose row it is, where one output has the rows of several that learn. */
  readonly who?: string;
  readonly more?: true;
}

interface Kind {
  /** What a line must have to be looked at more closely. */
  readonly mark: string;
  read(line: string): PrintedRecord | undefined;
}

const named = (found: RegExpExecArray, names: readonly string[]): Cells =>
  names.flatMap(
    (name, i): Cells => (name === '' || found[i + 1] === undefined ? [] : [[name, found[i + 1]]]),
  );

const number = '([-+]?(?:\\d[\\d.]*(?:[eE][-+]?\\d+)?|nan|inf))';

/** rl_games, after an epoch. */
const rlGames =
  /^[ \t]*fps step: *([\d.]+) fps step and policy inference: *([\d.]+) fps total: *([\d.]+)(?: epoch: *(\d+)(?:\/[\d.]+)?)?(?: frames: *(\d+))?/;
const rlGamesNames = [
  'performance/step_fps',
  '',
  'performance/step_inference_rl_update_fps',
  'info/epochs',
  'frames',
];
/** Its reward is told only when it is the best so far. */
const best = /best rewards: *\[?[ \t]*([-+\d.eE]+)/;

/** ML-Agents: `[INFO] Brain. Step: 5000. Time Elapsed: 46.0 s. Mean Reward: 0.3. Std of Reward: 1.0. Training. ELO: 1196.0.` */
const agents = new RegExp(
  `(?:^|[\\s:\\]])([^\\s:.\\]][^:\\]]{0,80}?)[.:] +Step: *(\\d{1,12})\\.(?: +Time Elapsed: *(\\d+(?:\\.\\d+)?) s\\.?)?(?: +Mean Reward: *${number}\\. +Std of Reward: *${number}\\.| +No episode was completed)(?:.{0,40}? ELO: *(-?\\d+(?:\\.\\d+)?)\\.)?`,
);

/** DeepSpeed-Chat: losses first, the reward a line further down. */
const deepSpeed = new RegExp(
  `^[ \\t]*Epoch: *(\\d+) *\\| *Step: *(\\d+) *\\| *PPO Epoch: *(\\d+) *\\| *Actor Loss: *${number} *\\| *Critic Loss: *${number} *\\| *Unsupervised Loss: *${number}`,
  'i',
);
const deepSpeedReward = new RegExp(`^[ \\t]*Average reward score: *${number}`, 'i');

const kinds: readonly Kind[] = [
  {
    mark: 'fps step:',
    read: line => {
      const found = rlGames.exec(line);
      return found === null ? undefined : { cells: named(found, rlGamesNames) };
    },
  },
  {
    mark: 'best rewards:',
    read: line => {
      const found = best.exec(line);
      return found === null ? undefined : { cells: named(found, ['rewards/best']), more: true };
    },
  },
  {
    mark: ' Step: ',
    read: line => {
      const found = agents.exec(line.slice(0, 1000));
      if (found === null) return undefined;
      const [, who, step, time, mean, std, elo] = found;
      const cells: Cells = [['step', step]];
      if (time !== undefined) cells.push(['Time Elapsed', time]);
      if (mean !== undefined) cells.push(['Environment/Cumulative Reward', mean], ['Std of Reward', std]);
      if (elo !== undefined) cells.push(['Self-play/ELO', elo]);
      return { cells, who };
    },
  },
  {
    mark: 'Actor Loss:',
    read: line => {
      const found = deepSpeed.exec(line);
      return found === null
        ? undefined
        : { cells: named(found, ['epoch', 'Step', '', 'Actor Loss', 'Critic Loss', 'Unsupervised Loss']) };
    },
  },
  {
    mark: 'Average reward score:',
    read: line => {
      const found = deepSpeedReward.exec(line);
      return found === null ? undefined : { cells: named(found, ['Average reward score']), more: true };
    },
  },
];

export function printedRecord(line: string): PrintedRecord | undefined {
  if (line.length > 2000) return undefined;
  for (const { mark, read } of kinds) {
    const record = line.includes(mark) ? read(line) : undefined;
    if (record !== undefined) return record;
  }
  return undefined;
}

/** `Hyperparameters for behavior name Brain:`: settings below it are of that one. */
export const settingsOf = (line: string): string | undefined =>
  line.includes('yperparameters for ')
    ? /yperparameters for (?:behaviou?r name|the \w+ of brain) ([^\s:]{1,100}) *: *$/i.exec(line)?.[1]
    : undefined;
