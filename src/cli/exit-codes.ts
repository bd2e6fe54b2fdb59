/** What a command's exit code says: the one table of them. The help and docs/exit-codes.md are held to it. */
export const exitCodes = {
  /** Done. */
  done: 0,
  /** Tried, and it failed. */
  failed: 1,
  /** What was asked for cannot be: nothing was started. */
  wrongUse: 2,
  /** Stopped by Ctrl-C and by SIGTERM, as is the custom. */
  interrupted: 130,
  terminated: 143,
} as const;

/** The same for `keel doctor`, which answers a question: 0 to 2 are its verdicts. */
export const doctorExitCodes = { healthy: 0, watch: 1, sick: 2, couldNotRead: 3 } as const;

/** Of a process that a signal ended. */
export const exitCodeOfSignal = {
  SIGINT: exitCodes.interrupted,
  SIGTERM: exitCodes.terminated,
} as const;
