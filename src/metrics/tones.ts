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

/** One tone on paper or on a screen. */
export interface TonePaint {
  /** Words. */
  readonly ink: string;
  /** Behind words: a chip, a badge. */
  readonly soft: string;
  /** Lines and glyphs on a plot. */
  readonly line: string;
  /** Behind a band of values. */
  readonly tint: string;
  /** Behind a stretch of x that a finding cites. */
  readonly mark: string;
}

/** Told apart also without red and green, and by their lightness. */
export const tonePaints: Readonly<Record<'light' | 'dark', Readonly<Record<Tone, TonePaint>>>> = {
  light: {
    muted: {
      ink: '#4c555e',
      soft: '#ecece8',
      line: '#6b747e',
      tint: 'rgba(93, 102, 112, .10)',
      mark: 'rgba(93, 102, 112, .10)',
    },
    good: {
      ink: '#0a6b58',
      soft: '#e0f1ec',
      line: '#0b7f68',
      tint: 'rgba(0, 150, 120, .085)',
      mark: 'rgba(0, 150, 120, .10)',
    },
    warn: {
      ink: '#855300',
      soft: '#fbefd2',
      line: '#a86a00',
      tint: 'rgba(236, 170, 0, .20)',
      mark: 'rgba(236, 170, 0, .16)',
    },
    bad: {
      ink: '#a5211a',
      soft: '#fbe5e1',
      line: '#b3261e',
      tint: 'rgba(205, 50, 50, .15)',
      mark: 'rgba(205, 50, 50, .11)',
    },
  },
  dark: {
    muted: {
      ink: '#b3bbc3',
      soft: '#262c33',
      line: '#8f99a3',
      tint: 'rgba(154, 164, 174, .12)',
      mark: 'rgba(154, 164, 174, .12)',
    },
    good: {
      ink: '#5fd0ae',
      soft: '#14312b',
      line: '#45c4a0',
      tint: 'rgba(50, 190, 150, .10)',
      mark: 'rgba(50, 190, 150, .12)',
    },
    warn: {
      ink: '#ecc15b',
      soft: '#382c12',
      line: '#e9b949',
      tint: 'rgba(240, 185, 50, .17)',
      mark: 'rgba(240, 185, 50, .14)',
    },
    bad: {
      ink: '#ff9285',
      soft: '#3d1f1c',
      line: '#ff7a6b',
      tint: 'rgba(255, 95, 80, .17)',
      mark: 'rgba(255, 95, 80, .14)',
    },
  },
};

/** The tones of a theme as custom properties: `--good: …; --good-soft: …;` and so on. */
export function toneProperties(theme: keyof typeof tonePaints): string {
  return tones
    .map(tone => {
      const { ink, soft, tint } = tonePaints[theme][tone];
      return `--${tone}: ${ink}; --${tone}-soft: ${soft}; --${tone}-tint: ${tint};`;
    })
    .join(' ');
}
