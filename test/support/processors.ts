/** Bits of single precision depend on the processor: those on which pinned ones were seen to come out, all alike. */
import { cpus } from 'node:os';

const seen = ['AMD EPYC', 'Intel(R) Xeon(R) Processor'];

/** Whether pinned bits hold on this machine; elsewhere numbers near them do. */
export const bitsArePinned: boolean = seen.includes(cpus()[0]?.model.trim() ?? '');
