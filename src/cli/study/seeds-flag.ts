/** `0..9`, `0,3,5` or a count, as a study file has it. */
export function seedsFlag(text: string): unknown {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  if (/^\d+(\s*,\s*\d+)+$/.test(trimmed)) return trimmed.split(',').map(Number);
  return trimmed;
}
