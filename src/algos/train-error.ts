/** Training cannot go on; the message says why and what to change. */
export class TrainError extends Error {
  override name = 'TrainError';
}
