import { en } from "./en";

/** The sentences of the present language. */
export const text = en;
