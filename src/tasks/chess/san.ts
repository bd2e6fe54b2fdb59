/** Moves in the notation of PGN files: `Nf3`, `exd5`, `O-O`, `e8=Q+`. */
import { generateLegal, MAX_MOVES } from './moves.ts';
import { CASTLE, fromOf, kindOf, PAWN, type Position, promotionOf, toOf } from './position.ts';

const SAN = /^([NBRQK])?([a-h])?([1-8])?[x-]?([a-h][1-8])(?:=?([NBRQ]))?$/;
const PIECES = ' PNBRQK';

const legal = new Int32Array(MAX_MOVES);

/** The one legal move that is meant; 0 if there is none, or several. Long forms (`Ng1-f3`, `e2e4`) are read as well. */
export function moveOfSan(position: Position, san: string): number {
  if (san.length > 12) return 0;
  const plain = san.replace(/[+#!?]+$/, '').replace(/e\.p\.$/, '');
  const count = generateLegal(position, legal);
  const castle = /^[O0]-[O0](-[O0])?$/.exec(plain);
  if (castle) {
    const wantedFile = castle[1] === undefined ? 6 : 2;
    for (let i = 0; i < count; i++)
      if (kindOf(legal[i]) === CASTLE && (toOf(legal[i]) & 7) === wantedFile) return legal[i];
    return 0;
  }
  const match = SAN.exec(plain);
  if (match === null) return 0;
  const [, piece, file, rank, target = '', promotion] = match;
  const type = piece === undefined ? PAWN : PIECES.indexOf(piece);
  const to = (target.charCodeAt(1) - 49) * 16 + target.charCodeAt(0) - 97;
  const promoted = promotion === undefined ? 0 : PIECES.indexOf(promotion);
  let found = 0;
  for (let i = 0; i < count; i++) {
    const move = legal[i];
    const from = fromOf(move);
    if (toOf(move) !== to || promotionOf(move) !== promoted) continue;
    if ((position.squares[from] & 7) !== type) continue;
    if (file !== undefined && (from & 7) !== file.charCodeAt(0) - 97) continue;
    if (rank !== undefined && from >> 4 !== rank.charCodeAt(0) - 49) continue;
    if (found !== 0) return 0;
    found = move;
  }
  return found;
}
