/**
 * Property tests draw the same cases on every run, so that a red test is the change's fault.
 * `KEEL_PROPERTY_SEED=123 npm test` draws others.
 */
import fc from 'fast-check';

const seed = Number(process.env.KEEL_PROPERTY_SEED ?? 20_261_116);
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
