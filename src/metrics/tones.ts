/**
 * The four tones that all colour comes from: in a terminal, on the page, in the report. What is a word elsewhere is a
 * tone here, and what a tone looks like stands nowhere else.
 */

/** How loud something is shown. */
export const tones = ['muted', 'good', 'warn', 'bad'] as const;
/** One of the four. */
export type Tone = (typeof tones)[number];

/** In a terminal. */
export const toneColours = { muted: 'dim', good: 'green', warn: 'yellow', bad: 'red' } as const;

/** One tone on a plot. */
export interface TonePaint {
  /** Lines and glyphs on a plot. */
  readonly line: string;
  /** Behind a band of values. */
  readonly tint: string;
  /** Behind a stretch of x that a finding cites. */
  readonly mark: string;
}

export type Theme = 'light' | 'dark';

/** Told apart also without red and green, and by their lightness. */
export const tonePaints: Readonly<Record<Theme, Readonly<Record<Tone, TonePaint>>>> = {
  light: {
    muted: {
      line: '#6b747e',
      tint: 'rgba(93, 102, 112, .10)',
      mark: 'rgba(93, 102, 112, .10)',
    },
    good: {
      line: '#0b7f68',
      tint: 'rgba(0, 150, 120, .085)',
      mark: 'rgba(0, 150, 120, .10)',
    },
    warn: {
      line: '#a86a00',
      tint: 'rgba(236, 170, 0, .20)',
      mark: 'rgba(236, 170, 0, .16)',
    },
    bad: {
      line: '#b3261e',
      tint: 'rgba(205, 50, 50, .15)',
      mark: 'rgba(205, 50, 50, .11)',
    },
  },
  dark: {
    muted: {
      line: '#8f99a3',
      tint: 'rgba(154, 164, 174, .12)',
      mark: 'rgba(154, 164, 174, .12)',
    },
    good: {
      line: '#45c4a0',
      tint: 'rgba(50, 190, 150, .10)',
      mark: 'rgba(50, 190, 150, .12)',
    },
    warn: {
      line: '#e9b949',
      tint: 'rgba(240, 185, 50, .17)',
      mark: 'rgba(240, 185, 50, .14)',
    },
    bad: {
      line: '#ff7a6b',
      tint: 'rgba(255, 95, 80, .17)',
      mark: 'rgba(255, 95, 80, .14)',
    },
  },
};

/** Words in a tone, and what is behind them: a chip, a badge. Apart, because a style sheet alone has them. */
const toneWords: Readonly<Record<Theme, Readonly<Record<Tone, readonly [ink: string, soft: string]>>>> = {
  light: {
    muted: ['#4c555e', '#ecece8'],
    good: ['#0a6b58', '#e0f1ec'],
    warn: ['#855300', '#fbefd2'],
    bad: ['#a5211a', '#fbe5e1'],
  },
  dark: {
    muted: ['#b3bbc3', '#262c33'],
    good: ['#5fd0ae', '#14312b'],
    warn: ['#ecc15b', '#382c12'],
    bad: ['#ff9285', '#3d1f1c'],
  },
};

/** The tones of a theme as custom properties: `--good: …; --good-soft: …; --good-tint: …;` and so on. */
export function toneProperties(theme: Theme): string {
  return tones
    .map(tone => {
      const [ink, soft] = toneWords[theme][tone];
      return `--${tone}: ${ink}; --${tone}-soft: ${soft}; --${tone}-tint: ${tonePaints[theme][tone].tint};`;
    })
    .join(' ');
}
