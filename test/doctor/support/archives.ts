/** Archives and arrays as the common tools write them, and as an attacker might. */
import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipEntry {
  readonly name: string;
  readonly content: Buffer | string;
  /** What its header says that it unpacks to, where that is a lie. */
  readonly claims?: number;
  readonly encrypted?: boolean;
}

const u16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
};
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};

/** A zip archive; `copies` lists each entry that often, over the same bytes. */
export function zipFile(entries: readonly ZipEntry[], copies = 1): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  let count = 0;
  for (const { name, content, claims, encrypted } of entries) {
    const plain = Buffer.from(content);
    const packed = deflateRawSync(plain);
    // crc32 is of Node 22.2; the reader does not ask for it.
    const sum = typeof crc32 === 'function' ? crc32(plain) : 0;
    const fields = Buffer.concat([
      u16(20),
      u16(encrypted === true ? 1 : 0),
      u16(8),
      u32(0),
      u32(sum),
      u32(packed.length),
      u32(claims ?? plain.length),
      u16(Buffer.byteLength(name)),
      u16(0),
    ]);
    const local = Buffer.concat([u32(0x04034b50), fields, Buffer.from(name), packed]);
    for (let i = 0; i < copies; i++) {
      directory.push(
        Buffer.concat([
          u32(0x02014b50),
          u16(20),
          fields,
          u16(0),
          u16(0),
          u16(0),
          u32(0),
          u32(offset),
          Buffer.from(name),
        ]),
      );
      count++;
    }
    parts.push(local);
    offset += local.length;
  }
  const all = Buffer.concat(directory);
  const end = Buffer.concat([
    u32(0x06054b50),
    u32(0),
    u16(count),
    u16(count),
    u32(all.length),
    u32(offset),
    u16(0),
  ]);
  return Buffer.concat([...parts, all, end]);
}

export interface TarEntry {
  readonly name: string;
  readonly content: Buffer | string;
  /** '0' is a file, '2' a link. */
  readonly type?: string;
  readonly claims?: number;
}

export function tarFile(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const { name, content, type = '0', claims } of entries) {
    const bytes = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0, 100);
    header.write('0000644\0', 100);
    header.write(`${(claims ?? bytes.length).toString(8).padStart(11, '0')}\0`, 124);
    header.write(type, 156);
    header.write('ustar\0' + '00', 257, 'latin1');
    parts.push(header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

/** One array of NumPy: doubles, or 64-bit integers. */
export function npyFile(values: readonly number[], shape: string, type: '<f8' | '<i8'): Buffer {
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': ${shape}, }`;
  const header = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const data = Buffer.alloc(8 * values.length);
  values.forEach((value, i) => {
    if (type === '<f8') data.writeDoubleLE(value, 8 * i);
    else data.writeBigInt64LE(BigInt(value), 8 * i);
  });
  return Buffer.concat([
    Buffer.from('\x93NUMPY\x01\x00', 'latin1'),
    u16(header.length),
    Buffer.from(header),
    data,
  ]);
}

/** `evaluations.npz` of Stable-Baselines3. */
export const evaluationsFile = (rows: number, episodes: number): Buffer =>
  zipFile([
    {
      name: 'timesteps.npy',
      content: npyFile(
        Array.from({ length: rows }, (_, i) => 1000 * (i + 1)),
        `(${rows},)`,
        '<i8',
      ),
    },
    {
      name: 'results.npy',
      content: npyFile(
        Array.from({ length: rows * episodes }, (_, i) => Math.floor(i / episodes) + (i % episodes)),
        `(${rows}, ${episodes})`,
        '<f8',
      ),
    },
  ]);

/** A notebook with one code cell for each list of outputs. */
export const notebookFile = (cells: readonly (readonly object[])[]): string =>
  JSON.stringify(
    {
      cells: cells.map((outputs, i) => ({
        cell_type: 'code',
        execution_count: i + 1,
        metadata: {},
        source: ['model.learn(10_000)'],
        outputs,
      })),
      metadata: { kernelspec: { name: 'python3' } },
      nbformat: 4,
      nbformat_minor: 5,
    },
    undefined,
    1,
  );

/** The text of a cell's output, as Jupyter keeps it: a list of lines. */
export const streamOutput = (text: string): object => ({
  output_type: 'stream',
  name: 'stdout',
  text: text.split(/(?<=\n)/),
});

/** A table as Hugging Face's trainers show it in a notebook. */
export const tableOutput = (header: readonly string[], rows: readonly (readonly unknown[])[]): object => ({
  output_type: 'display_data',
  metadata: {},
  data: {
    'text/plain': ['<IPython.core.display.HTML object>'],
    'text/html': [
      `\n<div>\n<progress value='9' max='9'></progress>\n[9/9 00:10, Epoch 1/1]\n</div>\n<table border="1" class="dataframe">\n<thead>\n<tr style="text-align: left;">\n${header.map(name => `<th>${name}</th>\n`).join('')}</tr>\n</thead>\n<tbody>\n`,
      ...rows.map(row => `<tr>\n${row.map(cell => `<td>${cell}</td>\n`).join('')}</tr>\n`),
      '</tbody>\n</table><p>',
    ],
  },
});

/** The table that Stable-Baselines3 prints of a row. */
export function sb3Table(cells: Readonly<Record<string, number>>): string {
  const lines: string[] = [];
  let group = '';
  for (const [name, value] of Object.entries(cells)) {
    const [head, leaf] = name.split('/');
    if (head !== group) lines.push(`| ${`${head}/`.padEnd(24)}|              |`);
    group = head;
    lines.push(`| ${`   ${leaf}`.padEnd(24)}| ${String(value).padEnd(13)}|`);
  }
  const rule = '-'.repeat(lines[0].length);
  return `${rule}\n${lines.join('\n')}\n${rule}\n`;
}
