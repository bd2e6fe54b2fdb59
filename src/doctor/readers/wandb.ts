/**
 * W&B's own log, `run-<id>.wandb`. Field numbers are those of wandb/proto/wandb_internal.proto: Record {2 history {1 item
 * {1 key, 2 nested_key, 16 value_json}, 2 step {1 num}}, 5 config {1 update: items as above}, 17 run {1 run_id, 3 project,
 * 4 config, 6 display_name}, 18 exit {1 exit_code}}.
 */
import { type Ending, type Reading, readChunks } from './bytes.ts';
import { asSetting, forEachLeaf, isObject, parseJson } from './json.ts';
import { LogSplitter } from './leveldb-log.ts';
import { jsonCell, readNumber } from './numbers.ts';
import { ProtoCursor } from './protobuf.ts';
import { replaceRepeated } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';

const headerBytes = 7;
const mostNested = 16;
/** Bookkeeping of W&B in its config. */
const ownConfig = /^_wandb(?:\/|$)/;

export async function readWandb(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const state = new WandbState(run);
  const ending: Ending = { cut: false };
  const splitter = new LogSplitter(headerBytes, bytes => state.record(bytes));
  for await (const chunk of readChunks(path, reading, ending)) splitter.push(chunk);
  if (splitter.end() || ending.cut) run.unfinished = true;
  if (ending.problem !== undefined) run.note(`${path}: ${ending.problem}: what came before it is read`);
  if (splitter.damaged > 0) run.damage(`${path}: ${splitter.damaged} damaged pieces are left out`);
  if (splitter.tooLarge > 0)
    run.note(`${path}: ${splitter.tooLarge} records are too large to be rows and are left out`);
  if (state.damaged > 0) run.damage(`${path}: ${state.damaged} records are damaged inside`);
  replaceRepeated(run);
}

class WandbState {
  readonly #run: RunBuilder;
  readonly #record = new ProtoCursor();
  readonly #body = new ProtoCursor();
  readonly #inner = new ProtoCursor();
  readonly #item = new ProtoCursor();
  #names: string[] = [];
  #values: number[] = [];
  #row = 0;
  damaged = 0;

  constructor(run: RunBuilder) {
    this.#run = run;
  }

  record(bytes: Buffer): void {
    const record = this.#record.open(bytes, 0, bytes.length);
    while (record.next()) {
      if (record.wire !== 2) continue;
      switch (record.field) {
        case 2:
          this.#history(bytes, record.start, record.end);
          break;
        case 5:
          this.#config(bytes, record.start, record.end);
          break;
        case 17:
          this.#runRecord(bytes, record.start, record.end);
          break;
        case 18:
          this.#exit(bytes, record.start, record.end);
          break;
      }
    }
    if (record.damaged) this.damaged++;
  }

  #history(bytes: Buffer, start: number, end: number): void {
    let step = Number.NaN;
    let wallTime = Number.NaN;
    const add = (name: string, value: number): void => {
      if (name === '_step' && Number.isNaN(step) && Number.isFinite(value)) step = value;
      if (name === '_timestamp') wallTime = value;
      this.#names.push(name);
      this.#values.push(value);
    };
    const history = this.#body.open(bytes, start, end);
    while (history.next()) {
      if (history.wire !== 2) continue;
      if (history.field === 1) {
        this.#readItem(bytes, history.start, history.end, (name, json) => {
          const cell = readNumber(json);
          if (typeof cell === 'number') {
            add(name, cell);
            return;
          }
          const value = parseJson(json);
          const inside = jsonCell(value);
          if (typeof inside === 'number') add(name, inside);
          else if (isObject(value) && value._type === undefined) {
            forEachLeaf(
              value,
              (leaf, held) => {
                const number = jsonCell(held);
                if (typeof number === 'number') add(leaf, number);
              },
              name,
            );
          }
        });
      } else if (history.field === 2) {
        const number = this.#inner.open(bytes, history.start, history.end);
        step = 0;
        while (number.next()) if (number.field === 1 && number.wire === 0) step = number.int();
      }
    }
    if (history.damaged) this.damaged++;
    const x = Number.isNaN(step) ? this.#row : step;
    this.#row = x + 1;
    for (let i = 0; i < this.#names.length; i++)
      this.#run.number(this.#names[i], x, this.#values[i], wallTime);
    this.#names = [];
    this.#values = [];
  }

  #config(bytes: Buffer, start: number, end: number): void {
    const config = this.#body.open(bytes, start, end);
    while (config.next()) {
      if (config.field !== 1 || config.wire !== 2) continue;
      this.#readItem(bytes, config.start, config.end, (name, json) => {
        if (ownConfig.test(name)) return;
        const value = parseJson(json);
        if (isObject(value)) {
          forEachLeaf(value, (leaf, held) => this.#run.setting(leaf, asSetting(held)), name);
        } else if (value !== undefined) this.#run.setting(name, asSetting(value));
      });
    }
  }

  #runRecord(bytes: Buffer, start: number, end: number): void {
    const record = new ProtoCursor().open(bytes, start, end);
    while (record.next()) {
      if (record.wire !== 2) continue;
      if (record.field === 1) this.#run.text('run_id', record.text());
      else if (record.field === 3) this.#run.text('project', record.text());
      else if (record.field === 6) this.#run.text('display_name', record.text());
      else if (record.field === 4) this.#config(bytes, record.start, record.end);
    }
  }

  #exit(bytes: Buffer, start: number, end: number): void {
    let code = 0;
    const exit = this.#body.open(bytes, start, end);
    while (exit.next()) if (exit.field === 1 && exit.wire === 0) code = exit.int();
    this.#run.text('exit_code', String(code));
  }

  #readItem(bytes: Buffer, start: number, end: number, use: (name: string, json: string) => void): void {
    let key = '';
    let json: string | undefined;
    const nested: string[] = [];
    const item = this.#item.open(bytes, start, end);
    while (item.next()) {
      if (item.wire !== 2) continue;
      if (item.field === 1) key = item.text();
      else if (item.field === 2 && nested.length < mostNested) nested.push(item.text());
      else if (item.field === 16) json = item.text();
    }
    const name = key === '' ? nested.join('/') : key;
    if (name !== '' && json !== undefined) use(name, json);
  }
}
