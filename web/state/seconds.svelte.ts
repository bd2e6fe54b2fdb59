/** The time, second by second, for as long as the component that asked is there. */
export function seconds(): { readonly at: number } {
  let at = $state(Date.now());
  $effect(() => {
    const timer = setInterval(() => {
      at = Date.now();
    }, 1000);
    return () => clearInterval(timer);
  });
  return {
    get at() {
      return at;
    },
  };
}
