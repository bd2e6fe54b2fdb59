/** Words that tell logs of training from other tables and lines. */

/** Names that only training has. */
export const ofTraining =
  /(?:^|[\s/_.-])(?:\w*rew(?:ard)?s?|\w*returns?|\w*loss(?:es)?|\w*kl|entropy|scores?)(?:$|[\s/_.-])/i;
