/** What a person chose once and keeps: theme, folded groups, hidden kinds of event, whether to be told of verdicts. */

export type Theme = 'auto' | 'light' | 'dark';

interface Stored {
  theme: Theme;
  folded: string[];
  hiddenEvents: string[];
  /** Metrics whose plots come first. */
  pinned: string[];
  notify: boolean;
}

const storageKey = 'keel';
const usual: Stored = { theme: 'auto', folded: ['time'], hiddenEvents: [], pinned: [], notify: false };

function load(): Stored {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey) ?? '{}') as Partial<
      Record<keyof Stored, unknown>
    >;
    const strings = (value: unknown, fallback: string[]) =>
      Array.isArray(value) ? value.filter(v => typeof v === 'string').slice(0, 200) : fallback;
    return {
      theme: stored.theme === 'light' || stored.theme === 'dark' ? stored.theme : 'auto',
      folded: strings(stored.folded, usual.folded),
      hiddenEvents: strings(stored.hiddenEvents, usual.hiddenEvents),
      pinned: strings(stored.pinned, usual.pinned),
      notify: stored.notify === true,
    };
  } catch {
    // Storage may be forbidden or hold what another program wrote: the page works without.
    return { ...usual };
  }
}

export const preferences = $state<Stored>(load());

const darkQuery = matchMedia('(prefers-color-scheme: dark)');
let systemDark = $state(darkQuery.matches);
darkQuery.addEventListener('change', event => {
  systemDark = event.matches;
});

/** Whether the page is dark now. */
export function isDark(): boolean {
  return preferences.theme === 'auto' ? systemDark : preferences.theme === 'dark';
}

/** Keeps the choices and applies the theme. Call it once, inside a component. */
export function keepPreferences(): void {
  $effect(() => {
    const text = JSON.stringify(preferences);
    try {
      localStorage.setItem(storageKey, text);
    } catch {
      // As above.
    }
  });
  $effect.pre(() => {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  });
}

export function nextTheme(): void {
  preferences.theme = isDark() ? 'light' : 'dark';
}

export function toggle(list: 'folded' | 'hiddenEvents' | 'pinned', item: string): void {
  const items = preferences[list];
  preferences[list] = items.includes(item) ? items.filter(i => i !== item) : [...items, item];
}
