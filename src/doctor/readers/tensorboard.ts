/**
 * TensorBoard event files. Those of one directory are one run, in the order of their first events. Every checksum is
 * verified. A tag's steps are its own axis: rl_games counts frames in one tag and epochs in the next.
 */
import { type Ending, type Reading, readChunks } from './bytes.ts';
import { addSettings, isObject, parseJson } from './json.ts';
import { addTable, parseTable } from './markdown-table.ts';
import { ProtoCursor } from './protobuf.ts';
import { replaceRepeated } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';
import { type Tag, TagTable } from './tag-table.ts';
import { readHparams, type TensorValue, tensorValue } from './tensor-value.ts';
import { RecordSplitter } from './tf-records.ts';

/** Event files that belong together, with what is put before or instead of their tags' names. */
export interface EventFiles {
  readonly files: readonly string[];
  /** For the directories that `add_scalars` makes: all their values belong to this name. */
  readonly rename?: string;
}

/** Two files that were written at the same time are two writers, not a restart. */
const overlapS = 60;

/** What an event file is about, as its first records tell. */
export interface EventFileHead {
  readonly firstWallTime: number;
  readonly firstTag: string | undefined;
  /** How many tags the head has. */
  readonly tags: number;
  /** Where its tags begin, of the first few. */
  readonly firstPoints: ReadonlyMap<string, FirstPoint>;
}

export interface FirstPoint {
  readonly step: number;
  readonly value: number;
}

const mostFirstPoints = 64;

/** Reads the first records of an event file's head. @internal */
export function eventFileHead(head: Buffer): EventFileHead {
  let firstWallTime = Number.NaN;
  const tags = new TagTable();
  let firstTag: string | undefined;
  const firstPoints = new Map<string, FirstPoint>();
  const [event, summary, value] = [new ProtoCursor(), new ProtoCursor(), new ProtoCursor()];
  new RecordSplitter((bytes, start, end) => {
    event.open(bytes, start, end);
    let step = 0;
    while (event.next()) {
      if (event.field === 1 && event.wire === 1 && Number.isNaN(firstWallTime))
        firstWallTime = event.double();
      if (event.field === 2 && event.wire === 0) step = event.int();
      if (event.field !== 5 || event.wire !== 2) continue;
      summary.open(bytes, event.start, event.end);
      while (summary.next()) {
        if (summary.field !== 1 || summary.wire !== 2) continue;
        value.open(bytes, summary.start, summary.end);
        // A tag that was met before costs no more than looking it up.
        let fresh: Tag | undefined;
        let number = Number.NaN;
        while (value.next()) {
          if (value.field === 2 && value.wire === 5) {
            if (fresh !== undefined) number = value.float();
          } else if (value.field === 1 && value.wire === 2) {
            const found = tags.find(bytes, value.start, value.end);
            firstTag ??= found.name;
            if (found.file === 0) fresh = found;
            found.file = 1;
          }
        }
        if (fresh !== undefined && !Number.isNaN(number) && firstPoints.size < mostFirstPoints)
          firstPoints.set(fresh.name, { step, value: number });
      }
    }
  }).push(head);
  return { firstWallTime, firstTag, tags: [...tags].length, firstPoints };
}

/** Reads groups of event files into a run. `groups[0]` is the run's own directory. */
export async function readEventFiles(
  groups: readonly EventFiles[],
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  for (const group of groups) await readGroup(group, run, reading);
  replaceRepeated(run);
}

async function readGroup(group: EventFiles, run: RunBuilder, reading: Reading): Promise<void> {
  const state = new EventState(run, group.rename);
  for (const file of group.files) {
    state.beginFile();
    const ending: Ending = { cut: false };
    const splitter = new RecordSplitter((bytes, start, end) => state.event(bytes, start, end));
    for await (const chunk of readChunks(file, reading, ending)) splitter.push(chunk);
    const half = splitter.end();
    // Only the newest file can still be written; an older one that ends early is one that was killed.
    if ((half || ending.cut) && file === group.files.at(-1)) run.unfinished = true;
    else if (half) run.note(`${file} ends in half a record, as a killed writer leaves it`);
    if (ending.problem !== undefined) run.note(`${file}: ${ending.problem}: what came before it is read`);
    if (splitter.wrongData > 0) {
      run.damage(`${file}: ${splitter.wrongData} records do not match their checksum and are left out`);
    }
    if (splitter.lostPlaces > 0) {
      run.damage(
        `${file}: damaged in ${splitter.lostPlaces} places; ${splitter.lostBytes} bytes were passed over to find the next record`,
      );
    }
    if (state.damaged > 0) run.damage(`${file}: ${state.damaged} records are damaged inside`);
  }
  state.end();
}

class EventState {
  readonly #run: RunBuilder;
  readonly #rename: string | undefined;
  readonly #tags: TagTable;
  readonly #event = new ProtoCursor();
  readonly #summary = new ProtoCursor();
  readonly #value = new ProtoCursor();
  readonly #tensor: TensorValue = { number: Number.NaN, kind: 'other', text: '' };
  #viewed: Buffer | undefined;
  #view = new DataView(new ArrayBuffer(0)) as DataView;
  #file = 0;
  #overlaps = false;
  #firstOfFile = true;
  #lastWallTime = Number.NEGATIVE_INFINITY;
  #restartPending = false;
  #points = 0;
  #overlapping = new Set<string>();
  #purged = 0;
  damaged = 0;

  constructor(run: RunBuilder, rename: string | undefined) {
    this.#run = run;
    this.#rename = rename;
    this.#tags = new TagTable();
  }

  beginFile(): void {
    this.#file++;
    this.#firstOfFile = true;
    this.damaged = 0;
    if (this.#points > 0) this.#restartPending = true;
  }

  end(): void {
    const run = this.#run;
    if (this.#overlapping.size > 0) {
      const some = [...this.#overlapping].slice(0, 3).join(', ');
      run.note(
        `several event files were written at the same time: of ${some}${this.#overlapping.size > 3 ? ' and others' : ''} only the first file's values count`,
      );
    }
    if (this.#purged > 0)
      run.note(`a session began anew: ${this.#purged} values of later steps before it are dropped`);
  }

  event(bytes: Buffer, start: number, end: number): void {
    if (!this.#firstOfFile && this.#plainScalar(bytes, start, end)) return;
    const event = this.#event.open(bytes, start, end);
    let wallTime = Number.NaN;
    let step = 0;
    let hasSummary = false;
    let starts = false;
    while (event.next()) {
      switch (event.field) {
        case 1:
          if (event.wire === 1) wallTime = event.double();
          break;
        case 2:
          if (event.wire === 0) step = event.int();
          break;
        case 5:
          hasSummary = true;
          break;
        case 7:
          if (event.wire === 2) starts ||= this.#isStart(bytes, event.start, event.end);
          break;
      }
    }
    if (event.damaged) this.damaged++;
    if (this.#firstOfFile) {
      this.#firstOfFile = false;
      this.#overlaps = this.#file > 1 && wallTime < this.#lastWallTime - overlapS;
      if (this.#overlaps) this.#restartPending = false;
    }
    if (wallTime > this.#lastWallTime) this.#lastWallTime = wallTime;
    if (starts) this.#purge(step);
    if (!hasSummary) return;
    event.open(bytes, start, end);
    while (event.next()) {
      if (event.field === 5 && event.wire === 2)
        this.#readSummary(bytes, event.start, event.end, step, wallTime);
    }
  }

  /**
   * The event that nearly every record is: time, step, a summary of one value, which is a tag and a float; each length
   * in one byte. Told and read without the general way through its fields, which takes twice as long. Returns false,
   * having done nothing, for any other.
   */
  #plainScalar(bytes: Buffer, start: number, end: number): boolean {
    if (end - start < 22 || end - start > 140 || bytes[start] !== 0x09) return false;
    let at = start + 9;
    let step = 0;
    if (bytes[at] === 0x10) {
      at++;
      let scale = 1;
      for (;;) {
        const byte = bytes[at++];
        step += (byte & 0x7f) * scale;
        if (byte < 0x80) break;
        scale *= 128;
        // More than 2^49 steps, or fewer than none.
        if (scale > 2 ** 42) return false;
      }
    }
    const tag = at + 6;
    if (tag >= end || bytes[at] !== 0x2a || bytes[at + 2] !== 0x0a || bytes[at + 4] !== 0x0a) return false;
    const tagEnd = tag + bytes[at + 5];
    if (bytes[at + 1] !== end - at - 2 || bytes[at + 3] !== end - at - 4) return false;
    if (bytes[at + 1] > 0x7f || tagEnd === tag || tagEnd + 5 !== end || bytes[tagEnd] !== 0x15) return false;
    if (this.#viewed !== bytes) {
      this.#viewed = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    const wallTime = this.#view.getFloat64(start + 1, true);
    if (wallTime > this.#lastWallTime) this.#lastWallTime = wallTime;
    this.#add(this.#tags.find(bytes, tag, tagEnd), step, this.#view.getFloat32(tagEnd + 1, true), wallTime);
    return true;
  }

  #isStart(bytes: Buffer, start: number, end: number): boolean {
    const log = this.#summary.open(bytes, start, end);
    while (log.next()) if (log.field === 1 && log.wire === 0 && log.low === 1) return true;
    return false;
  }

  /** A session that starts at a step takes back what later steps an earlier one had: as TensorBoard itself does. */
  #purge(step: number): void {
    if (this.#points === 0) return;
    for (const tag of this.#tags) this.#purged += tag.series?.remove(step) ?? 0;
    this.#restartPending = true;
  }

  #readSummary(bytes: Buffer, start: number, end: number, step: number, wallTime: number): void {
    const summary = this.#summary.open(bytes, start, end);
    while (summary.next()) {
      if (summary.field === 1 && summary.wire === 2) {
        this.#readValue(bytes, summary.start, summary.end, step, wallTime);
      }
    }
    if (summary.damaged) this.damaged++;
  }

  #readValue(bytes: Buffer, start: number, end: number, step: number, wallTime: number): void {
    const value = this.#value.open(bytes, start, end);
    let [tagStart, tagEnd] = [0, 0];
    let [tensorStart, tensorEnd] = [-1, 0];
    let [metaStart, metaEnd] = [-1, 0];
    let number = Number.NaN;
    let isNumber = false;
    while (value.next()) {
      switch (value.field) {
        case 1:
          if (value.wire !== 2) break;
          tagStart = value.start;
          tagEnd = value.end;
          break;
        case 2:
          if (value.wire !== 5) break;
          number = value.float();
          isNumber = true;
          break;
        case 8:
          if (value.wire !== 2) break;
          tensorStart = value.start;
          tensorEnd = value.end;
          break;
        case 9:
          if (value.wire !== 2) break;
          metaStart = value.start;
          metaEnd = value.end;
          break;
      }
    }
    if (value.damaged) this.damaged++;
    if (tagEnd === tagStart) return;
    const tag = this.#tags.find(bytes, tagStart, tagEnd);
    if (metaStart >= 0 && !tag.hasPlugin) this.#readMetadata(tag, bytes, metaStart, metaEnd);
    if (isNumber) {
      this.#add(tag, step, number, wallTime);
    } else if (tensorStart >= 0) {
      if (tag.plugin !== '' && tag.plugin !== 'scalars' && tag.plugin !== 'text') return;
      if (tag.plugin === 'text' && tag.texts > 0) return;
      tensorValue(bytes, tensorStart, tensorEnd, this.#tensor);
      if (this.#tensor.kind === 'number') this.#add(tag, step, this.#tensor.number, wallTime);
      else if (this.#tensor.kind === 'text' && tag.texts++ === 0) this.#readText(tag.name, this.#tensor.text);
    }
  }

  #add(tag: Tag, step: number, number: number, wallTime: number): void {
    if (tag.series === undefined) {
      if (tag.dropped) return;
      tag.series = this.#run.of(this.#rename ?? tag.name);
      if (tag.series === undefined) {
        tag.dropped = true;
        return;
      }
    }
    if (tag.file !== this.#file) {
      // The first value of this tag in this file.
      tag.file = this.#file;
      tag.blocked = this.#overlaps && step < tag.series.lastX;
      if (tag.blocked) this.#overlapping.add(tag.name);
    }
    if (tag.blocked) return;
    if (this.#restartPending) {
      this.#restartPending = false;
      this.#run.restarts.add(step);
    }
    tag.series.append(step, number, wallTime);
    this.#points++;
    this.#run.counted(1);
  }

  #readMetadata(tag: Tag, bytes: Buffer, start: number, end: number): void {
    const metadata = this.#value.open(bytes, start, end);
    const plugin = new ProtoCursor();
    tag.hasPlugin = true;
    while (metadata.next()) {
      if (metadata.field !== 1 || metadata.wire !== 2) continue;
      plugin.open(bytes, metadata.start, metadata.end);
      while (plugin.next()) {
        if (plugin.wire !== 2) continue;
        if (plugin.field === 1) tag.plugin = plugin.text().slice(0, 64);
        else if (plugin.field === 2 && tag.name === '_hparams_/session_start_info') {
          readHparams(bytes, plugin.start, plugin.end, (name, setting) => this.#run.setting(name, setting));
        }
      }
    }
  }

  /** Settings are logged as a table in Markdown (CleanRL) or as JSON (`args` of Hugging Face). */
  #readText(name: string, text: string): void {
    const plain = name.replace(/\/text_summary$/, '');
    const table = parseTable(text);
    const object = table === undefined && text.startsWith('{') ? parseJson(text) : undefined;
    if (table !== undefined) addTable(this.#run, table);
    else if (isObject(object))
      addSettings(this.#run, object, /^(?:args|config|hyperparameters)$/.test(plain) ? '' : plain);
    else this.#run.text(plain, text);
  }
}
