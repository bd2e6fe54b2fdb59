/**
 * Reads a pickle (protocols 0 to 5) as data: a small machine with a stack and a memo
 * (https://docs.python.org/3/library/pickletools.html), in which every operation that would import, call or build something
 * makes an inert value that says so.
 *
 * What is read costs no more than a constant times the length of the file: shared values stay shared, and sizes, operations,
 * the memo and open marks are bounded.
 */
import { describe, type Inert, type InertCall, PickleError, type PickleValue } from './values.ts';

/** What a pickle may be at most. */
export interface PickleLimits {
  readonly bytes: number;
  readonly operations: number;
  readonly memo: number;
  /** Lists and dicts that are open at once. */
  readonly depth: number;
  /** Digits of an integer, in bytes. */
  readonly integerBytes: number;
}

export const pickleLimits: PickleLimits = {
  bytes: 2 ** 28,
  operations: 2 ** 22,
  memo: 2 ** 20,
  depth: 1000,
  integerBytes: 256,
};

/** Where a list, a tuple or a dict begins on the stack. */
const MARK = Symbol('mark');
type Slot = PickleValue | typeof MARK;

/** The value of a pickle; `source` names it in errors. What follows its end is not read. */
export function readPickle(
  bytes: Uint8Array,
  source: string,
  limits: PickleLimits = pickleLimits,
): PickleValue {
  const refuse = (problem: string): never => {
    throw new PickleError(`${source}: ${problem}`);
  };
  if (bytes.length > limits.bytes)
    refuse(`a pickle of ${bytes.length} bytes, at most ${limits.bytes} are read: is it a model?`);

  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  let operations = 0;
  let marks = 0;
  const stack: Slot[] = [];
  const memo = new Map<number, PickleValue>();

  const damaged = (what: string): never =>
    refuse(`not a whole pickle: ${what} at byte ${at}; copy or save it again`);

  // ---- bytes
  function take(count: number): number {
    if (!(count >= 0) || count > bytes.length - at) damaged(`${count} bytes are missing`);
    const start = at;
    at += count;
    return start;
  }
  const u1 = (): number => bytes[take(1)];
  const u2 = (): number => view.getUint16(take(2), true);
  const u4 = (): number => view.getUint32(take(4), true);
  const i4 = (): number => view.getInt32(take(4), true);
  function u8(): number {
    const value = view.getBigUint64(take(8), true);
    return value > BigInt(bytes.length) ? damaged(`a length of ${value} bytes`) : Number(value);
  }
  const blob = (length: number): Uint8Array => {
    const start = take(length);
    return bytes.subarray(start, start + length);
  };
  const text = (length: number): string => decodeUtf8(blob(length));
  const latin1 = (part: Uint8Array): string =>
    Buffer.from(part.buffer, part.byteOffset, part.length).toString('latin1');
  function line(): string {
    const end = bytes.indexOf(0x0a, at);
    if (end < 0) return damaged('a line without end');
    const part = bytes.subarray(at, end);
    at = end + 1;
    return latin1(part);
  }

  // ---- the stack
  const push = (value: PickleValue): void => {
    stack.push(value);
  };
  function pop(): PickleValue {
    const value = stack.pop();
    return value === undefined || value === MARK ? damaged('an operation without operand') : value;
  }
  function top(): PickleValue {
    const value = stack.at(-1);
    return value === undefined || value === MARK ? damaged('an operation without operand') : value;
  }
  function mark(): void {
    if (++marks > limits.depth)
      refuse(`nests deeper than ${limits.depth}, where models need 10: it is not read`);
    stack.push(MARK);
  }
  /** All from the last mark on. */
  function sinceMark(): PickleValue[] {
    const start = stack.lastIndexOf(MARK);
    if (start < 0) return damaged('an end without beginning');
    marks--;
    return (stack.splice(start) as PickleValue[]).slice(1);
  }
  function remember(index: number): void {
    if (!(index >= 0)) damaged('a memo that has no number');
    memo.set(index, top());
    if (memo.size > limits.memo) refuse(`remembers more than ${limits.memo} values: it is not read`);
  }
  function recall(index: number): void {
    const value = memo.get(index);
    push(value === undefined ? damaged(`memo ${index}, which is not there,`) : value);
  }

  // ---- values
  const global = (module: PickleValue, name: PickleValue): Inert =>
    typeof module === 'string' && typeof name === 'string'
      ? { inert: 'global', name: `${plainModule(module)}.${name}` }
      : damaged(`a name that is ${describe(name)}`);
  const called = (callee: PickleValue, args: PickleValue): InertCall => ({
    inert: 'call',
    callee,
    args: Array.isArray(args) ? args : damaged(`arguments that are ${describe(args)}`),
    entries: new Map(),
    items: [],
  });
  function append(to: PickleValue, values: readonly PickleValue[]): void {
    const list = Array.isArray(to) ? to : isCall(to) ? to.items : undefined;
    if (list === undefined) damaged(`an item for ${describe(to)}`);
    else for (const value of values) list.push(value);
  }
  function setItems(to: PickleValue, values: readonly PickleValue[]): void {
    const dict = to instanceof Map ? to : isCall(to) ? to.entries : undefined;
    if (values.length % 2 !== 0) damaged('a key without value');
    if (dict === undefined) damaged(`an entry for ${describe(to)}`);
    else for (let i = 0; i < values.length; i += 2) dict.set(values[i], values[i + 1]);
  }
  function integer(length: number): number | bigint {
    if (length > limits.integerBytes)
      refuse(`an integer of ${length} bytes, at most ${limits.integerBytes} are read`);
    let value = 0n;
    const digits = blob(length);
    for (let i = digits.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(digits[i]);
    return plainInteger(length === 0 ? 0n : BigInt.asIntN(8 * length, value));
  }
  function decimal(digits: string): number | bigint {
    const plain = digits.replace(/L$/, '').trim();
    if (plain.length > 2 * limits.integerBytes)
      refuse(`an integer of ${plain.length} digits, at most ${2 * limits.integerBytes} are read`);
    return /^[+-]?\d+$/.test(plain)
      ? plainInteger(BigInt(plain.replace(/^\+/, '')))
      : damaged('an integer that is none');
  }
  function real(digits: string): number {
    const words: Readonly<Record<string, number>> = { inf: Infinity, '-inf': -Infinity, nan: Number.NaN };
    const value = words[digits.trim()] ?? Number(digits);
    return digits.trim() === '' || (Number.isNaN(value) && digits.trim() !== 'nan')
      ? damaged('a number that is none')
      : value;
  }

  for (;;) {
    if (++operations > limits.operations) refuse(`more than ${limits.operations} operations: it is not read`);
    const operation = u1();
    switch (operation) {
      // ---- of the format
      case 0x80: {
        const protocol = u1();
        if (protocol > 5) refuse(`pickle protocol ${protocol}, 0 to 5 are read: save it with protocol 5`);
        break;
      }
      case 0x95: // FRAME: says only how much to read at once
        take(8);
        break;
      case 0x2e: {
        // STOP
        const value = pop();
        return stack.length > 0 ? damaged('more than one value') : value;
      }
      // ---- the stack and the memo
      case 0x28:
        mark();
        break;
      case 0x30: // POP
        if (stack.length === 0) damaged('an operation without operand');
        if (stack.pop() === MARK) marks--;
        break;
      case 0x31: // POP_MARK
        sinceMark();
        break;
      case 0x32: // DUP
        push(top());
        break;
      case 0x70:
        remember(Number(line()));
        break;
      case 0x71:
        remember(u1());
        break;
      case 0x72:
        remember(u4());
        break;
      case 0x94: // MEMOIZE
        remember(memo.size);
        break;
      case 0x67:
        recall(Number(line()));
        break;
      case 0x68:
        recall(u1());
        break;
      case 0x6a:
        recall(u4());
        break;
      // ---- plain values
      case 0x4e:
        push(null);
        break;
      case 0x88:
        push(true);
        break;
      case 0x89:
        push(false);
        break;
      case 0x49: {
        // INT, which also has protocol 0's booleans
        const digits = line();
        push(digits === '01' ? true : digits === '00' ? false : decimal(digits));
        break;
      }
      case 0x4c:
        push(decimal(line()));
        break;
      case 0x4a:
        push(i4());
        break;
      case 0x4b:
        push(u1());
        break;
      case 0x4d:
        push(u2());
        break;
      case 0x8a:
        push(integer(u1()));
        break;
      case 0x8b:
        push(integer(u4()));
        break;
      case 0x46:
        push(real(line()));
        break;
      case 0x47:
        push(view.getFloat64(take(8), false));
        break;
      case 0x53: {
        // STRING: Python 2's text, quoted
        const quoted = line().trim();
        const body = /^(['"])(.*)\1$/s.exec(quoted)?.[2];
        push(body === undefined ? damaged('text without quotes') : unescaped(body));
        break;
      }
      case 0x54:
        push(latin1(blob(u4())));
        break;
      case 0x55:
        push(latin1(blob(u1())));
        break;
      case 0x56: // UNICODE
        push(rawUnicode(line()));
        break;
      case 0x58:
        push(text(u4()));
        break;
      case 0x8c:
        push(text(u1()));
        break;
      case 0x8d:
        push(text(u8()));
        break;
      case 0x42:
        push(blob(u4()));
        break;
      case 0x43:
        push(blob(u1()));
        break;
      case 0x8e: // BINBYTES8
      case 0x96: // BYTEARRAY8
        push(blob(u8()));
        break;
      // ---- lists, tuples, dicts, sets
      case 0x5d:
      case 0x29:
        push([]);
        break;
      case 0x6c: // LIST
      case 0x74: // TUPLE
        push(sinceMark());
        break;
      case 0x85:
        push([pop()]);
        break;
      case 0x86: {
        const second = pop();
        push([pop(), second]);
        break;
      }
      case 0x87: {
        const [third, second] = [pop(), pop()];
        push([pop(), second, third]);
        break;
      }
      case 0x61: {
        const value = pop();
        append(top(), [value]);
        break;
      }
      case 0x65: {
        const values = sinceMark();
        append(top(), values);
        break;
      }
      case 0x7d:
        push(new Map());
        break;
      case 0x64: {
        const values = sinceMark();
        push(new Map());
        setItems(top(), values);
        break;
      }
      case 0x73: {
        const value = pop();
        const key = pop();
        setItems(top(), [key, value]);
        break;
      }
      case 0x75: {
        const values = sinceMark();
        setItems(top(), values);
        break;
      }
      case 0x8f:
        push(new Set());
        break;
      case 0x91: // FROZENSET
        push(new Set(sinceMark()));
        break;
      case 0x90: {
        // ADDITEMS
        const values = sinceMark();
        const to = top();
        if (!(to instanceof Set)) damaged(`an item for ${describe(to)}`);
        else for (const value of values) to.add(value);
        break;
      }
      // ---- what would import or call: named, and left alone
      case 0x63: {
        const module = line();
        push(global(module, line()));
        break;
      }
      case 0x93: {
        const name = pop();
        push(global(pop(), name));
        break;
      }
      case 0x52: // REDUCE
      case 0x81: {
        // NEWOBJ
        const args = pop();
        push(called(pop(), args));
        break;
      }
      case 0x92: {
        // NEWOBJ_EX: the named arguments are kept as a last one
        const named = pop();
        const args = pop();
        push(called(pop(), Array.isArray(args) ? [...args, named] : args));
        break;
      }
      case 0x69: {
        // INST
        const module = line();
        const callee = global(module, line());
        push(called(callee, sinceMark()));
        break;
      }
      case 0x6f: {
        // OBJ
        const [callee, ...args] = sinceMark();
        push(callee === undefined ? damaged('an object without class') : called(callee, args));
        break;
      }
      case 0x62: {
        // BUILD
        const state = pop();
        const built = top();
        // A dict's own attributes (`_metadata` of a state dict) say nothing about what is in it.
        if (isCall(built)) built.state = state;
        break;
      }
      case 0x50:
        push({ inert: 'persistent', id: line() });
        break;
      case 0x51:
        push({ inert: 'persistent', id: pop() });
        break;
      case 0x82:
      case 0x83:
      case 0x84:
        refuse(
          'names a class by a number that only the program which wrote it knows: save it again without copyreg extensions',
        );
        break;
      case 0x97:
      case 0x98:
        refuse('keeps some of its bytes elsewhere (out-of-band buffers): save it in one piece');
        break;
      default:
        damaged(`operation 0x${operation.toString(16)}, which there is not,`);
    }
  }
}

const isCall = (value: PickleValue): value is InertCall =>
  typeof value === 'object' && value !== null && 'inert' in value && value.inert === 'call';

/** Python 2's names of modules that Python 3 calls otherwise. */
const plainModule = (module: string): string => (module === '__builtin__' ? 'builtins' : module);

const plainInteger = (value: bigint): number | bigint =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value;

/** Protocol 0's text: Latin-1, all else as escapes. */
const rawUnicode = (line: string): string =>
  line.replace(
    /\\u([0-9a-fA-F]{4})|\\U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})/g,
    (_, short: string, long: string) => String.fromCodePoint(Number.parseInt(short ?? long, 16)),
  );

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
/** Python writes lone surrogates, too; they are of no use here, and become the sign for what cannot be shown. */
const decodeUtf8 = (part: Uint8Array): string => utf8.decode(part);

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  '\\': '\\',
  "'": "'",
  '"': '"',
};
const unescaped = (body: string): string =>
  body.replace(/\\(x[0-9a-fA-F]{2}|.)/gs, (_, code: string) =>
    code.length === 3
      ? String.fromCharCode(Number.parseInt(code.slice(1), 16))
      : (escapes[code] ?? `\\${code}`),
  );
