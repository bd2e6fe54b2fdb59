/** Something on a bench's command line that cannot be: said in one line, without a trace. */
export class Refused extends Error {
  override name = 'Refused';
}

export const refuse = (why: string): never => {
  throw new Refused(why);
};
