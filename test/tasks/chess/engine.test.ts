/** Engines that behave badly in every way, as shell scripts. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { START_FEN } from '../../../src/tasks/chess/fen.ts';
import { UciEngine, type UciOptions } from '../../../src/tasks/chess/uci.ts';
import { makeTask } from '../../../src/tasks/index.ts';
import { drawPrompts } from '../support/contract.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-uci-'));
afterAll(() => rmSync(dir, { recursive: true }));

const HELLO = `uci) echo "id name Fake 1"; echo "option name Hash"; echo uciok ;; isready) echo readyok ;;`;

/** An engine that answers each line by a shell `case`. */
function fake(name: string, cases: string): string {
  const path = join(dir, name);
  writeFileSync(
    path,
    `#!/bin/sh\nwhile read -r line; do case "$line" in ${cases} quit) exit 0 ;; esac; done\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

const engineOf = (command: string, more: Partial<UciOptions> = {}): UciEngine =>
  new UciEngine({ command, depth: 3, moves: 5, timeoutMs: 20_000, startTimeoutMs: 20_000, ...more });

const GOOD = `go*) echo "info depth 1 multipv 1 score cp 12 pv a2a3"; echo "info depth 3 multipv 1 score cp 34 nodes 9 pv e2e4 e7e5"
  echo "info depth 3 multipv 2 score mate 4 pv d2d4"; echo "info depth 3 multipv 3 score cp -20 lowerbound pv h2h4"
  echo "info depth 3 multipv 9 score cp 1 pv a2a4"; echo "info string multipv"; echo "bestmove e2e4 ponder e7e5" ;;`;

describe('a UCI engine', () => {
  it('is greeted, asked and understood', async () => {
    const engine = engineOf(fake('good', `${HELLO} ${GOOD}`));
    expect(await engine.analyse(START_FEN)).toEqual([
      { move: 'e2e4', pawns: 0.3 },
      { move: 'd2d4', pawns: 999.9 },
    ]);
    expect(engine.name).toBe('Fake 1');
    // Two questions at once take turns.
    const both = await Promise.all([engine.analyse(START_FEN), engine.analyse(START_FEN)]);
    expect(both[0]).toEqual(both[1]);
    await engine.close();
  });

  it('values are White’s, whoever is to move', async () => {
    const reply =
      'go*) echo "info depth 3 multipv 1 score mate -2 pv e7e5"; echo "info depth 3 multipv 2 score cp 50 pv d7d5"; echo "bestmove e7e5" ;;';
    const engine = engineOf(fake('black', `${HELLO} ${reply}`));
    expect(await engine.analyse('rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1')).toEqual([
      { move: 'e7e5', pawns: 999.9 },
      { move: 'd7d5', pawns: -0.5 },
    ]);
    await engine.close();
  });

  it('starts again after it died', async () => {
    const mark = join(dir, 'died');
    const once = `go*) if [ ! -e ${mark} ]; then : > ${mark}; exit 3; fi; echo "info depth 3 score cp 34 pv e2e4"; echo "bestmove e2e4" ;;`;
    const engine = engineOf(fake('once', `${HELLO} ${once}`));
    await expect(engine.analyse(START_FEN)).rejects.toThrow('Fake 1 ended by itself (exit code 3)');
    expect(await engine.analyse(START_FEN)).toEqual([{ move: 'e2e4', pawns: 0.3 }]);
    await engine.close();
  });

  it.each<[string, string, RegExp, Partial<UciOptions>]>([
    [
      'hangs at the start',
      'uci) sleep 60 ;;',
      /did not answer within 200 ms \(uciok\)/,
      { startTimeoutMs: 200 },
    ],
    [
      'hangs over a position',
      `${HELLO} go*) sleep 60 ;;`,
      /did not answer within 200 ms \(depth 3 of rnbq/,
      { timeoutMs: 200 },
    ],
    ['dies at the start', 'uci) exit 1 ;;', /ended by itself \(exit code 1\)/, {}],
    ['kills itself', `${HELLO} go*) kill -9 $$ ;;`, /ended by itself \(SIGKILL\)/, {}],
    ['names no move', `${HELLO} go*) echo "bestmove (none)" ;;`, /named no move/, {}],
    [
      'names an illegal move',
      `${HELLO} go*) echo "info score cp 1 pv e2e5"; echo "bestmove e2e5" ;;`,
      /named "e2e5", which is illegal/,
      {},
    ],
    [
      'talks garbage',
      `${HELLO} go*) head -c 3000 /dev/urandom; echo; echo "bestmove" ;;`,
      /named no move/,
      {},
    ],
    [
      'floods with lines',
      `${HELLO} go*) while :; do echo "info string ${'x'.repeat(4000)}"; done ;;`,
      /wrote more than any engine should/,
      {},
    ],
    ['floods without lines', `${HELLO} go*) cat /dev/zero ;;`, /wrote more than any engine should/, {}],
  ])('%s: the question fails, the engine is ended', async (name, cases, problem, more) => {
    const engine = engineOf(fake(name.replaceAll(' ', '-'), cases), more);
    await expect(engine.analyse(START_FEN)).rejects.toThrow(problem);
    await engine.close();
  });

  it('is missing', async () => {
    await expect(engineOf(join(dir, 'none')).start()).rejects.toThrow(
      /cannot be started: there is no such program/,
    );
  });
});

describe('the task with an engine', () => {
  it('does not start with one that cannot', async () => {
    await expect(makeTask('chess', { engine: join(dir, 'none') })).rejects.toThrow(
      /no such program.* \(leave the option engine out to label by our own search\)/,
    );
  });

  it('skips positions that it fails on, tells so, and goes on with the own search', async () => {
    const notices: string[] = [];
    const task = await makeTask(
      'chess',
      { engine: fake('dies', `${HELLO} go*) exit 1 ;;`), environmentShare: 0, searchDepth: 1 },
      { notice: message => notices.push(message) },
    );
    expect(task.sources!()).toMatchObject({ labelSource: 'Fake 1, depth 8', labelsSkipped: 0 });
    const prompts = await drawPrompts(task, 1, 4);
    expect(notices).toEqual([
      ...Array(3).fill('position skipped, Fake 1 ended by itself (exit code 1)'),
      'Fake 1 failed 3 times in a row: from here on labels are from our own search, depth 1',
    ]);
    expect(task.sources!()).toMatchObject({
      labelSource: 'Fake 1, depth 8, then own search, depth 1',
      labelsSkipped: 3,
    });
    for (const { data } of prompts) expect((data as { labels: unknown[] }).labels.length).toBeGreaterThan(0);
    await task.close!();
  });
});
