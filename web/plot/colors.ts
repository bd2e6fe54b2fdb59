/** The colours that canvases use, for both themes; told apart also without red and green, and by their lightness. */
import { type Theme, type Tone, type TonePaint, tonePaints, tones } from '../../src/metrics/tones.ts';

export interface Colors {
  readonly paper: string;
  readonly ink: string;
  readonly faint: string;
  readonly grid: string;
  /** Curves; the first is for a single run. */
  readonly lines: readonly string[];
  readonly tone: Readonly<Record<Tone, string>>;
  /** Behind values, by tone. */
  readonly tint: Readonly<Record<Tone, string>>;
  /** Behind a stretch of x that a finding cites. */
  readonly mark: Readonly<Record<Tone, string>>;
}

const toned = (theme: Theme, part: keyof TonePaint) =>
  Object.fromEntries(tones.map(tone => [tone, tonePaints[theme][tone][part]])) as Record<Tone, string>;

const light: Colors = {
  paper: '#ffffff',
  ink: '#1d232a',
  faint: '#5d6670',
  grid: 'rgba(29, 35, 42, .075)',
  lines: ['#1f5fa8', '#c2560c', '#0b7f68', '#9c3d86', '#7a6400', '#3b3f8f', '#b3261e', '#4f6b7a'],
  tone: toned('light', 'line'),
  tint: toned('light', 'tint'),
  mark: toned('light', 'mark'),
};

const dark: Colors = {
  paper: '#191d22',
  ink: '#e4e8ec',
  faint: '#9aa4ae',
  grid: 'rgba(228, 232, 236, .08)',
  lines: ['#6fb1f0', '#f29a4a', '#45c4a0', '#df8fcb', '#d9c24a', '#9aa0f5', '#ff8072', '#9db4c0'],
  tone: toned('dark', 'line'),
  tint: toned('dark', 'tint'),
  mark: toned('dark', 'mark'),
};

export const colorsFor = (isDark: boolean): Colors => (isDark ? dark : light);

/** A colour of the palette with less of it. */
export function fade(hex: string, alpha: number): string {
  const n = Number.parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}
