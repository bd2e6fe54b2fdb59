/** A moment on the clock, `14:03:22`; of another day with that. */
export function formatMoment(then: number, now: number): string {
  const two = (n: number) => String(n).padStart(2, '0');
  const at = new Date(then);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
  return at.toDateString() === new Date(now).toDateString() ? time : `${day} ${time}`;
}
