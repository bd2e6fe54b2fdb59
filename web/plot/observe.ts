/** Tells a plot whether it is on screen, or nearly: only those are drawn. */
type Listener = (visible: boolean) => void;
const listeners = new WeakMap<Element, Listener>();
let observer: IntersectionObserver | undefined;

export function observeVisible(element: Element, listener: Listener): () => void {
  observer ??= new IntersectionObserver(
    entries => {
      for (const entry of entries) listeners.get(entry.target)?.(entry.isIntersecting);
    },
    { rootMargin: '160px 0px' },
  );
  listeners.set(element, listener);
  observer.observe(element);
  return () => {
    observer?.unobserve(element);
    listeners.delete(element);
  };
}
