/** What the thread is asked: see `thread.ts`. */
export type FuzzJob =
  | { readonly type: 'names' }
  /** Reads the samples as they are. */
  | { readonly type: 'sound'; readonly reader: string; readonly scratch: string }
  | {
      readonly type: 'fuzz';
      readonly reader: string;
      /** Where readers have their files. */
      readonly scratch: string;
      readonly seed: number;
      readonly from: number;
      readonly to: number;
    }
  /** Writes one input to a file. */
  | {
      readonly type: 'save';
      readonly reader: string;
      /** Where readers have their files. */
      readonly scratch: string;
      readonly seed: number;
      readonly index: number;
      readonly directory: string;
    };

/** One input that did what none may. */
export interface Fault {
  readonly index: number;
  readonly why: string;
}

/** What became of some inputs. */
export interface FuzzResult {
  /** Those that were read; the others were refused with an error of ours. */
  readonly read: number;
  /** Those of them that training would go on with. */
  readonly resumed: number;
  readonly faults: readonly Fault[];
  /** Bytes of the largest buffer that was asked for. */
  readonly largest: number;
}
