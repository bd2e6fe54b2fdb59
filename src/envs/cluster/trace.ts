/**
 * Requests from a file of comma-separated values. Three headers are known: Azure's as it is published
 * (`TIMESTAMP,ContextTokens,GeneratedTokens`) and as others pass it on (`arrived_at,num_prefill_tokens,num_decode_tokens`),
 * and BurstGPT's (`Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`; other columns are left alone).
 * A time is a number of seconds, or a date with a time, which counts from the first.
 */
import { fail, show } from '../errors.ts';
import { emptyWorkload, MAX_REQUESTS, type Workload } from './requests.ts';

/** Names that a column may have, in lower case. */
const columns = {
  time: ['timestamp', 'arrived_at'],
  prompt: ['contexttokens', 'num_prefill_tokens', 'request tokens'],
  decode: ['generatedtokens', 'num_decode_tokens', 'response tokens'],
} as const;

const headers =
  'TIMESTAMP,ContextTokens,GeneratedTokens or arrived_at,num_prefill_tokens,num_decode_tokens or Timestamp,Request tokens,Response tokens';

const bad = (message: string): never => fail('file-invalid', message);

/** Requests of a file, and the line of each: those without tokens are left out. */
export interface Trace extends Workload {
  readonly lines: Int32Array; // (count), from 1
}

/** Reads a trace; `name` is for messages. Estimates are the true lengths until someone blurs them. */
export function parseTrace(text: string, name: string): Trace {
  const lines = text.split(/\r?\n/);
  while (lines.length > 0 && lines.at(-1)!.trim() === '') lines.pop();
  if (lines.length < 2)
    bad(`${name} has no requests: it needs a header (${headers}) and a line for each request`);
  if (lines.length - 1 > MAX_REQUESTS)
    bad(`${name} has ${lines.length - 1} requests, more than ${MAX_REQUESTS}: cut it`);
  const header = lines[0]
    .replace(/^\uFEFF/, '')
    .split(',')
    .map(cell => cell.trim().toLowerCase());
  const place = (what: keyof typeof columns): number => {
    const at = header.findIndex(cell => (columns[what] as readonly string[]).includes(cell));
    return at === -1
      ? bad(
          `${name} has no column for the ${what === 'time' ? 'arrival time' : `${what} tokens`}: its header is ${show(lines[0])}, use ${headers}`,
        )
      : at;
  };
  const [timeAt, promptAt, decodeAt] = [place('time'), place('prompt'), place('decode')];

  const kept: [atS: number, prompt: number, decode: number, line: number][] = [];
  let firstS = Number.NaN;
  let beforeS = 0;
  for (let i = 1; i < lines.length; i++) {
    const cells = lines[i].split(',');
    const where = `${name}:${i + 1}`;
    const readS = secondsOf(cells[timeAt], where);
    if (Number.isNaN(firstS)) {
      if (readS < 0) bad(`${where}: the time ${cells[timeAt]} is negative: begin at 0`);
      firstS = readS;
    }
    const atS = readS - firstS;
    if (atS < beforeS)
      bad(`${where}: the time ${cells[timeAt]} is before that of the line above: sort the requests by time`);
    beforeS = atS;
    const prompt = tokensOf(cells[promptAt], 'prompt', where);
    const decode = tokensOf(cells[decodeAt], 'generated', where);
    // BurstGPT holds requests that failed, with an empty answer; there is nothing to serve.
    if (decode === 0 || prompt === 0) continue;
    kept.push([atS, prompt, decode, i + 1]);
  }
  if (kept.length === 0) bad(`${name} has no request with tokens to read and to generate`);
  const workload = emptyWorkload(kept.length);
  kept.forEach(([atS, prompt, decode], i) => {
    workload.arrivalS[i] = atS;
    workload.promptTokens[i] = prompt;
    workload.decodeTokens[i] = decode;
    workload.estimatedTokens[i] = decode;
  });
  return { ...workload, lines: Int32Array.from(kept, ([, , , line]) => line) };
}

function secondsOf(cell: string | undefined, where: string): number {
  const text = (cell ?? '').trim();
  if (text === '') bad(`${where}: the time is missing`);
  const plain = Number(text);
  if (Number.isFinite(plain)) {
    return plain < 0 ? bad(`${where}: the time ${text} is negative: begin at 0`) : plain;
  }
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(\.\d+)?(?:Z|\+00:00)?$/.exec(text);
  const wholeMs = match ? Date.parse(`${match[1]}T${match[2]}Z`) : Number.NaN;
  if (Number.isNaN(wholeMs))
    bad(
      `${where}: the time ${show(text)} is neither a number of seconds nor a date such as 2023-11-16 18:01:51.1234`,
    );
  return wholeMs / 1000 + Number(match![3] ?? 0);
}

function tokensOf(cell: string | undefined, what: string, where: string): number {
  const text = (cell ?? '').trim();
  const value = Number(text);
  if (text === '' || !Number.isInteger(value) || value < 0 || value > 10_000_000)
    bad(`${where}: ${show(text)} is no number of ${what} tokens: use a whole number of at least 0`);
  return value;
}

/** The same requests at another mean rate: gaps stretched or shrunk alike. */
export function atRate(workload: Workload, ratePerS: number): Workload {
  const spanS = workload.arrivalS[workload.count - 1] - workload.arrivalS[0];
  if (spanS === 0)
    fail(
      'option-invalid',
      'all requests of the trace arrive at once: it has no rate to change, leave out the load',
    );
  const factor = (workload.count - 1) / spanS / ratePerS;
  return { ...workload, arrivalS: workload.arrivalS.map(at => at * factor) };
}
