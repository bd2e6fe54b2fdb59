/** Who works on a study and what waits, to be looked at. Runs in a browser: nothing here may import a Node module. */

/** One process or machine that takes jobs. */
export interface WorkerView {
  readonly name: string;
  readonly host: string;
  /** Of Keel. */
  readonly version: string;
  /** Ids of the runs that it works on. */
  readonly doing: readonly string[];
  /** Since when it does that, or has been waiting; milliseconds since 1970. */
  readonly since: number;
}

/** What a study's place looks like from outside. */
export interface WorkersView {
  readonly workers: readonly WorkerView[];
  readonly queue: {
    readonly waiting: number;
    readonly active: number;
    /** Tried again later. */
    readonly delayed: number;
    readonly failed: number;
  };
  /** What failed or was tried again, newest first. */
  readonly failures: readonly { readonly run: string; readonly why: string; readonly at: number }[];
}
