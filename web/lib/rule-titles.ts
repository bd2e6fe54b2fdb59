/** What each rule of the doctor looks for, in a few words. */
declare const __RULE_TITLES__: Readonly<Record<string, string>>;
/** Put in by the build, from the rules. */
const titles = __RULE_TITLES__;

/** A rule's title; its code of one that this page does not know. */
export const ruleTitle = (code: string): string => (Object.hasOwn(titles, code) ? titles[code] : code);
