/** The time, coarse: ages on the page move every ten seconds, countdowns each second while someone counts. */
let now = $state(Date.now());
setInterval(() => {
  if (!document.hidden) now = Date.now();
}, 10_000);
document.addEventListener('visibilitychange', () => {
  now = Date.now();
});

export const clock = {
  get now(): number {
    return now;
  },
};
