/** Whether a key belongs to the page: not while someone types, nor with a modifier of the browser, nor under a dialog. */
export function isPageKey(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  if (
    target.matches?.('input:not([type=range], [type=checkbox]), textarea, select') ||
    target.isContentEditable
  )
    return false;
  return document.querySelector('dialog[open]') === null;
}
