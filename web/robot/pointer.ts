/** Mouse and fingers on the robot: a drag turns, a right or shift drag moves, a wheel or two fingers zoom. */
export interface PointerActs {
  turn(right: number, up: number): void;
  /** In shares of the picture's height. */
  pan(right: number, up: number): void;
  zoom(factor: number): void;
}

const turnPerPixel = 0.008;

/** Listens until the function that it returns is called. */
export function watchPointer(element: HTMLElement, acts: PointerActs): () => void {
  const pointers = new Map<number, { x: number; y: number }>();
  const stop = new AbortController();
  const { signal } = stop;

  const spread = (): number => {
    const [a, b] = [...pointers.values()];
    return a === undefined || b === undefined ? 0 : Math.hypot(a.x - b.x, a.y - b.y);
  };

  element.addEventListener(
    'pointerdown',
    event => {
      pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      element.setPointerCapture(event.pointerId);
    },
    { signal },
  );
  element.addEventListener(
    'pointermove',
    event => {
      const before = pointers.get(event.pointerId);
      if (before === undefined) return;
      const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
      const wide = spread();
      pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      if (pointers.size > 1) {
        const now = spread();
        if (wide > 0 && now > 0) acts.zoom(wide / now);
      } else if (event.shiftKey || (event.buttons & 2) !== 0) {
        const height = Math.max(1, element.clientHeight);
        acts.pan(-dx / height, dy / height);
      } else acts.turn(-dx * turnPerPixel, dy * turnPerPixel);
    },
    { signal },
  );
  for (const type of ['pointerup', 'pointercancel', 'lostpointercapture'] as const)
    element.addEventListener(type, event => pointers.delete(event.pointerId), { signal });
  element.addEventListener('contextmenu', event => event.preventDefault(), { signal });
  element.addEventListener(
    'wheel',
    event => {
      // Who only scrolls past should get past: the wheel is the robot's once it was clicked.
      if (document.activeElement !== element && !event.ctrlKey) return;
      event.preventDefault();
      acts.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(60, Math.abs(event.deltaY)) * 0.0025));
    },
    { signal, passive: false },
  );
  return () => stop.abort();
}
