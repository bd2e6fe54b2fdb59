/**
 * One episode as a file: what a robot looks like, and for every frame where its bodies were, its joints, what it did and
 * what that was worth; or, of what has no bodies, what each frame looks like: a drawing in two dimensions, or a picture that
 * the environment gave. Runs in a browser: nothing here may import a Node module.
 *
 * ```
 * 8 bytes   KEELRPLY
 * uint32    version: 1, 2 with drawings, or 3 with pictures
 * uint32    bytes of the header
 * header    JSON (UTF-8), padded with spaces to a multiple of 4
 * float32   positions    (frames, bodies, 3)
 * float32   joints       (frames, joints)
 * float32   actions      (frames, actionSize)
 * float32   rewards      (frames)
 * float32   rewardTerms  (frames, terms)
 * int16     rotations    (frames, bodies, 4), w x y z times 32767
 * JSON      drawings     (version 2) a list with a drawing a frame, in as many bytes as the header says
 * PNG       pictures     (version 3) one file after the other, each as long as the header says
 * ```
 * All little-endian. Frame 0 is the start, before any action: its action and rewards are 0. A file is as long as its header
 * says, to the byte; nothing is allocated before that is checked.
 */

import { fail, RunError, show } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { type Drawing, parseDrawing } from '../view/drawing.ts';
import { checkPng, type Pictures, pictureCount, pictureLimits } from '../view/pictures.ts';
import { emptyScene, parseScene, type Scene } from '../view/scene.ts';

const MAGIC = 'KEELRPLY';
const VERSION = 1;
const VERSION_WITH_DRAWINGS = 2;
const VERSION_WITH_PICTURES = 3;
const PREFIX = 16;
/** Of a turn's parts, in -1..1. */
const TURN = 32_767;

/** What a file may be at most: frames of one episode, and bytes of header and of all. */
export const replayLimits = {
  frames: 20_000,
  headerBytes: 2 ** 20,
  bytes: 64 * 2 ** 20,
  drawingBytes: 16 * 2 ** 20,
  width: 1024,
} as const;

/** What a recording is of. */
export interface ReplayHeader {
  /** Environment steps that the policy had been trained for. */
  readonly step: number;
  readonly iteration: number;
  /** `Arachne-v0`. */
  readonly environment: string;
  /** Of the episode's start. */
  readonly seed: number;
  /** Milliseconds since 1970. */
  readonly recordedAt: number;
  /** Seconds between two frames. */
  readonly frameSeconds: number;
  readonly frames: number;
  readonly actionSize: number;
  /** Names of the reward's parts. */
  readonly terms: readonly string[];
  /** The sum of all rewards. */
  readonly episodeReturn: number;
  /** How it ended: the task's own end, its time limit, or the recorder's, with the episode still going. */
  readonly end: 'terminated' | 'truncated' | 'cut';
}

/** A recorded episode. */
export interface Replay extends ReplayHeader {
  readonly scene: Scene;
  readonly positions: Float32Array; // (frames, bodies, 3)
  readonly joints: Float32Array; // (frames, joints)
  readonly actions: Float32Array; // (frames, actionSize)
  readonly rewards: Float32Array; // (frames)
  readonly rewardTerms: Float32Array; // (frames, terms)
  readonly rotations: Int16Array; // (frames, bodies, 4)
  /** Of what is drawn in two dimensions, whose scene is empty: one a frame. */
  readonly drawings?: readonly Drawing[] | undefined;
  /** Of what draws itself, whose scene is empty. */
  readonly pictures?: Pictures | undefined;
}

/** Where each part lies behind the header. */
function partsOf({ frames, actionSize, terms }: ReplayHeader, { bodies, joints }: Scene) {
  const widths = {
    positions: 3 * bodies.length,
    joints: joints.length,
    actions: actionSize,
    rewards: 1,
    rewardTerms: terms.length,
  };
  const floats = Object.values(widths).reduce((sum, width) => sum + width, 0) * frames;
  return { widths, bytes: 4 * floats + 2 * frames * 4 * bodies.length };
}

/** A turn's part as it is kept. */
export const packTurn = (part: number): number => Math.round(Math.min(1, Math.max(-1, part)) * TURN);

/** What a header says of pictures: how long each is. */
type PicturesHeader = Omit<Pictures, 'files'> & { readonly bytes: readonly number[] };
/** What a header says of how the episode is shown. */
type Shown =
  | { readonly scene: Scene }
  | { readonly drawingBytes: number }
  | { readonly pictures: PicturesHeader };

/** The file of a replay. */
export function encodeReplay(replay: Replay): Uint8Array {
  const {
    scene,
    positions,
    joints,
    actions,
    rewards,
    rewardTerms,
    rotations,
    drawings,
    pictures,
    ...header
  } = replay;
  const drawn = new TextEncoder().encode(drawings === undefined ? '' : JSON.stringify(drawings));
  const files = pictures?.files ?? [];
  let [version, shown]: [number, Shown] = [VERSION, { scene }];
  if (drawings !== undefined) [version, shown] = [VERSION_WITH_DRAWINGS, { drawingBytes: drawn.length }];
  if (pictures !== undefined) {
    const { width, height, every } = pictures;
    const bytes = files.map(({ length }) => length);
    [version, shown] = [VERSION_WITH_PICTURES, { pictures: { width, height, every, bytes } }];
  }
  const text = new TextEncoder().encode(JSON.stringify({ kind: 'keel-replay', ...header, ...shown }));
  const headerBytes = Math.ceil(text.length / 4) * 4;
  const ends = [drawn, ...files];
  const endBytes = ends.reduce((sum, { length }) => sum + length, 0);
  const { bytes } = partsOf(header, scene);
  const file = new Uint8Array(PREFIX + headerBytes + bytes + endBytes);
  file.fill(0x20, PREFIX, PREFIX + headerBytes);
  file.set(text, PREFIX);
  file.set(new TextEncoder().encode(MAGIC));
  const view = new DataView(file.buffer);
  view.setUint32(8, version, true);
  view.setUint32(12, headerBytes, true);
  let at = PREFIX + headerBytes;
  for (const part of [positions, joints, actions, rewards, rewardTerms, rotations]) {
    file.set(littleEndian(part), at);
    at += part.byteLength;
  }
  for (const part of ends) {
    file.set(part, at);
    at += part.length;
  }
  decodeReplay(file, 'the replay'); // what cannot be read is not written
  return file;
}

/** A checked replay from the bytes of its file; `source` names it in errors. */
export function decodeReplay(bytes: Uint8Array, source = 'replay'): Replay {
  const { header, scene, headerEnd, drawingBytes, pictures } = readHeader(bytes, bytes.length, source);
  const { widths } = partsOf(header, scene);
  const drawingsAt = bytes.length - drawingBytes - pictureBytes(pictures);
  let at = headerEnd;
  const floats = (name: keyof typeof widths): Float32Array => {
    const length = widths[name] * header.frames;
    const part = new Float32Array(aligned(bytes, at, 4 * length));
    at += 4 * length;
    for (let i = 0; i < length; i++)
      if (!Number.isFinite(part[i]))
        damaged(source, `${name} has ${part[i]} in frame ${Math.floor(i / widths[name])}`);
    return part;
  };
  return {
    ...header,
    scene,
    positions: floats('positions'),
    joints: floats('joints'),
    actions: floats('actions'),
    rewards: floats('rewards'),
    rewardTerms: floats('rewardTerms'),
    rotations: new Int16Array(aligned(bytes, at, drawingsAt - at)),
    ...(drawingBytes > 0 && { drawings: drawingsOf(bytes.subarray(drawingsAt), header.frames, source) }),
    ...(pictures && { pictures: picturesOf(bytes.subarray(drawingsAt), pictures, source) }),
  };
}

const pictureBytes = (pictures: PicturesHeader | undefined): number =>
  pictures?.bytes.reduce((sum, length) => sum + length, 0) ?? 0;

function picturesOf(bytes: Uint8Array, { bytes: sizes, ...all }: PicturesHeader, source: string): Pictures {
  let at = 0;
  const files = sizes.map((length, i) => {
    const file = bytes.slice(at, at + length);
    at += length;
    checkPng(file, all.width, all.height, `picture ${i} of ${source}`);
    return file;
  });
  return { ...all, files };
}

function drawingsOf(bytes: Uint8Array, frames: number, source: string): Drawing[] {
  let value: unknown;
  try {
    value = jsonOf(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new RunError(`${source} is damaged: its drawings cannot be read; record it again`, {
      code: 'invalid',
      cause,
    });
  }
  if (!Array.isArray(value) || value.length !== frames)
    damaged(source, `it has ${Array.isArray(value) ? value.length : 'no'} drawings for ${frames} frames`);
  return value.map((drawing, frame) => parseDrawing(drawing, `drawing ${frame} of ${source}`));
}

/** How much of a file {@link replayHeader} needs to begin with. */
export const replayPrefixBytes = PREFIX;

/** How long the header is, from a file's first {@link replayPrefixBytes}. */
export function replayHeaderBytes(prefix: Uint8Array, source = 'replay'): number {
  if (prefix.length < PREFIX)
    damaged(source, `it has ${prefix.length} bytes, less than a replay begins with`);
  const magic = new TextDecoder('latin1').decode(prefix.subarray(0, 8));
  if (magic !== MAGIC) damaged(source, `it begins with ${show(magic)}, not ${MAGIC}: it is no replay`);
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.length);
  const version = view.getUint32(8, true);
  if (version < VERSION || version > VERSION_WITH_PICTURES)
    fail(
      `${source} has version ${version}, this Keel reads up to ${VERSION_WITH_PICTURES}: update Keel, or record it again`,
      'newer-schema',
    );
  const headerBytes = view.getUint32(12, true);
  if (headerBytes > replayLimits.headerBytes || headerBytes % 4 !== 0)
    damaged(
      source,
      `its header has ${headerBytes} bytes, at most ${replayLimits.headerBytes} and a multiple of 4`,
    );
  return headerBytes;
}

/** The header alone, from the beginning of a file that has `size` bytes in all. */
export function replayHeader(
  start: Uint8Array,
  size: number,
  source = 'replay',
): ReplayHeader & { readonly drawn: boolean } {
  const { header, drawingBytes, pictures } = readHeader(start, size, source);
  return { ...header, drawn: drawingBytes > 0 || pictures !== undefined };
}

function readHeader(
  bytes: Uint8Array,
  size: number,
  source: string,
): {
  header: ReplayHeader;
  scene: Scene;
  headerEnd: number;
  drawingBytes: number;
  pictures: PicturesHeader | undefined;
} {
  if (size > replayLimits.bytes) damaged(source, `it has ${size} bytes, at most ${replayLimits.bytes}`);
  const headerEnd = PREFIX + replayHeaderBytes(bytes, source);
  if (headerEnd > bytes.length)
    damaged(source, `its header ends at ${headerEnd}, the file at ${bytes.length}`);
  let value: unknown;
  try {
    value = jsonOf(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(PREFIX, headerEnd)));
  } catch (cause) {
    throw new RunError(`${source} is damaged: its header cannot be read; record it again`, {
      code: 'invalid',
      cause,
    });
  }
  if (typeof value !== 'object' || value === null || (value as { kind?: unknown }).kind !== 'keel-replay')
    damaged(source, 'its header is not that of a replay');
  const fields = value as Readonly<Record<string, unknown>>;
  const header = headerOf(fields, source);
  const { drawingBytes = 0 } = fields;
  if (
    typeof drawingBytes !== 'number' ||
    !Number.isSafeInteger(drawingBytes) ||
    drawingBytes < 0 ||
    drawingBytes > replayLimits.drawingBytes
  )
    damaged(source, `drawingBytes is ${show(drawingBytes)}, not in 0..${replayLimits.drawingBytes}`);
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
  if (drawingBytes > 0 !== (version === VERSION_WITH_DRAWINGS))
    damaged(source, `drawingBytes is ${drawingBytes} in version ${version}`);
  const pictures =
    version === VERSION_WITH_PICTURES ? picturesHeader(fields.pictures, header.frames, source) : undefined;
  const hasScene = drawingBytes === 0 && pictures === undefined;
  const scene = hasScene ? parseScene(fields.scene, `the scene of ${source}`) : emptyScene;
  const expected = headerEnd + partsOf(header, scene).bytes + drawingBytes + pictureBytes(pictures);
  if (expected !== size)
    damaged(source, `it has ${size} bytes, its header speaks of ${expected}: it was cut off or changed`);
  return { header, scene, headerEnd, drawingBytes, pictures };
}

function picturesHeader(value: unknown, frames: number, source: string): PicturesHeader {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const { side } = pictureLimits;
  const width = wholeIn(fields, 'width', side, 1, source);
  const height = wholeIn(fields, 'height', side, 1, source);
  const every = wholeIn(fields, 'every', replayLimits.frames, 1, source);
  const { bytes } = fields;
  const count = pictureCount(frames, every);
  if (!Array.isArray(bytes) || bytes.length !== count)
    return damaged(
      source,
      `it has ${Array.isArray(bytes) ? bytes.length : 'no'} pictures, ${count} are right`,
    );
  const header = { width, height, every, bytes: bytes as number[] };
  const isRight = bytes.every(length => Number.isSafeInteger(length) && length > 0);
  if (!isRight || pictureBytes(header) > pictureLimits.bytes)
    damaged(source, `its pictures have no lengths that sum to at most ${pictureLimits.bytes} bytes`);
  return header;
}

function headerOf(fields: Readonly<Record<string, unknown>>, source: string): ReplayHeader {
  const count = (name: string, most: number, least = 0): number => wholeIn(fields, name, most, least, source);
  const { environment, frameSeconds, episodeReturn, end, terms } = fields;
  if (typeof environment !== 'string' || environment.length > 200)
    damaged(source, `environment is ${show(environment)}, not a name`);
  if (typeof frameSeconds !== 'number' || !(frameSeconds >= 1e-5 && frameSeconds <= 10))
    damaged(source, `frameSeconds is ${show(frameSeconds)}, not in .00001..10`);
  if (typeof episodeReturn !== 'number' || !Number.isFinite(episodeReturn))
    damaged(source, `episodeReturn is ${show(episodeReturn)}, not a number`);
  if (end !== 'terminated' && end !== 'truncated' && end !== 'cut')
    damaged(source, `end is ${show(end)}: it can be terminated, truncated or cut`);
  if (
    !Array.isArray(terms) ||
    terms.length > 64 ||
    terms.some(name => typeof name !== 'string' || name.length > 100)
  )
    damaged(source, `terms is ${show(terms)}, not at most 64 names`);
  return {
    step: count('step', Number.MAX_SAFE_INTEGER),
    iteration: count('iteration', Number.MAX_SAFE_INTEGER),
    environment,
    seed: count('seed', Number.MAX_SAFE_INTEGER),
    recordedAt: count('recordedAt', 8.64e15),
    frameSeconds,
    frames: count('frames', replayLimits.frames, 1),
    actionSize: count('actionSize', replayLimits.width),
    terms: terms as string[],
    episodeReturn,
    end,
  };
}

function wholeIn(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  most: number,
  least: number,
  source: string,
): number {
  const value = fields[name];
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number;
  return damaged(source, `${name} is ${show(value)}, not a whole number in ${least}..${most}`);
}

function damaged(source: string, what: string): never {
  return fail(`${source} is damaged: ${what}; record it again`, 'invalid');
}

/** A copy, because what comes from a file need not lie where numbers may. */
function aligned(bytes: Uint8Array, at: number, length: number): ArrayBuffer {
  // Not `slice`, which of Node's Buffer is no copy.
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(at, at + length));
  return copy.buffer;
}

/** The bytes of an array. Every machine that runs Node or a browser today is little-endian. */
function littleEndian(array: Float32Array | Int16Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
