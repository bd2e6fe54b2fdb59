/** What a screen reader is told, politely and seldom; and short notes at the foot of the page. */
let spoken = $state('');
let note = $state<string | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export const say = {
  get spoken(): string {
    return spoken;
  },
  get note(): string | null {
    return note;
  },
  /** For ears only. */
  aloud(text: string): void {
    spoken = text;
  },
  /** For both, gone after some seconds. */
  briefly(text: string, ms = 4000): void {
    spoken = text;
    note = text;
    clearTimeout(timer);
    timer = setTimeout(() => {
      note = null;
    }, ms);
  },
};
