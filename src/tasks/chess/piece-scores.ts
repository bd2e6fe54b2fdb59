/**
 * What a piece is worth on a square, in hundredths of a pawn, White's point of view. Placement is plain geometry: towards
 * the centre, pawns forward, the king at home on a wing. It is meant to prefer sensible moves, not to play well.
 */

/** By type: pawn 1 … king 6. */
export const pieceValues = new Int32Array([0, 100, 320, 330, 500, 900, 0]);

/** Indexed by `piece << 7 | square` (see position.ts). */
export const pieceScore: Int32Array = tabulate();

function tabulate(): Int32Array {
  const table = new Int32Array(16 << 7);
  for (let type = 1; type <= 6; type++) {
    for (let rank = 0; rank < 8; rank++) {
      for (let file = 0; file < 8; file++) {
        const score = pieceValues[type] + placement(type, rank, file);
        table[(type << 7) | (rank * 16 + file)] = score;
        table[((type + 8) << 7) | ((7 - rank) * 16 + file)] = -score;
      }
    }
  }
  return table;
}

function placement(type: number, rank: number, file: number): number {
  const fromCentre = Math.abs(file - 3.5) + Math.abs(rank - 3.5); // 1 in the centre, 7 in a corner
  const middleFile = 3.5 - Math.abs(file - 3.5); // 0 at the edge, 3 on the d and e files
  switch (type) {
    case 1:
      return rank === 1
        ? -4 * middleFile
        : Math.round((rank - 1) * (rank - 1) * 2 + middleFile * rank * 1.5 - 6);
    case 2:
      return Math.round(30 - 10 * fromCentre);
    case 3:
      return Math.round(20 - 5 * fromCentre) - (rank === 0 ? 8 : 0);
    case 4:
      return rank === 6 ? 15 : Math.round(2 * middleFile);
    case 5:
      return Math.round(8 - 2 * fromCentre);
    default:
      return rank === 0 ? Math.round(25 - 8 * middleFile) : -15 * rank;
  }
}
