/**
 * Letters of five by seven dots, for text in pictures that are drawn without a font: seven rows from the top, a digit of base 32
 * each, whose highest bit is the left column. Small letters are drawn as capitals.
 */
const dots: Readonly<Record<string, string>> = {
  A: 'ehhvhhh',
  B: 'uhhuhhu',
  C: 'ehggghe',
  D: 'uhhhhhu',
  E: 'vggsggv',
  F: 'vggsggg',
  G: 'ehgnhhf',
  H: 'hhhvhhh',
  I: 'e44444e',
  J: '72222ic',
  K: 'hikokih',
  L: 'ggggggv',
  M: 'hrllhhh',
  N: 'hhpljhh',
  O: 'ehhhhhe',
  P: 'uhhuggg',
  Q: 'ehhhlid',
  R: 'uhhukih',
  S: 'fgge11u',
  T: 'v444444',
  U: 'hhhhhhe',
  V: 'hhhhha4',
  W: 'hhhlllr',
  X: 'hha4ahh',
  Y: 'hhha444',
  Z: 'v1248gv',
  '0': 'ehjlphe',
  '1': '4c4444e',
  '2': 'eh1248v',
  '3': 'v24211u',
  '4': '26aiv22',
  '5': 'vgu11he',
  '6': '68guhhe',
  '7': 'v124888',
  '8': 'ehhehhe',
  '9': 'ehhf12c',
  '.': '00000cc',
  ',': '0000c48',
  ':': '0cc0cc0',
  ';': '0cc0c48',
  '!': '4444404',
  '?': 'eh12404',
  '-': '000v000',
  '−': '000v000',
  '+': '044v440',
  '=': '00v0v00',
  '*': '0l4e4l0',
  '/': '01248g0',
  '\\': '0g84210',
  '%': 'op248j3',
  '(': '2488842',
  ')': '8422248',
  '[': 'e88888e',
  ']': 'e22222e',
  '<': '248g842',
  '>': '8421248',
  '|': '4444444',
  _: '000000v',
  "'": '4480000',
  '"': 'aaa0000',
  '#': 'aavavaa',
  '&': 'cik8lid',
  '×': '00ha4ah',
  '·': '0004000',
};

/** Of anything else: a box. */
const unknown = 'vhhhhhv';

/** The dots of a letter that are on, as (column, row). */
export function dotsOf(letter: string): [column: number, row: number][] {
  if (letter.trim() === '') return [];
  const upper = letter.toUpperCase();
  const rows = Object.hasOwn(dots, upper) ? dots[upper] : unknown;
  return [...rows].flatMap((digit, row) => {
    const bits = Number.parseInt(digit, 32);
    return [0, 1, 2, 3, 4]
      .filter(column => (bits >> (4 - column)) & 1)
      .map((column): [number, number] => [column, row]);
  });
}
