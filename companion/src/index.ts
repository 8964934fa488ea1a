/**
 * Sallyport beside an Electron or Node program.
 *
 * The one idea: the program is a child like any other, and nothing that it or anybody else says is believed before it
 * has been proved under the key in the user's own folder (spec/local-api.md 4). This package holds the companion's
 * token, which sees and never answers; the operator's it does not read.
 */
export type { Restart } from "./backoff.js";
export type { Decision, DecisionChange } from "./decisions.js";
export { SallyportError, type ErrorCode } from "./errors.js";
export type { Options } from "./options.js";
export type { Health } from "./prove.js";
export { Sallyport, startSallyport, type Status, type Wait } from "./sallyport.js";
export type { components, paths } from "./schema.js";
export type { Note, Running, State, StateName } from "./state.js";
