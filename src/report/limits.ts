/** Runs that one page compares: apart, because who only asks for a page loads nothing of it. */
export const MOST_RUNS = 40;
