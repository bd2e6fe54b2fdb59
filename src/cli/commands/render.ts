import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { grouped, number } from '../../base/numbers.ts';
import type { Replay } from '../../runs/replay-format.ts';
import { listReplays, loadReplay, replayPath } from '../../runs/replays.ts';
import { film, filmKindOf } from '../../view/film.ts';
import { secondsOf } from '../../view/motion.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type PolicyFlags, policyOptions } from '../options.ts';
import { recordCheckpoint, runMeant } from '../policies.ts';
import { statusLine } from '../status-line.ts';

interface RenderFlags extends PolicyFlags {
  readonly out?: string;
  readonly size?: readonly [width: number, height: number];
  readonly fps: number;
  readonly speed: number;
  readonly at?: number;
  readonly dark?: boolean;
}

const usualSize = [480, 320] as const;
const mostPixels = 4096 * 4096;

function sizeOf(text: string): [number, number] {
  const match = /^(\d{1,4})x(\d{1,4})$/i.exec(text);
  const [width, height] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  if (width < 16 || height < 16 || width * height > mostPixels)
    throw new InvalidArgumentError(`${text} is not a size: use 320x240, from 16x16 to 4096x4096.`);
  return [width, height];
}

const within =
  (low: number, high: number) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && value >= low && value <= high) return value;
    throw new InvalidArgumentError(`${text} is not a number in ${low}..${high}.`);
  };

export function define(command: Command): void {
  command
    .argument('<run>', 'a run (its id, directory or last), an environment (its newest run) or a .replay file')
    .option(
      '-o, --out <file>',
      'name.gif, name.png, name.mp4 (with ffmpeg) or directory/ (default: <run>.gif)',
    )
    .addOption(new Option('--size <WxH>', 'in pixels (default: 480x320)').argParser(sizeOf))
    .option('--fps <n>', 'pictures a second', within(1, 60), 25)
    .option('--speed <x>', 'faster or slower than life', within(0.05, 20), 1)
    .option('--at <seconds>', 'which moment, for a .png (default: the middle)', within(0, 1e6))
    .option('--dark', 'on a dark ground');
  policyOptions(command);
}

export const help = `Without --checkpoint it is the newest replay of the run; a run that has none, or
a --checkpoint that has none, is recorded first.`;

export const examples: Examples = [
  ['render last', '<run>.gif, here'],
  ['render last --checkpoint best -o walk.mp4 --size 1280x720 --fps 50'],
  ['render last -o frames/', 'every picture as a .png'],
  ['render runs/arachne-k3f9/replays/4096.replay -o start.png --at 0'],
];

export async function run(context: Context, reference: string, flags: RenderFlags): Promise<void> {
  const { at, fps: framesPerSecond, speed, dark = false } = flags;
  const { path, name } = await replayOf(reference, flags, context);
  const out = flags.out ?? `${name}.gif`;
  const kind = filmKindOf(out);
  if (at !== undefined && kind !== 'picture')
    throw new UsageError('--at is for a single picture: name a .png, or leave it out');
  if (kind !== 'pictures' && !existsSync(dirname(resolve(out))))
    throw new UsageError(`--out ${out}: the directory ${dirname(out)} does not exist: make it first`);
  const replay = loadReplay(path);
  if (at !== undefined && at > secondsOf(replay))
    throw new UsageError(`--at ${at}: the episode has ${number(secondsOf(replay))} s`);
  const [width, height] = sizeIn(replay, flags);
  const startedAt = performance.now();
  const status = statusLine();
  const onProgress = (done: number, total: number): void => status.show(`picture ${done} of ${total}`);
  const how = { width, height, framesPerSecond, speed, dark, atSeconds: at, onProgress };
  const count = await film(replay, out, how).finally(() => status.clear());
  const { step, episodeReturn } = replay;
  const seconds = (performance.now() - startedAt) / 1000;
  const bytes = kind === 'pictures' ? '' : `, ${grouped(Math.round(statSync(out).size / 1000))} kB`;
  context.print(
    `${shownDir(out)}: ${count === 1 ? '1 picture' : `${count} pictures`} of ${width}x${height}${bytes}, step ${grouped(step)}, return ${number(episodeReturn)}, in ${number(seconds)} s`,
  );
}

/** How large its pictures become; what draws itself has a size and a ground of its own. */
function sizeIn({ pictures, environment }: Replay, flags: RenderFlags): readonly [number, number] {
  if (pictures === undefined) return flags.size ?? usualSize;
  for (const flag of ['size', 'dark'] as const)
    if (flags[flag] !== undefined)
      throw new UsageError(`--${flag}: ${environment} draws itself: leave it out`);
  return [pictures.width, pictures.height];
}

/** The file to draw, recorded if it is not there yet, and what to call it. */
async function replayOf(
  reference: string,
  flags: RenderFlags,
  { note }: Context,
): Promise<{ path: string; name: string }> {
  const { checkpoint } = flags;
  if (/\.replay$/i.test(reference)) {
    if (checkpoint !== undefined)
      throw new UsageError('--checkpoint is for a run: a replay is of one already');
    return { path: reference, name: basename(reference).slice(0, -'.replay'.length) };
  }
  const { run, envFile } = await runMeant(reference, flags);
  const all = listReplays(run.dir);
  const found = checkpoint === undefined ? all.at(-1) : all.find(({ step }) => step === checkpoint);
  if (found !== undefined) return { path: replayPath(run.dir, found.name), name: run.id };
  const { names, why } = await recordCheckpoint(run, { ...flags, envFile });
  note(`recorded an episode of ${why}`);
  return { path: replayPath(run.dir, names[0]), name: run.id };
}
