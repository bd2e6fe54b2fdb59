/** Opens an address in the browser of whoever sits here; where there is none, nothing happens. */
import { spawn } from 'node:child_process';

export function openBrowser(url: string): void {
  const [program, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url]
        : ['xdg-open', url];
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address was printed
  child.unref();
}

/** Whether there may be a browser to see: on Linux a machine without a display has none. */
export function hasScreen(): boolean {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  return process.platform !== 'linux' || Boolean(DISPLAY || WAYLAND_DISPLAY);
}
