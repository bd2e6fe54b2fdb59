import { KeelError } from '../base/errors.ts';

/** What a request is told when it cannot be answered: a status, a stable code, and a sentence for people. */
export class Problem extends KeelError {
  override name = 'Problem';
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 422 | 500 | 503 | 504;
  declare readonly code: string;

  constructor(status: Problem['status'], code: string, message: string) {
    super(message, { code });
    this.status = status;
  }
}
