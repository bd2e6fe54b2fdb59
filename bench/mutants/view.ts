import { mutantsOf } from './mutant.ts';

/** Pictures of recorded robots. */
export const view = mutantsOf('src/view', [
  [
    'images/gif.ts',
    'if (next === 1 << size && size < 12) size++;',
    'if (next === (1 << size) - 1 && size < 12) size++;',
    'view/images',
    'off-by-one',
  ],
  [
    'images/gif.ts',
    '!first && index === shown[i] ? AS_BEFORE : index',
    'index === shown[i] ? AS_BEFORE : index',
    'view/images',
    'condition',
  ],
  ['images/png.ts', ' - (y > 0 ? pixels[(y - 1) * stride + i] : 0)', '', 'view/images', 'filter'],
  [
    'images/png.ts',
    'crc32(bytes.subarray(4, 8 + data.length))',
    'crc32(bytes.subarray(8, 8 + data.length))',
    'view/images',
    'checksum',
  ],
  [
    'images/palette.ts',
    'if (away < least) [least, nearest[cube]]',
    'if (away > least) [least, nearest[cube]]',
    'view/images',
    'comparison',
  ],
  ['motion.ts', 'const sign = along < 0 ? -1 : 1;', 'const sign = 1;', 'view/motion', 'sign'],
  ['motion.ts', '/ ((to - from) * frameSeconds)', '/ (2 * reach * frameSeconds)', 'view/motion', 'edge'],
  ['motion.ts', 'return a + b * Math.abs(r);', 'return a + b;', 'view/motion', 'formula'],
]);
