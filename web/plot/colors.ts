/** The colours that canvases use, for both themes; told apart also without red and green, and by their lightness. */
import type { Tone } from '../lib/tone.ts';

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

const light: Colors = {
  paper: '#ffffff',
  ink: '#1d232a',
  faint: '#5d6670',
  grid: 'rgba(29, 35, 42, .075)',
  lines: ['#1f5fa8', '#c2560c', '#0b7f68', '#9c3d86', '#7a6400', '#3b3f8f', '#b3261e', '#4f6b7a'],
  tone: { muted: '#6b747e', good: '#0b7f68', warn: '#a86a00', bad: '#b3261e' },
  tint: {
    muted: 'rgba(93, 102, 112, .10)',
    good: 'rgba(0, 150, 120, .085)',
    warn: 'rgba(236, 170, 0, .20)',
    bad: 'rgba(205, 50, 50, .15)',
  },
  mark: {
    muted: 'rgba(93, 102, 112, .10)',
    good: 'rgba(0, 150, 120, .10)',
    warn: 'rgba(236, 170, 0, .16)',
    bad: 'rgba(205, 50, 50, .11)',
  },
};

const dark: Colors = {
  paper: '#191d22',
  ink: '#e4e8ec',
  faint: '#9aa4ae',
  grid: 'rgba(228, 232, 236, .08)',
  lines: ['#6fb1f0', '#f29a4a', '#45c4a0', '#df8fcb', '#d9c24a', '#9aa0f5', '#ff8072', '#9db4c0'],
  tone: { muted: '#8f99a3', good: '#45c4a0', warn: '#e9b949', bad: '#ff7a6b' },
  tint: {
    muted: 'rgba(154, 164, 174, .12)',
    good: 'rgba(50, 190, 150, .10)',
    warn: 'rgba(240, 185, 50, .17)',
    bad: 'rgba(255, 95, 80, .17)',
  },
  mark: {
    muted: 'rgba(154, 164, 174, .12)',
    good: 'rgba(50, 190, 150, .12)',
    warn: 'rgba(240, 185, 50, .14)',
    bad: 'rgba(255, 95, 80, .14)',
  },
};

export const colorsFor = (isDark: boolean): Colors => (isDark ? dark : light);

/** A colour of the palette with less of it. */
export function fade(hex: string, alpha: number): string {
  const n = Number.parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}
