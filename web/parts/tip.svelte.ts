/** One tooltip for the whole page: on hover after a moment, on focus at once, gone with Escape. */
import type { Attachment } from 'svelte/attachments';

export interface Tip {
  readonly title?: string;
  readonly lines: readonly string[];
}

interface Shown extends Tip {
  readonly left: number;
  readonly top: number;
  readonly above: number;
}

export const tipId = 'tip';
let shown = $state.raw<Shown | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export const tips = {
  get shown(): Shown | null {
    return shown;
  },
  show(tip: Tip, box: { left: number; bottom: number; top: number }): void {
    clearTimeout(timer);
    shown = { ...tip, left: box.left, top: box.bottom, above: box.top };
  },
  hide(): void {
    clearTimeout(timer);
    shown = null;
  },
};

addEventListener('keydown', event => {
  if (event.key === 'Escape') tips.hide();
});
addEventListener('scroll', () => tips.hide(), { passive: true, capture: true });

/** Explains an element; null for nothing to explain. */
export function tip(content: () => Tip | null): Attachment<HTMLElement> {
  return element => {
    const show = () => {
      const now = content();
      if (now === null) return;
      tips.show(now, element.getBoundingClientRect());
      element.setAttribute('aria-describedby', tipId);
    };
    const hide = () => {
      element.removeAttribute('aria-describedby');
      tips.hide();
    };
    const enter = () => {
      clearTimeout(timer);
      timer = setTimeout(show, 250);
    };
    const focused = () => {
      if (element.matches(':focus-visible')) show();
    };
    element.addEventListener('pointerenter', enter);
    element.addEventListener('pointerleave', hide);
    element.addEventListener('focus', focused);
    element.addEventListener('blur', hide);
    return () => {
      element.removeEventListener('pointerenter', enter);
      element.removeEventListener('pointerleave', hide);
      element.removeEventListener('focus', focused);
      element.removeEventListener('blur', hide);
    };
  };
}
