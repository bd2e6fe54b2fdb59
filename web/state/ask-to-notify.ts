/** Turning notifications on and off; loaded with the click that asks for it. */
import { preferences } from './preferences.svelte.ts';

/** On a click only. The answer says how it went. */
export async function askToNotify(): Promise<string> {
  if (!('Notification' in window)) return 'This browser has no notifications.';
  if (preferences.notify) {
    preferences.notify = false;
    return 'Notifications are off.';
  }
  const answer = await Notification.requestPermission();
  preferences.notify = answer === 'granted';
  return answer === 'granted'
    ? 'You will be told when a verdict changes while this page is open.'
    : 'The browser refused notifications; its settings for this page can allow them.';
}
