/** How fast a run goes, over about a minute: the time that is left must not jump with each row. */

/**
 * Told of each row with its time (ms), its step and the rate that the row itself claims; answers with steps per second.
 * What of the minute was not seen yet is filled with the first claim.
 */
export function createPace(
  windowMs = 60_000,
): (time: number, step: number, claimed: number | null) => number | null {
  let rows: { time: number; step: number }[] = [];
  let first: number | null = null;
  return (time, step, claimed) => {
    const last = rows.at(-1);
    if (last !== undefined && (step < last.step || time < last.time)) {
      // A log that was rewound is another run.
      rows = [];
      first = null;
    }
    first ??= claimed;
    if (rows.at(-1)?.time !== time || rows.at(-1)?.step !== step) rows.push({ time, step });
    // One that is older than the window stays, so that it is covered.
    while (rows.length > 2 && time - rows[1].time >= windowMs) rows.shift();
    const span = time - rows[0].time;
    const steps = step - rows[0].step;
    if (first === null) return span > 0 ? (steps / span) * 1000 : null;
    const unseen = Math.max(0, windowMs - span);
    return (steps + (first * unseen) / 1000) / ((span + unseen) / 1000);
  };
}
