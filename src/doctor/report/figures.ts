/** Figures of the doctor as people read them. */

/** How sure, in words and as a share: people overrate a bare 0.62. */
export function sureness(confidence: number): string {
  const percent = `${Math.round(100 * Math.min(1, Math.max(0, confidence)))}%`;
  if (confidence >= 0.85) return `almost certain, ${percent}`;
  if (confidence >= 0.65) return `likely, ${percent}`;
  if (confidence >= 0.4) return `plausible, ${percent}`;
  return `a guess, ${percent}`;
}
